/* Finishes folds of every type whose accumulators were never written: the counts say so. */
#include <gatherum.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCount = 37 };

static const char* const kReductions[] = {"add", "mul", "max", "min", "mean", "fsum", "fmean"};
static const char* const kValues[] = {"bool",     "int8",    "int16",   "int32",     "int64",
                                      "uint8",    "uint16",  "uint32",  "uint64",    "float16",
                                      "bfloat16", "float32", "float64", "complex64", "complex128"};
static const int kBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

/* Returns 0 where the result is the data. */
static int finish(const gatherum_fold* fold, int64_t sum_bytes) {
  const size_t bytes = kCount * (size_t)fold->item;
  unsigned char* data = malloc(bytes);
  void *sums = malloc(kCount * (size_t)sum_bytes), *out = malloc(bytes);
  int64_t counts[kCount] = {0};
  int wrong = 1;
  if (data != NULL && sums != NULL && out != NULL) {
    for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)(7 * i);
    wrong = gatherum_fold_finish(fold, data, sums, counts, out, kCount) != GATHERUM_OK ||
            memcmp(out, data, bytes) != 0;
  }
  free(data);
  free(sums);
  free(out);
  return wrong;
}

int main(void) {
  int folds = 0, wrong = 0;
  for (size_t r = 0; r < sizeof kReductions / sizeof *kReductions; ++r)
    for (size_t v = 0; v < sizeof kValues / sizeof *kValues; ++v)
      for (int32_t include_self = 0; include_self < 2; ++include_self) {
        const gatherum_fold fold = {kReductions[r], kValues[v], include_self, kBytes[v]};
        int32_t any_order;
        int64_t sum_bytes;
        if (gatherum_fold_describe(&fold, &any_order, &sum_bytes) != GATHERUM_OK || !any_order) continue;
        ++folds;
        wrong += finish(&fold, sum_bytes);
      }
  printf("%d folds, %d wrong\n", folds, wrong);
  return wrong;
}
