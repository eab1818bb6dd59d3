/* gatherum.h: gather and scatter on memory, as a C library.
 *
 * A program is one call of an operator without its data: shapes, strides, types and attributes, checked and
 * lowered. gatherum_make_gather and its like make it, or Python does (bytes(gatherum.plan(...).program));
 * this library runs it on addresses, any number of times, from any number of threads. It needs no Python, and
 * no exception leaves it.
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
 * Indices are checked whatever they hold: after gatherum_check has accepted the operands, gatherum_run
 * touches no other memory.
 *
 * GATHERUM_INVALID_CALL is the status of a null pointer where none is allowed, of a negative size, and of an
 * output that shares memory with an input (unless a function says that it may): nothing is then written.
 * Functions without a status return 0 for a null pointer, unless they say otherwise.
 */
#ifndef GATHERUM_H
#define GATHERUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
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

/* Changes whenever a declaration below changes its meaning. */
#define GATHERUM_ABI_VERSION 1
GATHERUM_API int32_t gatherum_abi_version(void) GATHERUM_NOEXCEPT;

typedef enum gatherum_status {
  GATHERUM_OK = 0,
  GATHERUM_INVALID_INDEX,   /* mode "raise" met one; a scatter has written nothing */
  GATHERUM_INTERRUPTED,     /* the poll callback asked for it */
  GATHERUM_NO_MEMORY,       /* no working memory; a scatter in place has written nothing */
  GATHERUM_INVALID_PROGRAM, /* these bytes are no program of this version */
  GATHERUM_TOO_SMALL,       /* an operand's memory does not hold what the program addresses */
  GATHERUM_FAILED,          /* a file could not be read */
  /* shapes, dtypes or attributes that make no call: see gatherum_call_error; null pointers, negative sizes,
   * and an output that shares memory with an input */
  GATHERUM_INVALID_CALL
} gatherum_status;

/* What is known of an error; `message` is a constant, never null, in English. After GATHERUM_OK it is not
 * written. */
typedef struct gatherum_error {
  const char* message;
  const char* operand; /* TOO_SMALL, INVALID_CALL: its name */
  int64_t position;  /* INVALID_INDEX: the tuple's place in row-major order of the indices; -1: the indices */
  int64_t value;     /* have changed during the call. The index's value (uint64 ones as their bits), */
  int32_t component; /* and its component in the tuple. */
} gatherum_error;

typedef struct gatherum_program gatherum_program;

/* An operand without its data. What is not named is 0. */
typedef struct gatherum_spec {
  const char* dtype;      /* NumPy's name, or "bfloat16", "float8_e4m3fn", ...; null: items that only move */
  int32_t rank;           /* 0 to 64 */
  const int64_t* shape;   /* `rank` sizes; null only for rank 0 */
  const int64_t* strides; /* in bytes; null: C order */
  int64_t item;           /* where `dtype` is null: bytes of an item */
  int32_t swapped;        /* not 0: the bytes of each item have the order that is not this machine's */
} gatherum_spec;

/* The other arguments of an operator; gatherum_defaults has the defaults. */
typedef struct gatherum_attributes {
  int64_t axis;          /* `axis`, or `batch_dims` of "gather_nd" and "scatter_nd" */
  const char* mode;      /* "raise", "clip", "wrap", "fill" or "drop"; null: "raise" */
  int32_t negative;      /* whether negative indices count from the end */
  const char* reduction; /* scatters: "none", "add", "mul", "max", "min", "mean", "fsum" or "fmean";
                            null: "none", which is all that a gather takes */
  int32_t include_self;  /* scatters: whether the old value takes part; gathers ignore it */
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
  GATHERUM_FAULT_ATTRIBUTE, /* an attribute that the operator does not take, or out of its range */
  GATHERUM_FAULT_OPERAND,   /* an operand is missing */
  GATHERUM_FAULT_DTYPE,
  GATHERUM_FAULT_SHAPE /* shapes that do not fit each other, or are too large */
} gatherum_fault;

