// A kernel as a function of its packed arguments: compiled once for each variant, with shim.hpp in front.
#include KERNEL_FILE

extern "C" void shim_entry(const void* arguments) {
  KERNEL(*static_cast<const gatherum::Arguments*>(arguments));
}
extern "C" unsigned long long shim_bytes() { return sizeof(gatherum::Arguments); }
