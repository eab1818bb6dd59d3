/* torch's exchange of tensors, for a torch without CUDA: every tensor in host memory is on CUDA device 0.
 *
 * The core reads tensors through this table. Memory that it requests is host memory.
 */
#include <stdint.h>

typedef struct {
  void* data;
  int32_t device, number, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} Tensor;
typedef struct Managed {
  uint32_t version[2];
  void* context;
  void (*deleter)(struct Managed*);
  uint64_t flags;
  Tensor tensor;
} Managed;
typedef struct {
  uint32_t version[2];
  void* previous;
  int (*allocate)(Tensor*, Managed**, void*, void (*)(void*, const char*, const char*));
  int (*manage)(void*, Managed**);
  int (*to_object)(Managed*, void**);
  int (*view)(void*, Tensor*);
  int (*stream)(int32_t, int32_t, void**);
} Api;
enum { HOST = 1, CUDA = 2 };

static Api torch, stand_in;
static void* current = (void*)48;

static int allocate(Tensor* like, Managed** out, void* context, void (*fail)(void*, const char*, const char*)) {
  Tensor host = *like;
  host.device = HOST;
  const int status = torch.allocate(&host, out, context, fail);
  if (status == 0) (*out)->tensor.device = CUDA;
  return status;
}
static int to_object(Managed* tensor, void** object) {
  tensor->tensor.device = HOST;
  return torch.to_object(tensor, object);
}
static int view(void* object, Tensor* out) {
  const int status = torch.view(object, out);
  if (status == 0) out->device = CUDA;
  return status;
}
static int stream(int32_t device, int32_t number, void** out) {
  if (device != CUDA || number != 0) return -1;
  return *out = current, 0;
}

/* Returns the table for another current stream, which has the functions of torch's own table. */
const Api* exchange(const Api* of_torch, void* of_stream) {
  torch = stand_in = *of_torch;
  current = of_stream;
  stand_in.allocate = allocate;
  stand_in.to_object = to_object;
  stand_in.view = view;
  stand_in.stream = stream;
  return &stand_in;
}
void set_stream(void* stream) { current = stream; }