/* What is wrong with a call. */
typedef struct gatherum_call_error {
  gatherum_fault fault;
  const char* operand; /* "data", "indices", "updates" or "out"; "" where it is none of them. Never null */
  char message[512];   /* the operator, what was expected, and what was found; in English */
} gatherum_call_error;

/* Make the program of a call: each operator as Python's function of the same name, with the same errors.
 * `out`: the layout of the result; null: C order. `attributes` null: the defaults. `error` may be null. After
 * an error there is no program. A scatter may run in place where `out` is laid out as `data`. The fill value
 * of a gather is that of gatherum_operands. */
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

/* Reads a program from the bytes that Python or gatherum_program_write has made. */
GATHERUM_API gatherum_status gatherum_program_read(const void* bytes, size_t size, gatherum_program** program,
                                                   gatherum_error* error) GATHERUM_NOEXCEPT;
/* Writes at most `capacity` bytes; returns how many there are, 0 where memory ran out. */
GATHERUM_API size_t gatherum_program_write(const gatherum_program* program, void* bytes,
                                           size_t capacity) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_program_free(gatherum_program* program) GATHERUM_NOEXCEPT;
/* The result's shape: its rank, and one extent for each dimension. */
GATHERUM_API int32_t gatherum_program_rank(const gatherum_program* program) GATHERUM_NOEXCEPT;
GATHERUM_API const int64_t* gatherum_program_shape(const gatherum_program* program) GATHERUM_NOEXCEPT;
GATHERUM_API int32_t gatherum_program_scatters(const gatherum_program* program) GATHERUM_NOEXCEPT;
/* Whether gatherum_run on it takes long enough to be worth giving up a lock. */
GATHERUM_API int32_t gatherum_program_is_long(const gatherum_program* program) GATHERUM_NOEXCEPT;

/* Memory of an operand: its first element, and how many bytes before and behind that address belong to it. */
typedef struct gatherum_buffer {
  void* start;
  int64_t before, behind;
} gatherum_buffer;

/* A buffer of `bytes` bytes that begins with its first element, as contiguous arrays do. */
static inline gatherum_buffer gatherum_memory(const void* start, int64_t bytes) {
  gatherum_buffer buffer;
  buffer.start = (void*)start;
  buffer.before = 0;
  buffer.behind = bytes;
  return buffer;
}

typedef struct gatherum_operands {
  gatherum_buffer data; /* what is read; for a scatter in place the same as `out` */
  gatherum_buffer indices;
  gatherum_buffer updates; /* scatters */
  gatherum_buffer out;     /* the result */
  const void* fill;        /* one item, for gathers with the modes "fill" and "drop"; null: zero bytes */
  int32_t fresh;           /* not 0: `out` is thrown away if the call fails, so that it may be half-written */
} gatherum_operands;

/* Asked a few times a second during long calls, on the calling thread: not 0 interrupts the call. It is asked
 * only while nothing has been written in place. */
typedef struct gatherum_poll {
  int32_t (*ask)(void* context);
  void* context;
} gatherum_poll;

/* Whether every byte that the program can address lies in its operands, whatever the indices hold:
 * GATHERUM_TOO_SMALL otherwise, also for a null start. GATHERUM_INVALID_CALL where `out` shares memory with
 * an input, as in Python: `out` must not have a byte in common with `indices`, `updates`, `fill` or `data`. A
 * scatter may work in place, where `out` starts at the same address as `data` and has the same strides along
 * dimensions of more than one step. Bytes that the program cannot address do not count. Bounds are compared
 * first, then strides are searched with bounded work; what that does not decide counts as shared. */
GATHERUM_API gatherum_status gatherum_check(const gatherum_program* program,
                                            const gatherum_operands* operands,
                                            gatherum_error* error) GATHERUM_NOEXCEPT;
/* Runs the program. The operands must be what the program was made for: see gatherum_check. An `out` that
 * shares memory with an input, or a null start, is refused here, too. `poll` and `error` may be null. */
