/* A CUDA driver without a device: its memory is the host's, and every call is a line on standard output.
 *
 * cuda.bindings and the core load it in the place of libcuda.so.1, so every argument is seen as it arrives in
 * C. Kernels do nothing unless a test sets `fake_run`; without it, reads return zeros. Code that begins with
 * "struct N " is a kernel whose struct has N bytes: a launch shows all of them. Code that begins with "shown
 * N " is a kernel of which a launch shows N bytes, and whose parameters are not known. A launch of other code
 * shows the first ten bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;

/* Set by tests, through ctypes. */
enum { TO_OUTPUT, TO_TEXT, TO_NOTHING };
int fake_log = TO_OUTPUT; /* where the lines go: to standard output, to fake_text, or to nothing */
char fake_text[1 << 24];  /* the lines since fake_length was set to 0 */
size_t fake_length = 0;
int fake_events_done = 0;
int fake_launches_left = -1; /* the launches before one fails; negative: none fails */
void (*fake_run)(const char* code, const void* arguments, unsigned grid, unsigned block) = NULL;

static void put(const char* format, ...) {
  va_list a;
  va_start(a, format);
  if (fake_log == TO_OUTPUT) vprintf(format, a), fflush(stdout);
  if (fake_log == TO_TEXT)
    fake_length += (size_t)vsnprintf(fake_text + fake_length, sizeof fake_text - fake_length, format, a);
  va_end(a);
}

static void say(const char* name, long a, long b, long c) {
  if (fake_log != TO_NOTHING) put("%s %ld %ld %ld\n", name, a, b, c);
}

