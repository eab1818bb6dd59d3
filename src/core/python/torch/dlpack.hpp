// Declarations of DLPack's tensor exchange (dlpack.h, version 1.3), as far as the core needs them. The layout
// of the structures is fixed for all versions 1.x, so the build needs no framework headers.
#pragma once

#include <cstdint>

namespace gatherum::dlpack {

struct Version {
  uint32_t major, minor;
};
inline constexpr uint32_t kMajor = 1;

struct Device {
  int32_t type, id;
};
inline constexpr int32_t kCpu = 1, kCuda = 2;

struct DataType {
  uint8_t code;  // see DLPack of dtypes.hpp
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in items
  uint64_t byte_offset;
};

struct ManagedTensor {
  Version version;
  void* context;
  void (*deleter)(ManagedTensor*);
  uint64_t flags;
  Tensor tensor;
};

using ErrorSetter = void (*)(void* context, const char* kind, const char* message);

// The functions of a framework, in a capsule named kCapsule. They return 0, or -1 with a Python error set.
struct ExchangeApi {
  Version version;
  void* previous;
  int (*allocate)(Tensor* like, ManagedTensor** out, void* context, ErrorSetter set_error);
  int (*manage)(void* object, ManagedTensor** out);
  int (*to_object)(ManagedTensor* tensor, void** object);  // takes ownership of the tensor
  int (*view)(void* object, Tensor* out);                  // borrowed from the object
  int (*stream)(int32_t type, int32_t id, void** stream);
};
inline constexpr const char* kCapsule = "dlpack_exchange_api";

}  // namespace gatherum::dlpack