GATHERUM_API gatherum_status gatherum_run(const gatherum_program* program, const gatherum_operands* operands,
                                          const gatherum_poll* poll, gatherum_error* error) GATHERUM_NOEXCEPT;
/* Writes for each index tuple the number of what it addresses, -1 where it is invalid; returns how many are.
 * Returns -1, and writes nothing, where a pointer is null or `numbers` shares memory with the indices.
 * The modes "clip" and "wrap" bring every index into the data, unless a dimension has size 0. */
GATHERUM_API int64_t gatherum_number(const gatherum_program* program, const void* indices,
                                     int64_t* numbers) GATHERUM_NOEXCEPT;
/* Finds the first invalid index, in row-major order: GATHERUM_INVALID_INDEX, with its place in `error`, in
 * every mode. GATHERUM_OK: all are valid. `poll` and `error` may be null. */
GATHERUM_API gatherum_status gatherum_first_invalid(const gatherum_program* program, const void* indices,
                                                    const gatherum_poll* poll,
                                                    gatherum_error* error) GATHERUM_NOEXCEPT;

/* Computes "exp" or "log" of n items of "float16", "bfloat16", "float32" or "float64", with the same bits on
 * every machine and an error below 1 ulp. `to` may be `from`, and must not share memory with it otherwise.
 * `poll` may be null. */
GATHERUM_API gatherum_status gatherum_map(const char* function, const char* value, const void* from, void* to,
                                          int64_t n, const gatherum_poll* poll) GATHERUM_NOEXCEPT;

/* A gather of quantized rows: (value - zero point) * scale of the rows that `rows` numbers, computed in
 * float32 and rounded once. The gathered dimension has `gathered` rows; those before it are `before[0]`,
 * `before[1]` and `before[2]`, those behind it `behind[0]`, `behind[1]` and `behind[2]`, each the product of
 * dimensions. `before[1]`, `gathered` or `behind[1]` is cut into blocks that share a scale: `blocks` has
 * their sizes, 1 where none are shared. Everything is contiguous. */
typedef struct gatherum_quantized {
  const void *data, *scales, *zero_points; /* zero_points null: `zero` for all of them */
  void* out;
  int64_t data_bytes, scales_bytes, zero_points_bytes, out_bytes;
  const char* value;  /* "uint8", "int8", "float8_e4m3fn" or "float8_e5m2", of the data and zero points */
  const char* scale;  /* "float32", "float16", "bfloat16" or "float8_e8m0fnu" */
  const char* result; /* "float32", "float16" or "bfloat16" */
  int32_t bits;       /* 8; for integers also 2 and 4 */
  int32_t packed;     /* not 0: 8 / bits values lie in a byte, the first in the lowest bits */
  float zero;
  const int64_t* rows; /* `count` numbers, which must not change meanwhile; others than rows give zeros */
  int64_t count;
  int64_t before[3], gathered, behind[3], blocks[3];
  int64_t scale_line; /* the scales' last dimension; packed zero points begin a new byte with it */
} gatherum_quantized;

/* GATHERUM_INVALID_PROGRAM: it has no meaning. GATHERUM_TOO_SMALL: an operand does not hold what it
 * addresses, or is null. GATHERUM_INVALID_CALL: `out` shares memory with an operand. `poll` may be null. */
GATHERUM_API gatherum_status gatherum_dequantize(const gatherum_quantized* call,
                                                 const gatherum_poll* poll) GATHERUM_NOEXCEPT;

/* A fold that goes on: a scatter whose updates come in batches, with the bits of one call on all of them. The
 * caller keeps an accumulator (`sum_bytes` bytes) and a count (an int64) for each of the n elements of the
 * data, in C order; the counts begin at 0. */
typedef struct gatherum_fold {
  const char *reduction, *value; /* names: "add", "float32"; "none" and "none" moves items */
  int32_t include_self;
  int64_t item; /* bytes of an element of the data */
} gatherum_fold;

/* `any_order`, not 0: the accumulators hold the updates alone, need no beginning, and two folds can be
 * merged. */
