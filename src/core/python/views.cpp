#include "python/views.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace gatherum {
namespace {

// The DType of each NumPy type number that has the same meaning on every platform.
constexpr auto kNumbered = [] {
  std::array<int8_t, NPY_HALF + 1> dtypes{};
  for (int8_t& d : dtypes) d = kNoDType;
  const auto set = [&](int number, DType d) { dtypes[static_cast<size_t>(number)] = static_cast<int8_t>(d); };
  set(NPY_BOOL, DType::boolean);
  set(NPY_BYTE, DType::int8);
  set(NPY_UBYTE, DType::uint8);
  set(NPY_SHORT, DType::int16);
  set(NPY_USHORT, DType::uint16);
  set(NPY_INT, DType::int32);
  set(NPY_UINT, DType::uint32);
  set(NPY_LONG, sizeof(long) == 8 ? DType::int64 : DType::int32);
  set(NPY_ULONG, sizeof(long) == 8 ? DType::uint64 : DType::uint32);
  set(NPY_LONGLONG, DType::int64);
  set(NPY_ULONGLONG, DType::uint64);
  set(NPY_HALF, DType::float16);
  set(NPY_FLOAT, DType::float32);
  set(NPY_DOUBLE, DType::float64);
  set(NPY_LONGDOUBLE, DType::longdouble);
  set(NPY_CFLOAT, DType::complex64);
  set(NPY_CDOUBLE, DType::complex128);
  set(NPY_CLONGDOUBLE, DType::clongdouble);
  return dtypes;
}();

constexpr bool are_numpy_dtypes_numbered() {
  for (const DTypeRow& row : kDTypes) {
    bool is_numbered = false;
    for (const int8_t d : kNumbered) is_numbered |= d == static_cast<int8_t>(row.dtype);
    if (is_numbered != is_of_numpy(row.dtype)) return false;
  }
  return true;
}
static_assert(are_numpy_dtypes_numbered(), "kNumbered lacks a dtype of NumPy");

// The dtypes that other packages register with NumPy, by their number. Each is added when it is first used.
// The dtypes of ml_dtypes have the core's names.
constexpr int8_t kUnknown = -2;
constexpr int kMostAdded = 256;
std::array<std::atomic<int8_t>, kMostAdded>& added_dtypes() {
  static auto& dtypes = *[] {
    auto* unknown = new std::array<std::atomic<int8_t>, kMostAdded>;
    for (auto& d : *unknown) d = kUnknown;
    return unknown;
  }();
  return dtypes;
}

int find_name(PyArray_Descr* dtype) {
  const char* name = dtype->typeobj->tp_name;
  if (const char* dot = std::strrchr(name, '.')) name = dot + 1;
  for (int i = 0; i < kDTypeCount; ++i)
    if (!is_of_numpy(kDTypes[i].dtype) && std::strcmp(name, kDTypes[i].name) == 0) return i;
  return kNoDType;
}

int added_dtype(PyArray_Descr* dtype) {
  const int at = dtype->type_num - NPY_USERDEF;
  if (at < 0 || at >= kMostAdded) return kNoDType;
  auto& known = added_dtypes()[static_cast<size_t>(at)];
  if (known == kUnknown) known = static_cast<int8_t>(find_name(dtype));
  const int number = known;
  // dtype.__setstate__ can change the size of a dtype.
  const bool whole = number >= 0 && PyDataType_ELSIZE(dtype) == bytes_of(static_cast<DType>(number)) &&
                     !PyDataType_REFCHK(dtype);
  return whole ? number : kNoDType;
}

// The bytes [low, high) of memory that a view addresses.
struct ByteRange {
  intptr_t low, high;
};

ByteRange byte_range_of(const View& view) {
  const auto start = reinterpret_cast<intptr_t>(view.address);
  if (std::find(view.shape, view.shape + view.rank, 0) != view.shape + view.rank)
    return {start, start};  // its strides may be arbitrary
  ByteRange s{start, start + static_cast<intptr_t>(view.item)};
  for (int i = 0; i < view.rank; ++i) {
    const intptr_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? s.low : s.high) += reach;
  }
  return s;
}

}  // namespace

void find_builtins() {
  for (int i = 0; i <= NPY_HALF; ++i)
    builtins[static_cast<size_t>(i)] = {PyArray_DescrFromType(i), kNumbered[static_cast<size_t>(i)]};
}

int find_dtype(PyArray_Descr* dtype) {
  const int number = dtype->type_num;
  if (PyDataType_METADATA(dtype) != nullptr) return kNoDType;
  const bool swapped = !PyArray_ISNBO(dtype->byteorder);
  if (number < 0 || number > NPY_HALF) return swapped ? kNoDType : added_dtype(dtype);
  const int native = kNumbered[static_cast<size_t>(number)];
  return swapped && native != kNoDType ? native + kSwapped : native;
}

bool may_overlap(const View& a, const View& b) {
  if (!a.is_present() || !b.is_present()) return false;
  const ByteRange one = byte_range_of(a), other = byte_range_of(b);
  return one.low < other.high && other.low < one.high && one.low < one.high && other.low < other.high;
}

bool is_same_place(const View& a, const View& b) {
  return a.address == b.address && a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

gatherum_buffer memory_of(const View& view) {
  const auto start = reinterpret_cast<intptr_t>(view.address);
  const ByteRange s = byte_range_of(view);
  return {view.address, start - s.low, s.high - start};
}

Footprint footprint_of(const View& view) {
  Footprint f(view.address, view.item);
  for (int i = 0; i < view.rank; ++i) f.add(view.shape[i], view.strides[i]);
  return f;
}

bool is_in_place(const Views& operands) {
  const auto& [data, indices, updates, out] = operands;
  if (!updates.is_present() || !out.is_present() || out.address != data.address || out.rank != data.rank)
    return false;
  for (int i = 0; i < out.rank; ++i)
    if (out.shape[i] != data.shape[i] || strides_differ(out.shape[i], out.strides[i], data.strides[i]))
      return false;
  return true;
}

int first_overlap(const Views& operands) {
  const View& out = operands[3];
  for (int i = 0; i < 3; ++i) {
    const View& other = operands[static_cast<size_t>(i)];
    if (!may_overlap(out, other) || (i == 0 && is_in_place(operands))) continue;
    if (shares_memory(footprint_of(out), footprint_of(other))) return i;
  }
  return -1;
}

}  // namespace gatherum
