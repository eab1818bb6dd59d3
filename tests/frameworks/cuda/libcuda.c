/* A CUDA driver that has no device: its memory is the host's, and every call is a line on standard output.
 *
 * cuda.bindings loads it in the place of libcuda.so.1, so what the room passes to the real bindings is seen
 * as it arrives in C. Kernels do nothing; a launch shows the struct that it was given.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long Address;

static void say(const char* name, long a, long b, long c) {
  printf("%s %ld %ld %ld\n", name, a, b, c);
  fflush(stdout);
}

int cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorString(int status, const char** words) { return *words = "words", status < 0; }
int cuDeviceGet(int* device, int number) { return *device = number, number < 2 ? 0 : 101; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)(0x1000L + device), 0; }
int cuCtxPushCurrent_v2(void* context) { return say("push", (long)context, 0, 0), 0; }
int cuCtxPopCurrent_v2(void** context) { return *context = 0, say("pop", 0, 0, 0), 0; }
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
  return say("load", *(const char*)code, m, n), 0;
}
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  printf("kernel %s of %lx\n", name, (long)library);
  return *kernel = (void*)0x88, 0;
}
int cuLaunchKernel(void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** parameters, void** extra) {
  printf("launch %lx grid %u %u %u block %u %u %u shared %u stream %ld struct %.10s extra %ld\n",
         (long)kernel, gx, gy, gz, bx, by, bz, shared, (long)stream, (const char*)parameters[0], (long)extra);
  return 0;
}
int cuMemsetD8Async(Address at, unsigned char value, size_t n, void* stream) {
  memset((void*)at, value, n);
  return say("memset", value, (long)n, (long)stream), 0;
}
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, void* stream) {
  memcpy((void*)to, from, n);
  return say("copy in", (long)n, (long)stream, 0), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, void* stream) {
  memcpy(to, (void*)from, n);
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
int cuEventQuery(void* event) { return event == (void*)0x99 ? 600 : 1; }
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
int cuCtxGetCurrent(void** context) { return *context = (void*)0x1000, 0; }
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
