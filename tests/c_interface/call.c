/* Runs one program on the bytes of files, without Python: the C interface as a C program uses it.
 *
 *     call PROGRAM DATA INDICES UPDATES OUT THREADS [in-place|interrupt]
 *
 * OUT holds as many bytes as the result will have. Prints the status, and what is known of an error. */
#include <gatherum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  char *bytes;
  long size;
} contents;

static contents read_file(const char *path) {
  contents c = {NULL, 0};
  FILE *file = fopen(path, "rb");
  if (file == NULL) exit(3);
  fseek(file, 0, SEEK_END);
  c.size = ftell(file);
  rewind(file);
  c.bytes = malloc((size_t)c.size + 1);
  if (c.bytes == NULL || fread(c.bytes, 1, (size_t)c.size, file) != (size_t)c.size) exit(3);
  fclose(file);
  return c;
}

static int32_t always(void *context) {
  ++*(int *)context;
  return 1;
}

static int tell(const char *where, gatherum_status status, const gatherum_error *error) {
  printf("%s %d|%s|%s|%lld|%d|%lld\n", where, (int)status, error->message, error->operand,
         (long long)error->position, (int)error->component, (long long)error->value);
  return 1;
}

int main(int count, char **words) {
  if (count < 7 || gatherum_abi_version() != GATHERUM_ABI_VERSION) return 3;
  const char *how = count > 7 ? words[7] : "";
  const contents bytes = read_file(words[1]), data = read_file(words[2]), indices = read_file(words[3]);
  const contents updates = read_file(words[4]), out = read_file(words[5]);
  gatherum_set_num_threads(atoi(words[6]));

  gatherum_error error;
  gatherum_program *program;
  gatherum_status status = gatherum_program_read(bytes.bytes, (size_t)bytes.size, &program, &error);
  if (status != GATHERUM_OK) return tell("read", status, &error);

  gatherum_operands operands = {0};
  operands.out = gatherum_memory(out.bytes, out.size);
  operands.data = gatherum_memory(data.bytes, data.size);
  if (strcmp(how, "in-place") == 0) {
    memcpy(out.bytes, data.bytes, (size_t)data.size);
    operands.data = operands.out;
  }
  operands.indices = gatherum_memory(indices.bytes, indices.size);
  operands.updates = gatherum_memory(updates.bytes, updates.size);
  operands.fresh = strcmp(how, "in-place") != 0;
  status = gatherum_check(program, &operands, &error);
  if (status != GATHERUM_OK) return tell("check", status, &error);

  int asked = 0;
  gatherum_poll poll = {always, &asked};
  status = gatherum_run(program, &operands, strcmp(how, "interrupt") == 0 ? &poll : NULL, &error);
  if (status != GATHERUM_OK) return tell("run", status, &error);

  size_t size = gatherum_program_write(program, NULL, 0);
  printf("ok %d %d %zu %s\n", gatherum_program_scatters(program), (int)gatherum_program_rank(program), size,
         gatherum_level());
  gatherum_program_free(program);
  FILE *result = fopen(words[5], "wb");
  if (result == NULL || fwrite(out.bytes, 1, (size_t)out.size, result) != (size_t)out.size) return 3;
  return fclose(result) == 0 ? 0 : 3;
}