GATHERUM_API gatherum_status gatherum_fold_describe(const gatherum_fold* fold, int32_t* any_order,
                                                    int64_t* sum_bytes) GATHERUM_NOEXCEPT;
GATHERUM_API gatherum_status gatherum_fold_begin(const gatherum_fold* fold, const void* data, void* sums,
                                                 int64_t n) GATHERUM_NOEXCEPT;
/* Folds a batch: the program of a scatter into contiguous data, its `indices` and `updates`. After an error
 * nothing has been folded. gatherum_check says whether the program stays within an `out` of n elements. */
GATHERUM_API gatherum_status gatherum_fold_take(const gatherum_program* program,
                                                const gatherum_operands* operands, void* sums,
                                                int64_t* counts, const gatherum_poll* poll,
                                                gatherum_error* error) GATHERUM_NOEXCEPT;
/* Folds the updates of another fold behind those of this one, which may be the same; only where the order
 * does not matter, else GATHERUM_INVALID_PROGRAM. */
GATHERUM_API gatherum_status gatherum_fold_merge(const gatherum_fold* fold, void* sums, int64_t* counts,
                                                 const void* other_sums, const int64_t* other_counts,
                                                 int64_t n) GATHERUM_NOEXCEPT;
/* Writes the result; the fold can go on. `data` is read where `any_order`, and may be null elsewhere. The
 * accumulator of an element whose count is 0 need not have been written where `any_order`. */
GATHERUM_API gatherum_status gatherum_fold_finish(const gatherum_fold* fold, const void* data,
                                                  const void* sums, const int64_t* counts, void* out,
                                                  int64_t n) GATHERUM_NOEXCEPT;

/* What the gradients of a scatter with the reduction "mul", "max" or "min" are made from. `updates` and
 * `of_updates` lie as the program says of its updates, all others as it says of its output. */
typedef struct gatherum_gradients {
  gatherum_buffer indices;
  gatherum_buffer data; /* the old values; not read where the program leaves them out of the fold */
  gatherum_buffer updates;
  gatherum_buffer result;     /* what the scatter gave; not read for "mul" */
  gatherum_buffer gradient;   /* of the result */
  gatherum_buffer of_data;    /* written, unless its start is null */
  gatherum_buffer of_updates; /* written, unless its start is null */
} gatherum_gradients;

/* Writes the gradients of a scatter's operands: the program is that of a functional scatter with contiguous
 * updates and output. Products have their gradients for floats of 32 and 64 bits and complex numbers, maxima
 * and minima for floats: GATHERUM_INVALID_PROGRAM for any other, GATHERUM_TOO_SMALL where an operand does not
 * hold what is addressed. After an error, what is written means nothing. */
GATHERUM_API gatherum_status gatherum_differentiate(const gatherum_program* program,
                                                    const gatherum_gradients* operands,
                                                    const gatherum_poll* poll,
                                                    gatherum_error* error) GATHERUM_NOEXCEPT;

/* Runs the program of a functional scatter with the reduction "max" or "min" and a contiguous output, and
 * writes beside each item of `out` the number of the first update that is the extreme: counted in row-major
 * order of the indices, of each line by itself where an index belongs to one item ("scatter_elements").
 * Zeros of either sign are equal, and so are NaN. Where the fold leaves out the old values, the start of
 * `out` may be null: the positions alone are written. `none`: where the old value is the extreme, or nothing
 * arrives. `positions` are contiguous int64, as many as there are items. GATHERUM_INVALID_PROGRAM for other
 * programs, GATHERUM_TOO_SMALL where an operand does not hold what is addressed. After an error, what is
 * written means nothing. */
GATHERUM_API gatherum_status gatherum_extremes(const gatherum_program* program,
                                               const gatherum_operands* operands,
                                               const gatherum_buffer* positions, int64_t none,
                                               const gatherum_poll* poll,
                                               gatherum_error* error) GATHERUM_NOEXCEPT;

