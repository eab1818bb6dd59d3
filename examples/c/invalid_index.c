/* Reads the error messages of an invalid shape and of an invalid index. */
#include <gatherum.h>
#include <stdio.h>

int main(void) {
  const int64_t table_shape[] = {4, 2}, rows_shape[] = {3}, other_shape[] = {2, 2};
  const gatherum_spec data = {.dtype = "float32", .rank = 2, .shape = table_shape};
  const gatherum_spec indices = {.dtype = "int64", .rank = 1, .shape = rows_shape};
  const gatherum_spec updates = {.dtype = "float32", .rank = 2, .shape = other_shape};
  gatherum_program *program;
  gatherum_call_error wrong;
  gatherum_status status = gatherum_make_scatter_slices(&data, &indices, &updates, NULL, NULL, &program, &wrong);
  if (status != GATHERUM_INVALID_CALL || wrong.fault != GATHERUM_FAULT_SHAPE) return 1;
  printf("%s\n", wrong.message);

  status = gatherum_make_gather(&data, &indices, NULL, NULL, &program, &wrong);
  if (status != GATHERUM_OK) return 1;
  const float table[8] = {0};
  const int64_t rows[3] = {2, 0, 9};
  float result[6];
  gatherum_operands operands = {0};
  operands.data = gatherum_memory(table, sizeof table);
  operands.indices = gatherum_memory(rows, sizeof rows);
  operands.out = gatherum_memory(result, sizeof result);
  gatherum_error error;
  status = gatherum_check(program, &operands, &error);
  if (status == GATHERUM_OK) status = gatherum_run(program, &operands, NULL, &error);
  gatherum_program_free(program);
  if (status != GATHERUM_INVALID_INDEX) return 1;
  printf("%s: %lld (%s[%lld])\n", error.message, (long long)error.value, error.operand, (long long)error.position);
  return 0;
}
