/* gatherum.h: gather and scatter on memory, as a C library.
 *
 * A program is one call of an operator without its data: shapes, strides, types and attributes, checked and
 * lowered. The gatherum_make functions create it, or Python does (bytes(gatherum.plan(...).program)).
 * This library runs it on addresses, any number of times, from any number of threads. It needs no Python and
 * throws no exceptions.
 *
 *     int64_t table_shape[] = {100, 4}, rows_shape[] = {3};
 *     gatherum_spec data = {"float32", 2, table_shape}, indices = {"int64", 1, rows_shape};
 *     gatherum_program *program;
 *     gatherum_call_error wrong;
 *     if (gatherum_make_gather(&data, &indices, NULL, NULL, &program, &wrong) != GATHERUM_OK) ...
 *     gatherum_error error;
 *     gatherum_operands operands = {0};
 *     operands.data = gatherum_memory(table, table_bytes);
 *     operands.indices = gatherum_memory(rows, rows_bytes);
 *     operands.out = gatherum_memory(result, result_bytes);
 *     if (gatherum_check(program, &operands, &error) != GATHERUM_OK) ...   an operand is too small
 *     if (gatherum_run(program, &operands, NULL, &error) != GATHERUM_OK) ...
 *     gatherum_program_free(program);
 *
 * Indices are always checked: after gatherum_check has accepted the operands, gatherum_run accesses no other
 * memory.
 *
 * Functions return GATHERUM_INVALID_CALL for a null pointer that is not allowed, for a negative size, and for
 * an output that shares memory with an input (unless documented otherwise). Nothing is written then.
 * Functions without a status return 0 for a null pointer, unless documented otherwise.
 */
