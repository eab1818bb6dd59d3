/* Gathers three rows of a table. */
#include <gatherum.h>
#include <stdio.h>

int main(void) {
  const float table[4][2] = {{0, 1}, {10, 11}, {20, 21}, {30, 31}};
  const int64_t rows[3] = {2, 0, -1};
  float result[3][2];

  const int64_t table_shape[] = {4, 2}, rows_shape[] = {3};
  const gatherum_spec data = {.dtype = "float32", .rank = 2, .shape = table_shape};
  const gatherum_spec indices = {.dtype = "int64", .rank = 1, .shape = rows_shape};
  gatherum_program *program;
  gatherum_call_error wrong;
  if (gatherum_make_gather(&data, &indices, NULL, NULL, &program, &wrong) != GATHERUM_OK) {
    fprintf(stderr, "%s\n", wrong.message);
    return 1;
  }

  gatherum_operands operands = {0};
  operands.data = gatherum_memory(table, sizeof table);
  operands.indices = gatherum_memory(rows, sizeof rows);
  operands.out = gatherum_memory(result, sizeof result);
  gatherum_error error;
  if (gatherum_check(program, &operands, &error) != GATHERUM_OK ||
      gatherum_run(program, &operands, NULL, &error) != GATHERUM_OK) {
    fprintf(stderr, "%s: %s\n", error.operand, error.message);
    return 1;
  }
  gatherum_program_free(program);
  for (int i = 0; i < 3; ++i) printf("%g %g\n", result[i][0], result[i][1]);
  return 0;
}
