// The part of XLA's typed foreign function interface that the handler needs: the C declarations of version
// 0.1. They are rewritten here, so that building the core needs nothing from XLA. Every runtime since jaxlib
// 0.5 calls handlers of version 0.1. Later versions only add fields at the end.
// https://github.com/openxla/xla/blob/main/xla/ffi/api/c_api.h
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct XLA_FFI_Error;
struct XLA_FFI_ExecutionContext;
struct XLA_FFI_InternalApi;

inline constexpr int32_t kMetadataExtension = 1;

struct XLA_FFI_Extension_Base {
  size_t struct_size;
  int32_t type;
  XLA_FFI_Extension_Base* next;
};

struct XLA_FFI_Api_Version {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int32_t major_version, minor_version;
};

struct XLA_FFI_Error_Destroy_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Error* error;
};

// The requests that a handler for a device makes to the runtime.
struct XLA_FFI_Stream_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  void* stream;
};

struct XLA_FFI_DeviceMemory_Allocate_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  size_t size;
  size_t alignment;
  void* data;
};

struct XLA_FFI_DeviceMemory_Free_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  size_t size;
  void* data;
};

enum XLA_FFI_Error_Code : int32_t {
  XLA_FFI_INVALID_ARGUMENT = 3,
  XLA_FFI_RESOURCE_EXHAUSTED = 8,
  XLA_FFI_OUT_OF_RANGE = 11,
  XLA_FFI_INTERNAL = 13
};

struct XLA_FFI_Error_Create_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  const char* message;
  XLA_FFI_Error_Code code;
};

// The head of the runtime's table of functions. Handlers do not call the functions of type `Unused`.
struct XLA_FFI_Api {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Api_Version api_version;
  const XLA_FFI_InternalApi* internal_api;
  XLA_FFI_Error* (*create_error)(XLA_FFI_Error_Create_Args*);
  using Unused = void (*)();
  Unused get_message;
  void (*destroy_error)(XLA_FFI_Error_Destroy_Args*);
  Unused register_handler;
  XLA_FFI_Error* (*get_stream)(XLA_FFI_Stream_Get_Args*);
  Unused register_type, get_context, set_state, get_state;
  XLA_FFI_Error* (*allocate)(XLA_FFI_DeviceMemory_Allocate_Args*);
  XLA_FFI_Error* (*free)(XLA_FFI_DeviceMemory_Free_Args*);
};

// The integers that the handler refers to by name. dtypes.hpp lists the numbers of all types whose items take
// whole bytes.
enum XLA_FFI_DataType : int32_t {
  XLA_FFI_S8 = 2,
  XLA_FFI_S64 = 5,
  XLA_FFI_U8 = 6,
  XLA_FFI_U64 = 9,
};

struct XLA_FFI_Buffer {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};

inline constexpr int32_t kBufferArgument = 1, kBufferResult = 1;

struct XLA_FFI_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  int32_t* types;
  void** args;
};

struct XLA_FFI_Rets {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  int32_t* types;
  void** rets;
};

struct XLA_FFI_ByteSpan {
  const char* ptr;
  size_t len;
};

struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;
  void* data;
};

inline constexpr int32_t kArrayAttribute = 1, kStringAttribute = 4;

struct XLA_FFI_Attrs {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  int32_t* types;
  XLA_FFI_ByteSpan** names;
  void** attrs;
};

inline constexpr int32_t kInitializationStage = 2, kExecutionStage = 3;

// The trait of a handler whose calls may be part of a command buffer, which the runtime captures and replays.
inline constexpr uint32_t kRecordable = 1;

struct XLA_FFI_CallFrame {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  const XLA_FFI_Api* api;
  XLA_FFI_ExecutionContext* ctx;
  int32_t stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
};

struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;
  uint32_t traits;
};

struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base base;
  XLA_FFI_Metadata* metadata;
};

}  // extern "C"