#ifndef GATHERUM_H
#define GATHERUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(GATHERUM_STATIC)
#define GATHERUM_API
#elif defined(_WIN32)
#if defined(GATHERUM_BUILDING)
#define GATHERUM_API __declspec(dllexport)
#else
#define GATHERUM_API __declspec(dllimport)
#endif
#else
#define GATHERUM_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define GATHERUM_NOEXCEPT noexcept
extern "C" {
#else
#define GATHERUM_NOEXCEPT
#endif

/* Changes whenever the meaning of a declaration below changes. */
#define GATHERUM_ABI_VERSION 1
GATHERUM_API int32_t gatherum_abi_version(void) GATHERUM_NOEXCEPT;

typedef enum gatherum_status {
  GATHERUM_OK = 0,
  GATHERUM_INVALID_INDEX,   /* an index is invalid in mode "raise"; a scatter has written nothing */
  GATHERUM_INTERRUPTED,     /* the poll callback requested it */
  GATHERUM_NO_MEMORY,       /* no working memory; a scatter in place has written nothing */
  GATHERUM_INVALID_PROGRAM, /* not the bytes of a program of this version, or no kernel for the program */
  GATHERUM_TOO_SMALL,       /* an operand's memory does not contain everything that the program addresses */
  GATHERUM_FAILED,          /* a file could not be read */
  /* shapes, dtypes or attributes that are not a valid call: see gatherum_call_error; null pointers, negative
   * sizes, and an output that shares memory with an input */
  GATHERUM_INVALID_CALL
} gatherum_status;

/* The details of an error. `message` is a constant in English, never null. A function that returns
 * GATHERUM_OK does not write it. */
typedef struct gatherum_error {
  const char* message;
  const char* operand; /* TOO_SMALL, INVALID_CALL: its name */
  /* INVALID_INDEX: the tuple's position in row-major order of the indices, or -1 if the indices have changed
   * during the call; the value of the index (the bits of a uint64); and its component in the tuple. */
  int64_t position;
  int64_t value;
  int32_t component;
} gatherum_error;

typedef struct gatherum_program gatherum_program;

/* An operand without its data. Zero-initialize the fields that are not set. */
typedef struct gatherum_spec {
  const char* dtype;      /* NumPy's name, or "bfloat16", "float8_e4m3fn", ...; null: items only to copy */
  int32_t rank;           /* 0 to 64 */
  const int64_t* shape;   /* `rank` sizes; null only for rank 0 */
  const int64_t* strides; /* in bytes; null: C order */
  int64_t item;           /* if `dtype` is null: bytes of an item */
  int32_t swapped;        /* not 0: the items' byte order is the opposite of this machine's */
} gatherum_spec;

/* The other arguments of an operator. gatherum_defaults returns the defaults. */
typedef struct gatherum_attributes {
  int64_t axis;          /* `axis`, or `batch_dims` of "gather_nd" and "scatter_nd" */
  const char* mode;      /* "raise", "clip", "wrap", "fill" or "drop"; null: "raise" */
  int32_t negative;      /* whether negative indices count from the end */
  const char* reduction; /* scatters: "none", "add", "mul", "max", "min", "mean", "fsum" or "fmean";
                            null: "none", which is all that a gather takes */
  int32_t include_self;  /* scatters: whether the old value is part of the fold; gathers ignore it */
} gatherum_attributes;

static inline gatherum_attributes gatherum_defaults(void) {
  gatherum_attributes attributes;
  attributes.axis = 0;
  attributes.mode = "raise";
  attributes.negative = 1;
  attributes.reduction = "none";
  attributes.include_self = 1;
  return attributes;
}

typedef enum gatherum_fault {
  GATHERUM_FAULT_NONE = 0,
  GATHERUM_FAULT_ATTRIBUTE, /* an attribute that the operator does not have, or that is out of range */
  GATHERUM_FAULT_OPERAND,   /* an operand is missing */
  GATHERUM_FAULT_DTYPE,
  GATHERUM_FAULT_SHAPE /* shapes that do not match, or are too large */
} gatherum_fault;

/* An error in a call. */
typedef struct gatherum_call_error {
  gatherum_fault fault;
  const char* operand; /* "data", "indices", "updates" or "out"; "" for other errors. Never null */
  char message[512];   /* the operator, the expected and the actual value; in English */
} gatherum_call_error;

/* Make the program of a call. Each operator matches Python's function of the same name, with the same errors.
 * `out` is the layout of the result; if it is null, the result is in C order. If `attributes` is null, the
 * defaults apply. `error` may be null. After an error, no program is created. A scatter may run in place if
 * `out` is laid out as `data`. The fill value of a gather is in gatherum_operands. */
GATHERUM_API gatherum_status gatherum_make_gather(const gatherum_spec* data, const gatherum_spec* indices,
                                                  const gatherum_spec* out,
                                                  const gatherum_attributes* attributes,
                                                  gatherum_program** program,
                                                  gatherum_call_error* error) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_make_gather_elements(const gatherum_spec* data,
                                                           const gatherum_spec* indices,
                                                           const gatherum_spec* out,
                                                           const gatherum_attributes* attributes,
                                                           gatherum_program** program,
                                                           gatherum_call_error* error) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_make_gather_nd(const gatherum_spec* data, const gatherum_spec* indices,
                                                     const gatherum_spec* out,
                                                     const gatherum_attributes* attributes,
                                                     gatherum_program** program,
                                                     gatherum_call_error* error) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_make_scatter_slices(
    const gatherum_spec* data, const gatherum_spec* indices, const gatherum_spec* updates,
    const gatherum_spec* out, const gatherum_attributes* attributes, gatherum_program** program,
    gatherum_call_error* error) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_make_scatter_elements(
    const gatherum_spec* data, const gatherum_spec* indices, const gatherum_spec* updates,
    const gatherum_spec* out, const gatherum_attributes* attributes, gatherum_program** program,
    gatherum_call_error* error) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_make_scatter_nd(const gatherum_spec* data, const gatherum_spec* indices,
                                                      const gatherum_spec* updates, const gatherum_spec* out,
                                                      const gatherum_attributes* attributes,
                                                      gatherum_program** program,
                                                      gatherum_call_error* error) GATHERUM_NOEXCEPT;

/* Deserializes a program from Python or from gatherum_program_write. */
GATHERUM_API gatherum_status gatherum_program_read(const void* bytes, size_t size, gatherum_program** program,
                                                   gatherum_error* error) GATHERUM_NOEXCEPT;
/* Writes at most `capacity` bytes. Returns the size of the whole program, 0 if memory ran out. */
GATHERUM_API size_t gatherum_program_write(const gatherum_program* program, void* bytes,
                                           size_t capacity) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_program_free(gatherum_program* program) GATHERUM_NOEXCEPT;
/* The result's shape: its rank, and one extent for each dimension. */
GATHERUM_API int32_t gatherum_program_rank(const gatherum_program* program) GATHERUM_NOEXCEPT;
GATHERUM_API const int64_t* gatherum_program_shape(const gatherum_program* program) GATHERUM_NOEXCEPT;
GATHERUM_API int32_t gatherum_program_scatters(const gatherum_program* program) GATHERUM_NOEXCEPT;
/* Returns nonzero if gatherum_run of the program takes so long that the caller should release its locks. */
GATHERUM_API int32_t gatherum_program_is_long(const gatherum_program* program) GATHERUM_NOEXCEPT;

/* The memory of an operand: its first element, and the bytes before and after that address that belong to
 * it. */
typedef struct gatherum_buffer {
  void* start;
  int64_t bytes_before, bytes_after;
} gatherum_buffer;

/* A buffer of `bytes` bytes that begins with its first element, as contiguous arrays do. */
static inline gatherum_buffer gatherum_memory(const void* start, int64_t bytes) {
  gatherum_buffer buffer;
  buffer.start = (void*)start;
  buffer.bytes_before = 0;
  buffer.bytes_after = bytes;
  return buffer;
}

typedef struct gatherum_operands {
  gatherum_buffer data; /* the input; for a scatter in place the same as `out` */
  gatherum_buffer indices;
  gatherum_buffer updates; /* scatters */
  gatherum_buffer out;     /* the result */
  const void* fill;        /* one item, for gathers with the modes "fill" and "drop"; null: zero bytes */
  int32_t fresh;           /* not 0: `out` is discarded if the call fails, so it may be partially written */
} gatherum_operands;

/* Called a few times a second during long calls, on the calling thread. A nonzero result interrupts the call.
 * It is only called while nothing has been written in place. */
typedef struct gatherum_poll {
  int32_t (*ask)(void* context);
  void* context;
} gatherum_poll;

/* Checks that every byte that the program can address is inside its operands, for any index values. Returns
 * GATHERUM_TOO_SMALL if not, or if a start is null. Returns GATHERUM_INVALID_CALL if `out` shares memory with
 * an input, as in Python: `out` must not have a byte in common with `indices`, `updates`, `fill` or `data`. A
 * scatter may work in place if `out` starts at the same address as `data` and has the same strides along
 * dimensions of more than one step. Bytes that the program cannot address do not count. Bounds are compared
 * first, then strides are searched with bounded work. If the search does not decide, the memory counts as
 * shared. */
GATHERUM_API gatherum_status gatherum_check(const gatherum_program* program,
                                            const gatherum_operands* operands,
                                            gatherum_error* error) GATHERUM_NOEXCEPT;
/* Runs the program. The operands must match the program: see gatherum_check. Like gatherum_check, it returns
 * an error for a null start and for an `out` that shares memory with an input. `poll` and `error` may be
 * null. */
GATHERUM_API gatherum_status gatherum_run(const gatherum_program* program, const gatherum_operands* operands,
                                          const gatherum_poll* poll, gatherum_error* error) GATHERUM_NOEXCEPT;
/* Like gatherum_run, without the updates that are NaN, for a scatter of float16, bfloat16, float32 or
 * float64. Rows may have any reduction, or none, with include_self false. Single items must be float32 or
 * float64, with the reduction "add", "max", "min" or "mean". An item of the output without other updates
 * keeps its old value. Returns GATHERUM_INVALID_PROGRAM for other programs. */
GATHERUM_API gatherum_status gatherum_skip_nan(const gatherum_program* program,
                                               const gatherum_operands* operands, const gatherum_poll* poll,
                                               gatherum_error* error) GATHERUM_NOEXCEPT;
/* Writes the number of the element that each index tuple addresses, -1 for an invalid tuple. Returns the
 * number of invalid tuples. Returns -1 without writing if a pointer is null or `numbers` shares memory with
 * the indices. With the modes "clip" and "wrap" every index is valid, unless a dimension has size 0. */
GATHERUM_API int64_t gatherum_number(const gatherum_program* program, const void* indices,
                                     int64_t* numbers) GATHERUM_NOEXCEPT;
/* Finds the first invalid index in row-major order, in every mode. Returns GATHERUM_INVALID_INDEX with its
 * position in `error`, or GATHERUM_OK if all are valid. `poll` and `error` may be null. */
GATHERUM_API gatherum_status gatherum_first_invalid(const gatherum_program* program, const void* indices,
                                                    const gatherum_poll* poll,
                                                    gatherum_error* error) GATHERUM_NOEXCEPT;

/* Computes "exp" or "log" of n items of "float16", "bfloat16", "float32" or "float64", bit-for-bit equal on
 * every machine, with an error below 1 ulp. `to` may be `from`, and must not share memory with it otherwise.
 * `poll` may be null. */
GATHERUM_API gatherum_status gatherum_map(const char* function, const char* value, const void* from, void* to,
                                          int64_t n, const gatherum_poll* poll) GATHERUM_NOEXCEPT;

/* A cumulative function: each value has a result, from the values of its group up to this one, in order.
 * "add", "mul", "max" and "min" are the left folds of `value`, a dtype with reductions. They accumulate as
 * scatters do, and each result is rounded once. For "float32" and "float64", "recurrence" multiplies the
 * result of the previous value by the factor of this value and adds this value, and "previous" is the
 * previous value, or 0. `factors` is null for other functions than "recurrence". `groups` contains one number
 * of `group_bytes` bytes, 4 or 8, for each value; it is signed. A value whose number is not in
 * [0, group_count) gets 0. */
typedef struct gatherum_cumulation {
  const char* function;
  const char* value;
  const void* values;
  const void* factors;
  const void* groups;
  int64_t group_bytes;
  int64_t group_count;
} gatherum_cumulation;

/* Computes n results. Returns GATHERUM_INVALID_PROGRAM if the function is not defined for the type, and
 * GATHERUM_INVALID_CALL if `to` shares memory with an operand. `poll` may be null. */
GATHERUM_API gatherum_status gatherum_cumulate(const gatherum_cumulation* of, void* to, int64_t n,
                                               const gatherum_poll* poll) GATHERUM_NOEXCEPT;

/* Values to sort: contiguous, of the dtype `value`, a dtype with the reduction "max"; or null. `groups`
 * contains the number of the group of each value, in [0, group_count). */
typedef struct gatherum_grouped_values {
  const char* value;
  const void* values;
  const int64_t* groups;
  int64_t group_count;
} gatherum_grouped_values;

/* Writes the positions of n values to `order`: by group, then by value if there are values, then by position.
 * NaN are last in their group and equal, and -0 equals 0. Returns GATHERUM_INVALID_PROGRAM if the dtype has
 * no "max", GATHERUM_INVALID_INDEX for an invalid group, and GATHERUM_INVALID_CALL if `order` shares memory
 * with an operand, or a count is not in [0, 2^60]. `poll` and `error` may be null. */
GATHERUM_API gatherum_status gatherum_order(const gatherum_grouped_values* of, int64_t* order, int64_t n,
                                            const gatherum_poll* poll,
                                            gatherum_error* error) GATHERUM_NOEXCEPT;

/* A gather of quantized rows: (value - zero point) * scale of the rows numbered by `rows`, computed in
 * float32 and rounded once. The gathered dimension has `gathered` rows. The dimensions before it are
 * `before[0]`, `before[1]` and `before[2]`, those after it `after[0]`, `after[1]` and `after[2]`; each is
 * a product of dimensions. Blocks of `before[1]`, `gathered` or `after[1]` share a scale: `blocks` has their
 * sizes, 1 for no sharing. Everything is contiguous. */
typedef struct gatherum_quantized {
  const void *data, *scales, *zero_points; /* zero_points null: `zero` for every value */
  void* out;
  int64_t data_bytes, scales_bytes, zero_points_bytes, out_bytes;
  const char* value;  /* "uint8", "int8", "float8_e4m3fn" or "float8_e5m2", of the data and zero points */
  const char* scale;  /* "float32", "float16", "bfloat16" or "float8_e8m0fnu" */
  const char* result; /* "float32", "float16" or "bfloat16" */
  int32_t bits;       /* 8; for integers also 2 and 4 */
  int32_t packed;     /* not 0: 8 / bits values per byte, the first in the lowest bits */
  float zero;
  const int64_t* rows; /* `count` numbers, which must not change meanwhile; invalid numbers produce zeros */
  int64_t count;
  int64_t before[3], gathered, after[3], blocks[3];
  int64_t scale_line; /* the scales' last dimension; packed zero points begin a new byte with it */
} gatherum_quantized;

/* Returns GATHERUM_INVALID_PROGRAM for unsupported types or sizes, GATHERUM_TOO_SMALL if an operand is null
 * or smaller than the call requires, and GATHERUM_INVALID_CALL if `out` shares memory with an operand. `poll`
 * may be null. */
GATHERUM_API gatherum_status gatherum_dequantize(const gatherum_quantized* call,
                                                 const gatherum_poll* poll) GATHERUM_NOEXCEPT;

/* A fold in batches: a scatter whose updates arrive in batches, bit-for-bit equal to one call on all of them.
 * The caller keeps an accumulator (`sum_bytes` bytes) and a count (an int64) for each of the n elements of
 * the data, in C order. The counts start at 0. */
typedef struct gatherum_fold {
  const char *reduction, *value; /* names: "add", "float32"; "none" and "none" moves items */
  int32_t include_self;
  int64_t item; /* bytes of an element of the data */
} gatherum_fold;

/* If `any_order` is not 0, the accumulators hold only the updates and need no initialization, and two folds
 * can be merged. */
GATHERUM_API gatherum_status gatherum_fold_describe(const gatherum_fold* fold, int32_t* any_order,
                                                    int64_t* sum_bytes) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_fold_begin(const gatherum_fold* fold, const void* data, void* sums,
                                                 int64_t n) GATHERUM_NOEXCEPT;
/* Folds a batch. The program is a scatter into contiguous data, and the operands have its `indices` and
 * `updates`. After an error, nothing has been folded. gatherum_check tests whether the program stays within
 * an `out` of n elements. */
GATHERUM_API gatherum_status gatherum_fold_take(const gatherum_program* program,
                                                const gatherum_operands* operands, void* sums,
                                                int64_t* counts, const gatherum_poll* poll,
                                                gatherum_error* error) GATHERUM_NOEXCEPT;
/* Folds the updates of another fold after those of this one. Both may be the same fold. Requires `any_order`;
 * otherwise it returns GATHERUM_INVALID_PROGRAM. */
GATHERUM_API gatherum_status gatherum_fold_merge(const gatherum_fold* fold, void* sums, int64_t* counts,
                                                 const void* other_sums, const int64_t* other_counts,
                                                 int64_t n) GATHERUM_NOEXCEPT;
/* Writes the result. The fold can continue. With `any_order`, `data` is read, and accumulators of elements
 * whose count is 0 may be uninitialized. Without it `data` may be null. */
GATHERUM_API gatherum_status gatherum_fold_finish(const gatherum_fold* fold, const void* data,
                                                  const void* sums, const int64_t* counts, void* out,
                                                  int64_t n) GATHERUM_NOEXCEPT;

/* The inputs and outputs of the gradients of a scatter with the reduction "mul", "max" or "min". `updates`
 * and `of_updates` have the layout of the program's updates; the other arrays have the layout of its
 * output. */
typedef struct gatherum_gradients {
  gatherum_buffer indices;
  gatherum_buffer data; /* the old values; not read if the program excludes them from the fold */
  gatherum_buffer updates;
  gatherum_buffer result;     /* the result of the scatter; not read for "mul" */
  gatherum_buffer gradient;   /* of the result */
  gatherum_buffer of_data;    /* written, unless its start is null */
  gatherum_buffer of_updates; /* written, unless its start is null */
} gatherum_gradients;

/* Writes the gradients of a scatter's operands. The program is a functional scatter with contiguous updates
 * and output. Products support floats of 32 and 64 bits and complex numbers, maxima and minima support
 * floats. Returns GATHERUM_INVALID_PROGRAM for any other program, and GATHERUM_TOO_SMALL if an operand is
 * smaller than the program requires. After an error the outputs are undefined. */
GATHERUM_API gatherum_status gatherum_differentiate(const gatherum_program* program,
                                                    const gatherum_gradients* gradients,
                                                    const gatherum_poll* poll,
                                                    gatherum_error* error) GATHERUM_NOEXCEPT;

/* Runs the program of a functional scatter with the reduction "max" or "min" and a contiguous output. For
 * each item of `out` it also writes the number of the first update that is the extreme. Updates are numbered
 * in row-major order of the indices, separately for each line if an index belongs to one item
 * ("scatter_elements"). Zeros of either sign are equal, and NaNs are equal. If the fold excludes the old
 * values, the start of `out` may be null: then only the positions are written. `none` is the position if the
 * old value is the extreme, or if no update addresses the item. `positions` are contiguous int64, one for
 * each item. Returns GATHERUM_INVALID_PROGRAM for other programs, and GATHERUM_TOO_SMALL if an operand is
 * smaller than the program requires. After an error the outputs are undefined. */
GATHERUM_API gatherum_status gatherum_extremes(const gatherum_program* program,
                                               const gatherum_operands* operands,
                                               const gatherum_buffer* positions, int64_t none,
                                               const gatherum_poll* poll,
                                               gatherum_error* error) GATHERUM_NOEXCEPT;

/* Like gatherum_extremes, without the updates that are NaN, for float16, bfloat16, float32 and float64 with
 * include_self false. The start of `out` must be null. Returns GATHERUM_INVALID_PROGRAM for many updates of
 * few single items, too. */
GATHERUM_API gatherum_status gatherum_extremes_skip_nan(const gatherum_program* program,
                                                        const gatherum_operands* operands,
                                                        const gatherum_buffer* positions, int64_t none,
                                                        const gatherum_poll* poll,
                                                        gatherum_error* error) GATHERUM_NOEXCEPT;

/* Runs the program of a scatter with the reduction "fmean", but writes the squared distances of the updates
 * from each mean instead of the means, for variances: for each item of `out`, `squares` receives the left
 * fold of (update - mean)^2 in float64, where the mean is exact and rounded once to float64, and `counts`
 * receives the number of updates, an int64. `squares` and `counts` are contiguous. The operands `data` and
 * `out` are not accessed. Supports float16, bfloat16, float32 and float64 with include_self false: rows, and
 * single items that all indices of the call address together, unless the items are more than about a
 * thirtieth of the updates. Returns GATHERUM_INVALID_PROGRAM for other programs, and GATHERUM_TOO_SMALL if an
 * operand is smaller than the program requires. After an error the outputs are undefined. */
GATHERUM_API gatherum_status gatherum_spreads(const gatherum_program* program,
                                              const gatherum_operands* operands,
                                              const gatherum_buffer* squares, const gatherum_buffer* counts,
                                              const gatherum_poll* poll,
                                              gatherum_error* error) GATHERUM_NOEXCEPT;
/* Like gatherum_spreads, without the updates that are NaN. If the start of `squares` is null, only the counts
 * of rows are written; single items return GATHERUM_INVALID_PROGRAM. */
GATHERUM_API gatherum_status gatherum_spreads_skip_nan(
    const gatherum_program* program, const gatherum_operands* operands, const gatherum_buffer* squares,
    const gatherum_buffer* counts, const gatherum_poll* poll, gatherum_error* error) GATHERUM_NOEXCEPT;

/* Edges from rows of a table to destinations, sorted by destination, for one or many folds of rows. Every
 * index is read and checked once. */
typedef struct gatherum_lists gatherum_lists;

/* One end of the edges. The program's `checks` has the loops over the edges, outermost first, and one
 * component of stride 1: the number of the addressed element. Without edges it has no component. */
typedef struct gatherum_edge_ends {
  const gatherum_program* program;
  const void* indices;
} gatherum_edge_ends;

/* If `sources` is null, edge i starts at row i. `block` is the number of destinations that share a list. If
 * it exceeds one, `sources` must be null, and folds must be of single items, with `start` and without
 * weights. If `numbered` is not 0, folds may have weights. After an error, no lists are created. For an
 * invalid index, `operand` of the error is "targets" or "sources". */
GATHERUM_API gatherum_status gatherum_lists_make(int64_t destinations, int64_t block,
                                                 const gatherum_edge_ends* targets,
                                                 const gatherum_edge_ends* sources, int32_t numbered,
                                                 const gatherum_poll* poll, gatherum_lists** lists,
                                                 gatherum_error* error) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_lists_free(gatherum_lists* lists) GATHERUM_NOEXCEPT;
GATHERUM_API int64_t gatherum_lists_bytes(const gatherum_lists* lists) GATHERUM_NOEXCEPT;

typedef struct gatherum_row_operands {
  const void* table;
  int64_t table_step;  /* bytes from one row of the table to the next */
  const void* weights; /* one for each edge, which multiplies its row; null: none */
  const void* start;   /* initial destinations, laid out as `out`, or `out` itself; null: `fill` */
  const void* fill;    /* one item, for destinations without edges; null: zero bytes */
  void* out;
  int64_t out_step;
  int32_t fresh; /* as in gatherum_operands */
} gatherum_row_operands;

/* Folds the rows of each destination in order of their edges. The program has the reduction. Its `copy` has
 * the loops of a row, with the steps in the table (data) and in `out` (other). Its `checks` has the loops of
 * the edges, with the steps of the weights (other). Without `start`, a destination starts from its first row.
 */
GATHERUM_API gatherum_status gatherum_lists_fold(const gatherum_lists* lists, const gatherum_program* rows,
                                                 const gatherum_row_operands* operands,
                                                 const gatherum_poll* poll,
                                                 gatherum_error* error) GATHERUM_NOEXCEPT;

/* The same without lists, for edges that are sorted by destination: edges pointer[i] up to pointer[i + 1]
 * belong to destination i. Each end's program has one loop. The component of the pointer's program has a size
 * one larger than the number of edges, and the mode is "raise". All entries and indices are checked.
 * `operand` of the error is "sources" for an invalid index, or "pointer" if the entries do not ascend from 0
 * to the number of edges. After such an error, `out` is undefined if `fresh` is set, and unchanged otherwise.
 */
GATHERUM_API gatherum_status gatherum_fold_pointed(const gatherum_edge_ends* pointer,
                                                   const gatherum_edge_ends* sources,
                                                   const gatherum_program* rows,
                                                   const gatherum_row_operands* operands,
                                                   const gatherum_poll* poll,
                                                   gatherum_error* error) GATHERUM_NOEXCEPT;

/* Writes the pointer array of edges whose targets ascend: for each destination, the number of edges with
 * lower targets, and then the number of edges. The program of the targets has one loop; the size of its
 * component is the number of destinations. `ascends` receives 1. If a target is invalid, or less than the
 * target before it, `ascends` receives 0, and `pointer` is undefined. */
GATHERUM_API gatherum_status gatherum_make_pointer(const gatherum_edge_ends* targets, int64_t* pointer,
                                                   int32_t* ascends, const gatherum_poll* poll,
                                                   gatherum_error* error) GATHERUM_NOEXCEPT;

/* A copy of rows from an open file to memory. Row `numbers[i]` of the file becomes row `positions[i]` of
 * the memory, or row i if `positions` is null. All numbers and positions are checked before they are used. */
typedef struct gatherum_rows {
  int file;             /* a descriptor */
  int64_t base, stride; /* offset of row 0 in the file, and bytes from one row to the next */
  int64_t item, extent; /* bytes to read of a row, and number of rows */
  const int64_t *numbers, *positions;
  int64_t count;
  void* out;
  int64_t capacity; /* rows that fit in `out` */
  double waste;     /* maximum ratio of bytes read to bytes of the pages that contain requested rows */
  int32_t once;     /* not 0: no page will be read again, so the system need not cache it */
  int64_t scratch;  /* bytes of additional memory that all threads together may use */
  /* the maximum number of reads in flight, if the file was opened with O_DIRECT, which reads only whole
   * pages; otherwise 0 */
  int32_t in_flight;
} gatherum_rows;

typedef struct gatherum_rows_read {
  /* "done", "interrupted", "truncated", "failed", "outside", "no memory", or "invalid": null pointers,
   * negative sizes, rows that overlap, or an `out` that shares memory with the numbers or positions */
  const char* status;
  int32_t error;       /* failed: the system's error number */
  int64_t position;    /* truncated, failed: offset in the file; outside: number of the request */
  int64_t until;       /* truncated, failed: end of the range being read */
  int64_t bytes, runs; /* bytes read, and number of runs of neighbouring rows */
} gatherum_rows_read;

GATHERUM_API gatherum_status gatherum_read_rows(const gatherum_rows* rows, const gatherum_poll* poll,
                                                gatherum_rows_read* result) GATHERUM_NOEXCEPT;

/* The largest number of whole pages between two requested rows that gatherum_read_rows reads together with
 * the rows. `waste` determines this number. Returns 0 if `rows` is not valid. Nothing is read; `positions`,
 * `out` and `capacity` are ignored. */
GATHERUM_API int64_t gatherum_rows_bridge(const gatherum_rows* rows) GATHERUM_NOEXCEPT;

/* How the program would run on the current number of threads: the algorithm, the reason for the choice,
 * and the bytes of working memory. */
typedef struct gatherum_description {
  const char* algorithm;
  char reason[512];
  int64_t scratch;
} gatherum_description;

GATHERUM_API gatherum_status gatherum_describe(const gatherum_program* program,
                                               gatherum_description* description) GATHERUM_NOEXCEPT;
/* The name of the i-th algorithm, null after the last one. */
GATHERUM_API const char* gatherum_algorithm(int32_t i) GATHERUM_NOEXCEPT;
/* The minimum sizes at which algorithms are chosen, by number. Tests lower these sizes. Returns the name of
 * the i-th size, null after the last one. */
GATHERUM_API const char* gatherum_threshold(int32_t i, int64_t* value) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_set_threshold(int32_t i, int64_t value) GATHERUM_NOEXCEPT;

/* Memory for large results, in huge pages if the system has them. Freed blocks are cached for reuse, up to a
 * limit in bytes. Returns null if memory runs out. */
GATHERUM_API void* gatherum_allocate(size_t bytes) GATHERUM_NOEXCEPT;
/* Does nothing and returns 0 if `memory` was not allocated by this library. */
GATHERUM_API int32_t gatherum_free(void* memory) GATHERUM_NOEXCEPT;
/* Makes the first `bytes` usable if the block is large enough. Returns the size of the block, or 0 if
 * `memory` was not allocated by this library. */
GATHERUM_API size_t gatherum_resize(void* memory, size_t bytes) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_set_cache_limit(size_t bytes) GATHERUM_NOEXCEPT;
GATHERUM_API size_t gatherum_get_cache_limit(void) GATHERUM_NOEXCEPT;
GATHERUM_API size_t gatherum_cached_bytes(void) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_clear_cache(void) GATHERUM_NOEXCEPT;

/* The number of threads that a call may use. Default: the processors that this process may use. */
GATHERUM_API void gatherum_set_num_threads(int32_t n) GATHERUM_NOEXCEPT;
GATHERUM_API int32_t gatherum_get_num_threads(void) GATHERUM_NOEXCEPT;
/* The instruction-set level in use; by default the best that this processor supports. */
GATHERUM_API const char* gatherum_level(void) GATHERUM_NOEXCEPT;
/* The name of the i-th level that this processor and this build support, best first; null after the last
 * one. */
GATHERUM_API const char* gatherum_available_level(int32_t i) GATHERUM_NOEXCEPT;
/* Selects a level by name, "" for the best. Returns 0 if it is not available. */
GATHERUM_API int32_t gatherum_set_level(const char* name) GATHERUM_NOEXCEPT;

/* A handler of XLA's typed foreign function interface (version 0.1) that runs a program. The call has the
 * operands data, indices and, for scatters, updates, and one result; each is checked against the program. A
 * result must not be aliased with an operand, except a scatter's result with its data. With a fourth operand,
 * the gradient of a product's result, the results are the gradients of data and updates. The attributes are
 * `program`, the bytes as int64 words; `fill`, an item in two such words; and `sentences`, lines of text:
 * first the message for indices that have changed during the call, then for each component of a tuple the
 * message for an invalid index, with a % for its value and one for each coordinate of its position. A call
 * with the attribute `function`, "exp" or "log", applies it to each item of its one operand. */
struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;
GATHERUM_API struct XLA_FFI_Error* gatherum_xla_call(struct XLA_FFI_CallFrame* frame) GATHERUM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* GATHERUM_H */
