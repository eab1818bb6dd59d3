#include "xla/xla_calls.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "platform/system.hpp"

namespace gatherum::xla {
namespace {

// A slot of the cache of recently read programs. The last word of a program, a checksum, selects the slot.
// Reading a program takes longer than a small call.
struct Slot {
  std::mutex mutex;
  SharedProgram known;
};
constexpr size_t kCacheSlots = 256;

Slot& slot_of(const Words& words) {
  static auto* slots = new std::array<Slot, kCacheSlots>;  // never destroyed: a call may outlast statics
  return (*slots)[static_cast<uint64_t>(words.start[words.size - 1]) % kCacheSlots];
}

const char* deserialize(const Words& words, SharedProgram& known) {
  auto created = std::make_shared<KnownProgram>();
  gatherum_error error;
  if (gatherum_program_read(words.bytes(), words.count(), &created->program, &error) != GATHERUM_OK)
    return error.message;
  Program fields;
  if (const char* fault = from_bytes(words.bytes(), words.count(), fields)) return fault;
  created->words.assign(words.start, words.start + words.size);
  created->item = fields.item;
  created->value = fields.fold_rule.value;
  created->index = fields.index;
  created->scatter = fields.scatter;
  known = std::move(created);
  return nullptr;
}

constexpr auto kItemTypes = [] {
  std::array<ItemType, 64> types{};
  for (const DTypeRow& row : kDTypes)
    if (row.xla > 0) types[static_cast<size_t>(row.xla)] = {row.value, has_whole_bytes(row) ? row.bytes : 0};
  return types;
}();

const XLA_FFI_Array* array_of_words(const XLA_FFI_Attrs& attrs, std::string_view name) {
  const auto* array = static_cast<const XLA_FFI_Array*>(attribute(attrs, name, kArrayAttribute));
  return array != nullptr && array->dtype == XLA_FFI_S64 ? array : nullptr;
}

constexpr size_t kFillWords = 2;  // the widest item has 16 bytes

// Line i of a text.
std::string_view line_of(std::string_view text, int64_t i) {
  while (i-- > 0 && !text.empty()) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

std::string index_text(const gatherum_error& error, const IndexType& index) {
  if (index.is_signed) return std::to_string(error.value);
  const auto bits = static_cast<uint64_t>(error.value);
  return std::to_string(index.width == 8 ? bits : bits & ((uint64_t{1} << 8 * index.width) - 1));
}

}  // namespace

const char* find_program(const Words& words, SharedProgram& known) {
  if (words.size == 0) return "the call carries no program";
  Slot& slot = slot_of(words);
  {
    const std::lock_guard lock(slot.mutex);
    if (slot.known && slot.known->matches(words)) {
      known = slot.known;
      return nullptr;
    }
  }
  if (const char* fault = deserialize(words, known)) return fault;
  SharedProgram last = known;
  const std::lock_guard lock(slot.mutex);
  slot.known.swap(last);
  return nullptr;
}

ItemType item_type(XLA_FFI_DataType type) {
  const auto number = static_cast<size_t>(type);
  return number < kItemTypes.size() ? kItemTypes[number] : ItemType{};
}

gatherum_buffer memory_of(const XLA_FFI_Buffer& buffer) {
  int64_t bytes = item_type(buffer.dtype).width;
  for (int64_t i = 0; i < buffer.rank; ++i) bytes = limited_product(bytes, buffer.dims[i]);
  return gatherum_memory(buffer.data, bytes);
}

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

bool holds_indices(const XLA_FFI_Buffer& buffer, const KnownProgram& known) {
  const XLA_FFI_DataType type = buffer.dtype;
  const IndexType& index = known.index;
  const bool is_signed = type >= XLA_FFI_S8 && type <= XLA_FFI_S64;
  const bool is_unsigned = type >= XLA_FFI_U8 && type <= XLA_FFI_U64;
  return (index.is_signed ? is_signed : is_unsigned) && item_type(type).width == index.width &&
         !index.swapped;
}

const char* read_attributes(const XLA_FFI_CallFrame& frame, XlaCall& call) {
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
  return read_attributes(frame, call);
}

const char* read(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function, MapCall& call) {
  call.from = argument(frame.args, 0);
  call.to = result(frame.rets, 0);
  if (call.from == nullptr || call.to == nullptr || frame.args.size != 1 || frame.rets.size != 1)
    return "exp and log have one operand and one result, both buffers";
  const ItemType item = item_type(call.from->dtype);
  if (call.to->dtype != call.from->dtype || call.to->rank != call.from->rank ||
      !std::equal(call.from->dims, call.from->dims + call.from->rank, call.to->dims))
    return "the result is not of the operand's type and shape";
  call.function.assign(function.ptr, function.len);
  call.items = item.width == 0 ? 0 : memory_of(*call.from).bytes_after / item.width;
  call.type = item.value == Value::none ? "" : name_of(item.value);
  return nullptr;
}

bool takes_groups(const XLA_FFI_CallFrame& frame) {
  return array_of_words(frame.attrs, "group_count") != nullptr;
}

const char* read(const XLA_FFI_CallFrame& frame, const XLA_FFI_ByteSpan& function, CumulativeCall& call) {
  const XLA_FFI_Buffer *values = argument(frame.args, 0), *groups = argument(frame.args, 1),
                       *factors = argument(frame.args, 2), *to = result(frame.rets, 0);
  const XLA_FFI_Array* count = array_of_words(frame.attrs, "group_count");
  if (values == nullptr || groups == nullptr || to == nullptr || count->size != 1 || frame.args.size > 3 ||
      (frame.args.size == 3) != (factors != nullptr) || frame.rets.size != 1)
    return "a cumulative function has two or three operands and one result, all buffers";
  for (const XLA_FFI_Buffer* buffer : {groups, to, factors == nullptr ? values : factors})
    if ((buffer != groups && buffer->dtype != values->dtype) || buffer->rank != 1 || values->rank != 1 ||
        buffer->dims[0] != values->dims[0])
      return "the operands and the result are not of one type and size";
  const int64_t width = item_type(groups->dtype).width;
  if (groups->dtype < XLA_FFI_S8 || groups->dtype > XLA_FFI_S64 || (width != 4 && width != 8))
    return "the groups are not int32 or int64";
  const Value value = item_type(values->dtype).value;
  call.function.assign(function.ptr, function.len);
  call.items = values->dims[0];
  call.to = to->data;
  call.of = {call.function.c_str(),
             value == Value::none ? "" : name_of(value),
             values->data,
             factors == nullptr ? nullptr : factors->data,
             groups->data,
             width,
             *static_cast<const int64_t*>(count->data)};
  return nullptr;
}

const char* find_unfit(const XlaCall& call, const KnownProgram& known, const gatherum_operands& operands) {
  const ItemType item = item_type(call.data->dtype);
  if (known.scatter != (call.updates != nullptr)) return "the operands are not those of the program";
  if (item.width != known.item || item.value != known.value) return "the data are not of the program's type";
  if (!holds_indices(*call.indices, known)) return "the indices are not of the program's type";
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
  return gatherum_check(known.program, &operands, &error) == GATHERUM_OK ? nullptr : error.message;
}

XLA_FFI_Error* fail(const XLA_FFI_CallFrame& frame, XLA_FFI_Error_Code code, const char* message) {
  XLA_FFI_Error_Create_Args args{sizeof args, nullptr, message, code};
  return frame.api->create_error(&args);
}

std::string message(const XlaCall& call, const KnownProgram& known, const gatherum_error& error) {
  if (error.position < 0) return std::string(line_of(call.messages, 0));
  const std::string_view format = line_of(call.messages, 1 + error.component);
  const auto letters = static_cast<int64_t>(std::count(format.begin(), format.end(), '%')) - 1;
  std::vector<std::string> words(1, index_text(error, known.index));
  int64_t remaining = error.position;
  for (int64_t i = std::min(letters, call.indices->rank) - 1; i >= 0; --i) {
    const int64_t extent = std::max<int64_t>(call.indices->dims[i], 1);
    words.insert(words.begin() + 1, std::to_string(remaining % extent));
    remaining /= extent;
  }
  std::string filled;
  size_t next = 0;
  for (const char c : format)
    if (c == '%' && next < words.size())
      filled += words[next++];
    else
      filled += c;
  return filled;
}

gatherum_operands operands_of(const XlaCall& call) {
  gatherum_operands operands = {};
  operands.data = memory_of(*call.data);
  operands.indices = memory_of(*call.indices);
  if (call.updates != nullptr) operands.updates = memory_of(*call.updates);
  operands.out = memory_of(*call.out);
  operands.fill = call.fill;
  operands.fresh = 1;  // XLA discards the result if the call fails
  return operands;
}

bool answer_metadata_query(XLA_FFI_CallFrame& frame, uint32_t traits) {
  for (auto* e = frame.extension_start; e != nullptr; e = e->next)
    if (e->type == kMetadataExtension) {
      XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(e)->metadata;
      metadata.api_version.major_version = 0;
      metadata.api_version.minor_version = 1;
      metadata.traits |= traits;
      return true;
    }
  return false;
}

}  // namespace gatherum::xla
