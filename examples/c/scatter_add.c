/* Adds a number of amounts that is known only at run time to accounts, in place. */
#include <gatherum.h>
#include <stdio.h>

static int add(double *accounts, int64_t count, const int32_t *numbers, const double *amounts, int64_t n) {
  const gatherum_spec data = {.dtype = "float64", .rank = 1, .shape = &count};
  const gatherum_spec indices = {.dtype = "int32", .rank = 1, .shape = &n};
  const gatherum_spec updates = {.dtype = "float64", .rank = 1, .shape = &n};
  gatherum_attributes attributes = gatherum_defaults();
  attributes.reduction = "add";
  attributes.mode = "drop"; /* amounts for accounts that do not exist */
  gatherum_program *program;
  gatherum_call_error wrong;
  if (gatherum_make_scatter_elements(&data, &indices, &updates, NULL, &attributes, &program, &wrong) !=
      GATHERUM_OK) {
    fprintf(stderr, "%s\n", wrong.message);
    return 1;
  }

  gatherum_operands operands = {0};
  operands.data = operands.out = gatherum_memory(accounts, count * (int64_t)sizeof *accounts);
  operands.indices = gatherum_memory(numbers, n * (int64_t)sizeof *numbers);
  operands.updates = gatherum_memory(amounts, n * (int64_t)sizeof *amounts);
  gatherum_error error;
  gatherum_status status = gatherum_check(program, &operands, &error);
  if (status == GATHERUM_OK) status = gatherum_run(program, &operands, NULL, &error);
  if (status != GATHERUM_OK) fprintf(stderr, "%s: %s\n", error.operand, error.message);
  gatherum_program_free(program);
  return status != GATHERUM_OK;
}

int main(void) {
  double accounts[3] = {100, 0, 5};
  const int32_t numbers[] = {0, 2, 0, 7};
  const double amounts[] = {1, 2, 3, 1000};
  for (int64_t n = 2; n <= 4; n += 2)
    if (add(accounts, 3, numbers, amounts, n) != 0) return 1;
  printf("%g %g %g\n", accounts[0], accounts[1], accounts[2]);
  return 0;
}
