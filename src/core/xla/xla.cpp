// Runs programs as custom calls of XLA: a handler of its typed foreign function interface, on top of the C
// interface. The call contains the bytes of its program, so an executable compiled by XLA also runs in
// another process.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/platform.hpp"
#include "include/gatherum.h"
#include "model/dtypes.hpp"
#include "model/program.hpp"
#include "xla/xla_ffi.hpp"

namespace gatherum {
namespace {

// A program in its serialized form, as a call contains it.
struct Words {
  const int64_t* start = nullptr;
  size_t size = 0;

  const auto* bytes() const { return reinterpret_cast<const uint8_t*>(start); }
  size_t count() const { return size * sizeof(int64_t); }
};

// A deserialized program, and the properties that its buffers must have.
struct Known {
  std::vector<int64_t> words;
  gatherum_program* program = nullptr;
  int64_t item = 0;
  Value value = Value::none;
  IndexType index;
  bool scatter = false;

  Known() = default;
  Known(const Known&) = delete;
  Known& operator=(const Known&) = delete;
  ~Known() { gatherum_program_free(program); }

  bool matches(const Words& w) const {
    return words.size() == w.size && std::memcmp(words.data(), w.start, w.count()) == 0;
  }
};

using Shared = std::shared_ptr<const Known>;

// A slot of the cache of recently read programs. The last word of a program, a checksum, selects the slot.
// Reading a program takes longer than a small call.
struct Slot {
  std::mutex mutex;
  Shared known;
};
constexpr size_t kSlots = 256;

Slot& slot_of(const Words& words) {
  static auto* slots = new std::array<Slot, kSlots>;  // never destroyed: a call may outlast statics
  return (*slots)[static_cast<uint64_t>(words.start[words.size - 1]) % kSlots];
}

const char* read(const Words& words, Shared& known) {
  auto created = std::make_shared<Known>();
  gatherum_error error;
  if (gatherum_program_read(words.bytes(), words.count(), &created->program, &error) != GATHERUM_OK)
    return error.message;
  Program fields;
  if (const char* wrong = from_bytes(words.bytes(), words.count(), fields)) return wrong;
  created->words.assign(words.start, words.start + words.size);
  created->item = fields.item;
  created->value = fields.combine.value;
  created->index = fields.index;
  created->scatter = fields.scatter;
  known = std::move(created);
  return nullptr;
}

// Finds a program in the cache, or reads it. Returns an error message, or null.
const char* find(const Words& words, Shared& known) {
  if (words.size == 0) return "the call carries no program";
  Slot& slot = slot_of(words);
  {
    const std::lock_guard lock(slot.mutex);
    if (slot.known && slot.known->matches(words)) {
      known = slot.known;
      return nullptr;
    }
  }
  if (const char* wrong = read(words, known)) return wrong;
  Shared last = known;
  const std::lock_guard lock(slot.mutex);
  slot.known.swap(last);
  return nullptr;
}

// The value type of a buffer's items and their width in bytes. The value type is `none` if items can be
// copied but not reduced.
struct ItemType {
  Value value = Value::none;
  int64_t width = 0;  // 0: a fraction of a byte, or unknown
};

constexpr auto kItemTypes = [] {
  std::array<ItemType, 64> types{};
  for (const DTypeRow& row : kDTypes)
    if (row.xla > 0) types[static_cast<size_t>(row.xla)] = {row.value, has_whole_bytes(row) ? row.bytes : 0};
  return types;
}();

ItemType item_type(XLA_FFI_DataType type) {
  const auto number = static_cast<size_t>(type);
  return number < kItemTypes.size() ? kItemTypes[number] : ItemType{};
}

bool holds_indices(XLA_FFI_DataType type, const IndexType& index) {
  const bool is_signed = type >= XLA_FFI_S8 && type <= XLA_FFI_S64;
  const bool is_unsigned = type >= XLA_FFI_U8 && type <= XLA_FFI_U64;
  return (index.is_signed ? is_signed : is_unsigned) && item_type(type).width == index.width &&
         !index.swapped;
}

gatherum_buffer memory_of(const XLA_FFI_Buffer& buffer) {
  int64_t bytes = item_type(buffer.dtype).width;
  for (int64_t i = 0; i < buffer.rank; ++i) bytes = times(bytes, buffer.dims[i]);
  return gatherum_memory(buffer.data, bytes);
}

struct XlaCall {
  // Only a call for gradients has the last two; its `out` is the gradient of the data.
  const XLA_FFI_Buffer *data, *indices, *updates, *out, *gradient, *of_updates;
  Words program;
  const void* fill;  // one item
  std::string_view messages;
};

const XLA_FFI_Buffer* argument(const XLA_FFI_Args& args, int64_t i) {
  return i < args.size && args.types[i] == kBufferArgument ? static_cast<XLA_FFI_Buffer*>(args.args[i])
                                                           : nullptr;
}

const XLA_FFI_Buffer* result(const XLA_FFI_Rets& rets, int64_t i) {
  return i < rets.size && rets.types[i] == kBufferResult ? static_cast<XLA_FFI_Buffer*>(rets.rets[i])
                                                         : nullptr;
}

const void* attribute(const XLA_FFI_Attrs& attrs, std::string_view name, int32_t type) {
  for (int64_t i = 0; i < attrs.size; ++i)
    if (std::string_view(attrs.names[i]->ptr, attrs.names[i]->len) == name)
      return attrs.types[i] == type ? attrs.attrs[i] : nullptr;
  return nullptr;
}

const XLA_FFI_Array* array_of_words(const XLA_FFI_Attrs& attrs, std::string_view name) {
  const auto* array = static_cast<const XLA_FFI_Array*>(attribute(attrs, name, kArrayAttribute));
  return array != nullptr && array->dtype == XLA_FFI_S64 ? array : nullptr;
}

constexpr size_t kFillWords = 2;  // the widest item has 16 bytes

// Reads a call. Returns an error message if its form is invalid, or null.
const char* read(const XLA_FFI_CallFrame& frame, XlaCall& call) {
  const int64_t n = frame.args.size;
  if (n < 2 || n > 4 || (n == 4 && frame.rets.size != 2))
    return "the call must have two or three operands, or four and two results for gradients";
  call.data = argument(frame.args, 0);
  call.indices = argument(frame.args, 1);
  call.updates = argument(frame.args, 2);
  call.gradient = argument(frame.args, 3);
  call.out = result(frame.rets, 0);
  call.of_updates = result(frame.rets, 1);
  const bool differentiates = n == 4;
  if (call.data == nullptr || call.indices == nullptr || call.out == nullptr ||
      (n >= 3) != (call.updates != nullptr) || differentiates != (call.gradient != nullptr) ||
      differentiates != (call.of_updates != nullptr) || frame.rets.size != (differentiates ? 2 : 1))
    return "operands and result of the call must be buffers";
  const XLA_FFI_Array* program = array_of_words(frame.attrs, "program");
  const XLA_FFI_Array* fill = array_of_words(frame.attrs, "fill");
  const void* messages = attribute(frame.attrs, "sentences", kStringAttribute);
  if (program == nullptr || fill == nullptr || fill->size != kFillWords || messages == nullptr)
    return "the call must have the attributes fill, program and sentences";
  const auto& text = *static_cast<const XLA_FFI_ByteSpan*>(messages);
  call.program = {static_cast<const int64_t*>(program->data), program->size};
  call.fill = fill->data;
  call.messages = {text.ptr, text.len};
  return nullptr;
}

// Checks that buffers have the types and sizes that the program was made for. Returns an error message, or
// null.
const char* find_unfit(const XlaCall& call, const Known& known, const gatherum_operands& at) {
  const ItemType item = item_type(call.data->dtype);
  if (known.scatter != (call.updates != nullptr)) return "the operands are not those of the program";
  if (item.width != known.item || item.value != known.value) return "the data are not of the program's type";
  if (!holds_indices(call.indices->dtype, known.index)) return "the indices are not of the program's type";
  if (call.out->dtype != call.data->dtype) return "the result is not of the data's type";
  if (call.updates != nullptr && call.updates->dtype != call.data->dtype)
    return "the updates are not of the data's type";
  if (call.gradient != nullptr &&
      (call.gradient->dtype != call.data->dtype || call.of_updates->dtype != call.data->dtype))
    return "the gradients are not of the data's type";
  const int64_t* shape = gatherum_program_shape(known.program);
  if (call.out->rank != gatherum_program_rank(known.program) ||
      !std::equal(shape, shape + call.out->rank, call.out->dims))
    return "the result does not have the program's shape";
  gatherum_error error;
  return gatherum_check(known.program, &at, &error) == GATHERUM_OK ? nullptr : error.message;
}

XLA_FFI_Error* fail(const XLA_FFI_CallFrame& frame, XLA_FFI_Error_Code code, const char* message) {
  XLA_FFI_Error_Create_Args args{sizeof args, nullptr, message, code};
  return frame.api->create_error(&args);
}

// Line i of a text.
std::string_view line(std::string_view text, int64_t i) {
  while (i-- > 0 && !text.empty()) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

std::string number(const gatherum_error& error, const IndexType& index) {
  if (index.is_signed) return std::to_string(error.value);
  const auto bits = static_cast<uint64_t>(error.value);
  return std::to_string(index.width == 8 ? bits : bits & ((uint64_t{1} << 8 * index.width) - 1));
}

// The message about an invalid index. The first line is for indices that have changed. The following lines,
// one for each component of a tuple, have a % for the value and one for each coordinate of the position.
std::string message(const XlaCall& call, const Known& known, const gatherum_error& error) {
  if (error.position < 0) return std::string(line(call.messages, 0));
  const std::string_view form = line(call.messages, 1 + error.component);
  const auto letters = static_cast<int64_t>(std::count(form.begin(), form.end(), '%')) - 1;
  std::vector<std::string> words(1, number(error, known.index));
  int64_t remaining = error.position;
  for (int64_t i = std::min(letters, call.indices->rank) - 1; i >= 0; --i) {
    const int64_t extent = std::max<int64_t>(call.indices->dims[i], 1);
    words.insert(words.begin() + 1, std::to_string(remaining % extent));
    remaining /= extent;
  }
  std::string filled;
  size_t next = 0;
  for (const char c : form)
    if (c == '%' && next < words.size())
      filled += words[next++];
    else
      filled += c;
  return filled;
}

gatherum_operands operands_of(const XlaCall& call) {
  gatherum_operands at = {};
  at.data = memory_of(*call.data);
  at.indices = memory_of(*call.indices);
  if (call.updates != nullptr) at.updates = memory_of(*call.updates);
  at.out = memory_of(*call.out);
  at.fill = call.fill;
  at.fresh = 1;  // XLA discards the result if the call fails
  return at;
}

gatherum_status execute(const XlaCall& call, const Known& known, const gatherum_operands& at,
                        gatherum_error& error) {
  if (call.gradient == nullptr) return gatherum_run(known.program, &at, nullptr, &error);
  gatherum_gradients of = {};
  of.data = at.data;
  of.indices = at.indices;
  of.updates = at.updates;
  of.gradient = memory_of(*call.gradient);
  of.of_data = at.out;
  of.of_updates = memory_of(*call.of_updates);
  return gatherum_differentiate(known.program, &of, nullptr, &error);
}

XLA_FFI_Error* run(const XLA_FFI_CallFrame& frame) {
  XlaCall call = {};
  Shared known;
  if (const char* wrong = read(frame, call)) return fail(frame, XLA_FFI_INVALID_ARGUMENT, wrong);
  if (const char* wrong = find(call.program, known)) return fail(frame, XLA_FFI_INVALID_ARGUMENT, wrong);
  const gatherum_operands at = operands_of(call);
  if (const char* wrong = find_unfit(call, *known, at)) return fail(frame, XLA_FFI_INVALID_ARGUMENT, wrong);
  if (at.out.start != at.data.start) prefer_huge(at.out.start, static_cast<size_t>(at.out.bytes_after));
  gatherum_error error;
  switch (execute(call, *known, at, error)) {
    case GATHERUM_OK:
      return nullptr;
    case GATHERUM_INVALID_INDEX:
      return fail(frame, XLA_FFI_OUT_OF_RANGE, message(call, *known, error).c_str());
    case GATHERUM_INVALID_PROGRAM:
    case GATHERUM_INVALID_CALL:
    case GATHERUM_TOO_SMALL:
      return fail(frame, XLA_FFI_INVALID_ARGUMENT, error.message);
    case GATHERUM_NO_MEMORY:
      return fail(frame, XLA_FFI_RESOURCE_EXHAUSTED, error.message);
    default:
      return fail(frame, XLA_FFI_INTERNAL, error.message);
  }
}

// Computes exp or log of each item of a buffer.
XLA_FFI_Error* map(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function) {
  const XLA_FFI_Buffer *from = argument(frame.args, 0), *to = result(frame.rets, 0);
  if (from == nullptr || to == nullptr || frame.args.size != 1 || frame.rets.size != 1)
    return fail(frame, XLA_FFI_INVALID_ARGUMENT, "exp and log have one operand and one result, both buffers");
  const ItemType item = item_type(from->dtype);
  if (to->dtype != from->dtype || to->rank != from->rank ||
      !std::equal(from->dims, from->dims + from->rank, to->dims))
    return fail(frame, XLA_FFI_INVALID_ARGUMENT, "the result is not of the operand's type and shape");
  const std::string name(function.ptr, function.len);
  const int64_t n = item.width == 0 ? 0 : memory_of(*from).bytes_after / item.width;
  const char* type = item.value == Value::none ? "" : name_of(item.value);
  const gatherum_status status = gatherum_map(name.c_str(), type, from->data, to->data, n, nullptr);
  if (status == GATHERUM_OK) return nullptr;
  const char* wrong = status == GATHERUM_INVALID_CALL
                          ? "the result must be the operand or share no memory with it"
                          : "the function is exp or log, of floats";
  return fail(frame, XLA_FFI_INVALID_ARGUMENT, wrong);
}

// Returns the version of the interface that this handler implements. The runtime queries it before the first
// run.
bool answers_metadata(XLA_FFI_CallFrame& frame) {
  for (auto* e = frame.extension_start; e != nullptr; e = e->next)
    if (e->type == kMetadataExtension) {
      XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
      metadata.api_version.major_version = 0;
      metadata.api_version.minor_version = 1;
      return true;
    }
  return false;
}

}  // namespace
}  // namespace gatherum

XLA_FFI_Error* gatherum_xla_call(XLA_FFI_CallFrame* frame) noexcept {
  if (gatherum::answers_metadata(*frame)) return nullptr;
  if (frame->stage != kExecutionStage) return nullptr;
  const auto* function = gatherum::attribute(frame->attrs, "function", kStringAttribute);
  try {
    if (function != nullptr) return gatherum::map(*frame, *static_cast<const XLA_FFI_ByteSpan*>(function));
    return gatherum::run(*frame);
  } catch (const std::bad_alloc&) {
    return gatherum::fail(*frame, XLA_FFI_RESOURCE_EXHAUSTED, "there is no working memory");
  }
}
