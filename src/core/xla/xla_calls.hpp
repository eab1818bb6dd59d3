// Reads and checks XLA custom calls, for the handlers on the processor and on CUDA devices.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "include/gatherum.h"
#include "model/dtypes.hpp"
#include "model/program.hpp"
#include "xla/xla_ffi.hpp"

namespace gatherum::xla {

// A program in its serialized form, as a call contains it.
struct Words {
  const int64_t* start = nullptr;
  size_t size = 0;

  const auto* bytes() const { return reinterpret_cast<const uint8_t*>(start); }
  size_t count() const { return size * sizeof(int64_t); }
};

// A deserialized program, and the properties that its buffers must have.
struct KnownProgram {
  std::vector<int64_t> words;
  gatherum_program* program = nullptr;
  int64_t item = 0;
  Value value = Value::none;
  IndexType index;
  bool scatter = false;

  KnownProgram() = default;
  KnownProgram(const KnownProgram&) = delete;
  KnownProgram& operator=(const KnownProgram&) = delete;
  ~KnownProgram() { gatherum_program_free(program); }

  bool matches(const Words& w) const {
    return words.size() == w.size && std::memcmp(words.data(), w.start, w.count()) == 0;
  }
};

using SharedProgram = std::shared_ptr<const KnownProgram>;

// The value type of a buffer's items and their width in bytes. The value type is `none` if items can be
// copied but not reduced.
struct ItemType {
  Value value = Value::none;
  int64_t width = 0;  // 0: a fraction of a byte, or unknown
};

ItemType item_type(XLA_FFI_DataType type);

// The memory of a buffer.
gatherum_buffer memory_of(const XLA_FFI_Buffer& buffer);

// Returns argument or result i of a call, or null if it is not a buffer.
const XLA_FFI_Buffer* argument(const XLA_FFI_Args& args, int64_t i);
const XLA_FFI_Buffer* result(const XLA_FFI_Rets& rets, int64_t i);

// Returns the attribute with this name and type, or null if there is none.
const void* attribute(const XLA_FFI_Attrs& attrs, std::string_view name, int32_t type);

// A call on buffers.
struct XlaCall {
  // Only a call for gradients has the last two operands. Its `out` is the gradient of the data.
  const XLA_FFI_Buffer *data, *indices, *updates, *out, *gradient, *of_updates;
  Words program;
  const void* fill;  // one item
  std::string_view messages;
};

// A call that computes exp or log of each item of a buffer.
struct MapCall {
  const XLA_FFI_Buffer *from, *to;
  std::string function;
  const char* type;  // the name of the value type, or ""
  int64_t items;
};

// A call that computes a cumulative function of the values of groups.
struct CumulativeCall {
  gatherum_cumulation of;
  std::string function;
  void* to;
  int64_t items;
};

// Returns true if a function's operands include groups.
bool takes_groups(const XLA_FFI_CallFrame& frame);

// Reads a call of this kind. Returns an error message if its form is invalid, or null.
const char* read(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function, MapCall& call);
const char* read(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function, CumulativeCall& call);

inline constexpr const char* kNoFunction = "the function is exp or log, of floats";
inline constexpr const char* kNotCumulative = "there is no such function of the values of groups";

// Finds a program in the cache, or reads it. Returns an error message, or null.
const char* find_program(const Words& words, SharedProgram& known);

// Reads the program, the fill value and the messages of a call. Returns an error message, or null.
const char* read_attributes(const XLA_FFI_CallFrame& frame, XlaCall& call);

// Reads a call. Returns an error message if its form is invalid, or null.
const char* read(const XLA_FFI_CallFrame& frame, XlaCall& call);

// Returns true if a buffer has the index type of a program.
bool holds_indices(const XLA_FFI_Buffer& buffer, const KnownProgram& known);

// Checks that buffers have the types and sizes that the program was made for. Returns an error message, or
// null.
const char* find_unfit(const XlaCall& call, const KnownProgram& known, const gatherum_operands& operands);

gatherum_operands operands_of(const XlaCall& call);

// The message about an invalid index. The first line is for indices that have changed. The following lines,
// one for each component of a tuple, contain one % for the value and one for each coordinate of the position.
std::string message(const XlaCall& call, const KnownProgram& known, const gatherum_error& error);

XLA_FFI_Error* fail(const XLA_FFI_CallFrame& frame, XLA_FFI_Error_Code code, const char* message);

// Answers the runtime's query before the first run, with the version of the interface that the handlers
// implement and the traits of this handler. Returns false if the frame is not a query.
bool answer_metadata_query(XLA_FFI_CallFrame& frame, uint32_t traits = 0);

}  // namespace gatherum::xla
