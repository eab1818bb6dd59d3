#include "device/driver.hpp"

#include <optional>

#include "platform/system.hpp"

namespace gatherum::device {
namespace {

std::optional<Driver> load_driver() {
#if defined(_WIN32)
  void* const library = open_library("nvcuda.dll");
#else
  void* const library = open_library("libcuda.so.1");
#endif
  if (library == nullptr) return {};
  bool all = true;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = find_symbol(library, name);
    all = all && symbol != nullptr;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  Driver driver;
  // Some names have a version suffix (_v2): CUDA's header defines the plain name as a macro for the versioned
  // name.
  find(driver.launch, "cuLaunchKernel");
  find(driver.clear, "cuMemsetD8Async");
  find(driver.copy_out, "cuMemcpyDtoHAsync_v2");
  find(driver.wait, "cuStreamSynchronize");
  find(driver.current, "cuCtxGetCurrent");
  find(driver.push, "cuCtxPushCurrent_v2");
  find(driver.pop, "cuCtxPopCurrent_v2");
  find(driver.is_capturing, "cuStreamIsCapturing");
  find(driver.load, "cuKernelGetFunction");
  find(driver.allocate, "cuMemAllocAsync");
  find(driver.free, "cuMemFreeAsync");
  find(driver.attribute, "cuPointerGetAttribute");
  find(driver.create_event, "cuEventCreate");
  find(driver.record, "cuEventRecord");
  find(driver.query, "cuEventQuery");
  return all ? std::optional(driver) : std::nullopt;
}

}  // namespace

const Driver* open_driver() {
  static const std::optional<Driver> driver = load_driver();
  return driver ? &*driver : nullptr;
}

}  // namespace gatherum::device