/* Edges, each from a row of a table to a destination, put in order of their destinations: for many folds of
 * rows, or for one. Every index is read and checked once. */
typedef struct gatherum_lists gatherum_lists;

/* One end of the edges. The program's `checks` has their loops, outermost first, and one component of stride
 * 1: the number of what an index addresses. Without edges it has no component. */
typedef struct gatherum_edge_ends {
  const gatherum_program* program;
  const void* indices;
} gatherum_edge_ends;

/* `sources` null: the i-th edge comes from row i. `block`: how many destinations share a list; with more than
 * one, `sources` is null, and the folds are of single items, with `start` and without weights. `numbered`,
 * not 0: the folds may have weights. After an error there are no lists; `operand` of an invalid index is
 * "targets" or "sources". */
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
  const void* start;   /* what destinations start from, laid out as `out`, or `out` itself; null: `fill` */
  const void* fill;    /* one item, for destinations that no edge goes to; null: zero bytes */
  void* out;
  int64_t out_step;
  int32_t fresh; /* as in gatherum_operands */
} gatherum_row_operands;

/* Folds rows into destinations, those of each in order of their edges. The program's reduction says how, its
 * `copy` has the loops of a row (data: the table, other: `out`), and its `checks` those of the edges, with
 * the steps of the weights (other). Without `start`, a destination starts from its first row. */
GATHERUM_API gatherum_status gatherum_lists_fold(const gatherum_lists* lists, const gatherum_program* rows,
                                                 const gatherum_row_operands* operands,
                                                 const gatherum_poll* poll,
                                                 gatherum_error* error) GATHERUM_NOEXCEPT;

/* The same without lists, of edges in order of their destinations: edges pointer[i] up to pointer[i + 1] go
 * to row i. Each end's program has one loop; the pointer's component is one larger than there are edges, in
 * mode "raise". All entries and indices are checked: `operand` of an invalid index is "sources", or "pointer"
 * where the entries do not ascend from 0 to the number of edges. With `fresh`, what is written then means
 * nothing; without it, nothing is written. */
GATHERUM_API gatherum_status gatherum_fold_pointed(const gatherum_edge_ends* pointer,
                                                   const gatherum_edge_ends* sources,
                                                   const gatherum_program* rows,
                                                   const gatherum_row_operands* operands,
                                                   const gatherum_poll* poll,
                                                   gatherum_error* error) GATHERUM_NOEXCEPT;

/* Rows of an open file, at their positions: row numbers[i] goes to row places[i] of the memory (i where
 * places is null). Every number and place is checked before it is used. */
typedef struct gatherum_rows {
  int file;             /* a descriptor */
  int64_t base, stride; /* where row 0 begins in the file, and bytes from one row to the next */
  int64_t item, extent; /* bytes wanted of a row, and rows that there are */
  const int64_t *numbers, *places;
  int64_t count;
  void* out;
  int64_t capacity; /* rows that fit in `out` */
  double waste;     /* bytes read over the bytes of the pages that hold wanted rows, at most */
  int32_t once;     /* not 0: no page is wanted again, so that the system need not keep it */
  int64_t scratch;  /* bytes of memory that all threads together may use besides */
  /* above 0: the file is open for whole pages alone (O_DIRECT), and so many reads are in flight at most */
  int32_t in_flight;
} gatherum_rows;

typedef struct gatherum_rows_read {
  /* "done", "interrupted", "truncated", "failed", "outside", "no memory", or "invalid": null pointers,
   * negative sizes, rows that overlap, or an `out` that shares memory with the numbers or places */
  const char* status;
  int32_t error;       /* failed: the system's number for the reason */
  int64_t position;    /* truncated, failed: where in the file; outside: which request */
  int64_t until;       /* truncated, failed: the end of what was being read */
  int64_t bytes, runs; /* read, and in how many runs of neighbouring rows */
} gatherum_rows_read;

GATHERUM_API gatherum_status gatherum_read_rows(const gatherum_rows* rows, const gatherum_poll* poll,
                                                gatherum_rows_read* result) GATHERUM_NOEXCEPT;

