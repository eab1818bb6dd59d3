// The functions of the CUDA driver that replays use. The driver's library is loaded on first use, and the
// build needs nothing from CUDA.
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
};

// Returns the driver, or null if this machine has none or one without these functions.
const Driver* open_driver();

}  // namespace gatherum::device
