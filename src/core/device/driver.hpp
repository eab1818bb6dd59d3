// The CUDA driver functions that replays use. The driver's library is loaded on first use, and the build
// needs nothing from CUDA.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gatherum::device {

using Status = int;  // CUresult; 0 is success

struct Driver {
  Status (*launch)(void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters,
                   void** extra) = nullptr;
  Status (*clear)(uint64_t address, unsigned char value, size_t bytes, void* stream) = nullptr;
  Status (*copy_out)(void* target, uint64_t address, size_t bytes, void* stream) = nullptr;
  Status (*wait)(void* stream) = nullptr;
  Status (*current)(void** context) = nullptr;
  Status (*push)(void* context) = nullptr;
  Status (*pop)(void** context) = nullptr;
  Status (*is_capturing)(void* stream, int* status) = nullptr;
  Status (*load)(void** function, void* kernel) = nullptr;
  Status (*allocate)(uint64_t* address, size_t bytes, void* stream) = nullptr;
  Status (*free)(uint64_t address, void* stream) = nullptr;
  Status (*attribute)(void* value, int attribute, uint64_t address) = nullptr;
  Status (*create_event)(void** event, unsigned flags) = nullptr;
  Status (*record)(void* event, void* stream) = nullptr;
  Status (*query)(void* event) = nullptr;
};

inline constexpr Status kNotReady = 600;       // CUDA_ERROR_NOT_READY
inline constexpr int kDeviceOrdinal = 9;       // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
inline constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING

// Makes a context the current one during the object's lifetime, unless it already is the current one.
class Current {
 public:
  Current(const Driver& driver, void* context) : driver_(driver) {
    void* now = nullptr;
    status_ = driver.current(&now);
    if (status_ != 0 || now == context) return;
    status_ = driver.push(context);
    pushed_ = status_ == 0;
  }
  ~Current() {
    void* popped = nullptr;
    if (pushed_) driver_.pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  Status status() const { return status_; }

 private:
  const Driver& driver_;
  Status status_ = 0;
  bool pushed_ = false;
};

// Returns the driver. Returns null if this machine has no driver, or if its driver lacks one of these
// functions.
const Driver* open_driver();

}  // namespace gatherum::device