/* The most whole pages between two wanted rows that gatherum_read_rows reads with them: as many as `waste`
 * allows; 0 where `rows` is not valid. Nothing is read; `places`, `out` and `capacity` do not matter. */
GATHERUM_API int64_t gatherum_rows_bridge(const gatherum_rows* rows) GATHERUM_NOEXCEPT;

/* How the program would run on the present number of threads: by which implementation, why, and with how many
 * bytes of working memory. */
typedef struct gatherum_description {
  const char* implementation;
  char reason[512];
  int64_t scratch;
} gatherum_description;

GATHERUM_API gatherum_status gatherum_describe(const gatherum_program* program,
                                               gatherum_description* description) GATHERUM_NOEXCEPT;
/* The name of the i-th implementation, null behind the last one. */
GATHERUM_API const char* gatherum_implementation(int32_t i) GATHERUM_NOEXCEPT;
/* Sizes from which on implementations are chosen, by number; for tests, which make them small. The name of
 * the i-th, null behind the last one. */
GATHERUM_API const char* gatherum_threshold(int32_t i, int64_t* value) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_set_threshold(int32_t i, int64_t value) GATHERUM_NOEXCEPT;

/* Memory for large results, in huge pages where the system has them; freed blocks are kept for the next ones,
 * up to a limit in bytes. Null: there is no memory. */
GATHERUM_API void* gatherum_allocate(size_t bytes) GATHERUM_NOEXCEPT;
/* 0: `memory` was not allocated here, and nothing was done. */
GATHERUM_API int32_t gatherum_free(void* memory) GATHERUM_NOEXCEPT;
/* Makes the first `bytes` usable, if there are so many. Returns how many there are at the most, 0 when
 * `memory` was not allocated here. */
GATHERUM_API size_t gatherum_resize(void* memory, size_t bytes) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_set_cache_limit(size_t bytes) GATHERUM_NOEXCEPT;
GATHERUM_API size_t gatherum_get_cache_limit(void) GATHERUM_NOEXCEPT;
GATHERUM_API size_t gatherum_cached_bytes(void) GATHERUM_NOEXCEPT;
GATHERUM_API void gatherum_clear_cache(void) GATHERUM_NOEXCEPT;

/* How many threads a call may use: by default the processors that this process may use. */
GATHERUM_API void gatherum_set_num_threads(int32_t n) GATHERUM_NOEXCEPT;
GATHERUM_API int32_t gatherum_get_num_threads(void) GATHERUM_NOEXCEPT;
/* The instruction-set level in use; by default the best that this processor has. */
GATHERUM_API const char* gatherum_level(void) GATHERUM_NOEXCEPT;
/* The name of the i-th level that this processor and this build have, best first; null behind the last one.
 */
GATHERUM_API const char* gatherum_available_level(int32_t i) GATHERUM_NOEXCEPT;
/* Chooses a level by name, "" for the best; 0: there is no such level here. */
GATHERUM_API int32_t gatherum_set_level(const char* name) GATHERUM_NOEXCEPT;

/* A handler of XLA's typed foreign function interface (version 0.1 of it) that runs a program. The call has
 * the operands data, indices and, for scatters, updates, and one result; each is checked against the program.
 * A result that is aliased with an operand is refused, except that of a scatter with its data.
 * With a fourth operand, the gradient of a product's result, the results are the gradients of data and
 * updates. Its attributes are `program`, the bytes as int64 words; `fill`, an item in two such words; and
 * `sentences`, lines of text: what to say where indices have changed during the call, then for each component
 * of a tuple what to say of an invalid index, with a % for its value and one for each coordinate of its
 * position. A call with the attribute `function`, "exp" or "log", is that of each item of its one operand. */
struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;
GATHERUM_API struct XLA_FFI_Error* gatherum_xla_call(struct XLA_FFI_CallFrame* frame) GATHERUM_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* GATHERUM_H */
