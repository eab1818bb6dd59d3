/* XLA's interface for handlers on a device, in XLA for the processor.
 *
 * Handlers get a stream and scratch memory, which is host memory. Tests let XLA call `call` and
 * `recordable_call`, and set the handlers that these functions run.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t size;
  void* extension;
  void* context;
  void* stream;
} Stream;
typedef struct {
  size_t size;
  void* extension;
  void* context;
  size_t bytes, alignment;
  void* data;
} Allocation;
typedef struct {
  size_t size;
  void* extension;
  void* context;
  size_t bytes;
  void* data;
} Release;
enum { CREATE_ERROR, GET_STREAM = 4, ALLOCATE = 9, FREE = 10, FUNCTIONS = 32 };
typedef struct {
  size_t size;
  void* extension;
  char version[24];
  void* internal;
  void* functions[FUNCTIONS];
} Api;
typedef struct {
  size_t size;
  void* extension;
  const Api* api;
  void* context;
  int32_t stage;
} Frame;
typedef struct {
  size_t size;
  void* extension;
  const char* message;
  int32_t code;
} NewError;

void* (*xla_handlers[2])(Frame*); /* for `call` and `recordable_call` */
long xla_stream = 48;
long xla_blocks = 0;     /* scratch memory that is not freed yet */
long xla_allocated = 0;  /* blocks of scratch memory so far */
int xla_memory_left = 1; /* 0: there is no scratch memory */
static const Api* real;

static void* get_stream(Stream* out) { return out->stream = (void*)xla_stream, NULL; }

static void* allocate(Allocation* out) {
  if (!xla_memory_left || out->alignment > 16) { /* as XLA for GPUs refuses it */
    NewError no_memory = {sizeof no_memory, NULL, "XLA's words", 8};
    return ((void* (*)(NewError*))real->functions[CREATE_ERROR])(&no_memory);
  }
  out->data = aligned_alloc(256, (out->bytes + 255) / 256 * 256);
  memset(out->data, 0xA9, out->bytes);
  ++xla_blocks, ++xla_allocated;
  return NULL;
}

static void* release(Release* in) { return free(in->data), --xla_blocks, NULL; }

static void* run(int handler, Frame* frame) {
  if (frame->api == NULL || frame->context == NULL) return xla_handlers[handler](frame);
  Api device = {0};
  real = frame->api;
  memcpy(&device, real, real->size < sizeof device ? real->size : sizeof device);
  device.functions[GET_STREAM] = (void*)get_stream;
  device.functions[ALLOCATE] = (void*)allocate;
  device.functions[FREE] = (void*)release;
  frame->api = &device;
  void* const error = xla_handlers[handler](frame);
  frame->api = real;
  return error;
}

void* call(Frame* frame) { return run(0, frame); }
void* recordable_call(Frame* frame) { return run(1, frame); }
