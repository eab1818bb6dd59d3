// A kernel as a function of its packed arguments: compiled once for each variant, after shim.hpp.
#include KERNEL_FILE

#define SHIM_EXPORT extern "C" __attribute__((visibility("default")))

SHIM_EXPORT void shim_entry(const void* arguments) {
  KERNEL(*static_cast<const gatherum::Arguments*>(arguments));
}
SHIM_EXPORT unsigned long long shim_bytes() { return sizeof(gatherum::Arguments); }