typedef struct {
  long size; /* of the struct, as far as a launch shows it */
  int known;
  char code[512];
} Kernel;
static _Thread_local void* contexts[16];
static _Thread_local int depth = 0;

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorString(int status, const char** words) { return *words = "words", status < 0; }
int cuDeviceGet(int* device, int number) { return *device = number, number < 2 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)(0x1000L + device), 0; }
int cuCtxPushCurrent_v2(void* context) {
  return contexts[depth++] = context, say("push", (long)context, 0, 0), 0;
}
int cuCtxPopCurrent_v2(void** context) { return *context = contexts[--depth], say("pop", 0, 0, 0), 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  say("attribute", attribute, device, 0);
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 132;
  return 0;
}
int cuPointerGetAttribute(void* value, int attribute, Address at) {
  return *(int*)value = 1, say("pointer attribute", attribute, (long)at, 0), 0;
}
int cuStreamIsCapturing(void* stream, int* status) { return *status = stream == (void*)40, 0; }
int cuLibraryLoadData(void** library, const void* code, void* a, void* b, unsigned m, void* c, void* d,
                      unsigned n) {
  (void)a, (void)b, (void)c, (void)d;
  *library = (void*)0x77;
  const int known = strncmp(code, "struct ", 7) == 0;
  if (known || strncmp(code, "shown ", 6) == 0) {
    Kernel* kernel = calloc(1, sizeof *kernel);
    kernel->known = known;
    kernel->size = strtol(strchr(code, ' '), NULL, 10);
    snprintf(kernel->code, sizeof kernel->code, "%s", (const char*)code);
    return *library = kernel, 0;
  }
  return say("load", *(const char*)code, m, n), 0;
}
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  if (library != (void*)0x77) return *kernel = library, 0;
  put("kernel %s of %lx\n", name, (long)library);
  return *kernel = (void*)0x88, 0;
}
/* Answers CUDA_ERROR_NOT_SUPPORTED for a kernel whose parameters are not known. */
int cuKernelGetParamInfo(void* kernel, size_t number, size_t* offset, size_t* size) {
  const Kernel* k = kernel;
  if (kernel == (void*)0x88 || !k->known) return 801;
  if (number != 0) return 1;
  return *offset = 0, *size = (size_t)k->size, 0;
}
int cuLaunchKernel(void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** parameters, void** extra) {
  if (fake_launches_left >= 0 && fake_launches_left-- == 0) return 719;
  const Kernel* k = kernel == (void*)0x88 ? NULL : kernel;
  if (k != NULL && fake_run != NULL) fake_run(k->code, parameters[0], gx, bx);
  if (fake_log == TO_NOTHING) return 0;
  put("launch %lx grid %u %u %u block %u %u %u shared %u stream %ld struct ", (long)kernel, gx, gy, gz, bx,
      by, bz, shared, (long)stream);
  if (k == NULL) put("%.10s", (const char*)parameters[0]);
  for (long i = 0; k != NULL && i < k->size; ++i) put("%02x", ((const unsigned char*)parameters[0])[i]);
  put(" extra %ld", (long)extra);
  if (k != NULL) put(" context %lx code %s", depth ? (long)contexts[depth - 1] : 0L, k->code);
  put("\n");
  return 0;
}
int cuMemsetD8Async(Address at, unsigned char value, size_t n, void* stream) {
  memset((void*)at, value, n);
  if (fake_log == TO_TEXT) put("at %llx ", at);
  return say("memset", value, (long)n, (long)stream), 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, void* stream) {
  memcpy((void*)to, from, n);
  return say("copy in", (long)n, (long)stream, 0), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, void* stream) {
  if (fake_run != NULL)
    memcpy(to, (void*)from, n);
  else
    memset(to, 0, n); /* no kernel has written the record of invalid indices */
  if (fake_log == TO_TEXT) put("at %llx ", from);
  return say("copy out", (long)n, (long)stream, 0), 0;
}
int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, void* stream) {
  memmove((void*)to, (void*)from, n);
  return say("copy", (long)n, (long)stream, 0), 0;
}
int cuStreamSynchronize(void* stream) { return say("wait for", (long)stream, 0, 0), 0; }
int cuMemAllocAsync(Address* at, size_t n, void* stream) {
  say("allocate", (long)n, (long)stream, 0);
  if (n > 1L << 40) return 2;
  return *at = (Address)aligned_alloc(512, (n + 511) / 512 * 512), 0;
}
int cuMemFreeAsync(Address at, void* stream) { return free((void*)at), say("free", (long)stream, 0, 0), 0; }
int cuEventCreate(void** event, unsigned flags) { return *event = (void*)0x99, say("event", flags, 0, 0), 0; }
int cuEventRecord(void* event, void* stream) { return say("record", (long)event, (long)stream, 0), 0; }
int cuEventQuery(void* event) { return event != (void*)0x99 ? 1 : fake_events_done ? 0 : 600; }
int cuEventSynchronize(void* event) { return event == (void*)0x99 ? 0 : 1; }
int cuEventDestroy_v2(void* event) { return say("destroy", (long)event, 0, 0), 0; }
int cuEventElapsedTime_v2(float* time, void* begin, void* end) { return *time = 0.5f, begin != end; }
int cuEventElapsedTime(float* time, void* begin, void* end) {
  return cuEventElapsedTime_v2(time, begin, end);
}
int cuStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return say("wait on the device", (long)stream, (long)event, flags), 0;
}
/* What CUB's sorts link to. They are compiled and loaded here, and sort nothing. */
int cuDeviceGetCount(int* count) { return *count = 2, 0; }
int cuCtxGetCurrent(void** context) { return *context = depth ? contexts[depth - 1] : (void*)0x1000, 0; }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  (void)attribute, (void)function;
  return *value = 0, 0;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  (void)function, (void)attribute, (void)value;
  return 0;
}
int cuKernelGetFunction(void** function, void* kernel) { return *function = kernel, 0; }
int cuLaunchKernelEx(const void* how, void* function, void** parameters, void** extra) {
  (void)how, (void)function, (void)parameters, (void)extra;
  return say("launch", 0, 0, 0), 0;
}
int cuLibraryUnload(void* library) { return library == (void*)0x77 ? 0 : 1; }
int cuMemcpyAsync(Address to, Address from, size_t n, void* stream) {
  return say("copy", (long)n, (long)stream, (long)(to - from)), 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, size_t shared) {
  (void)function, (void)threads, (void)shared;
  return *blocks = 1, 0;
}
int cuGetProcAddress_v2(const char* name, void** function, int version, Address flags, int* status) {
  (void)version, (void)flags;
  char newer[128];
  snprintf(newer, sizeof newer, "%s_v2", name);
  void* self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if ((*function = dlsym(self, newer)) == NULL) *function = dlsym(self, name);
  if (status) *status = *function == NULL;
  return *function == NULL ? 500 : 0;
}
int cuGetProcAddress(const char* name, void** function, int version, Address flags) {
  return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
