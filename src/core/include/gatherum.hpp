// gatherum.hpp: the operators of gatherum.h for C++17, with exceptions and without manual memory management.
//
//     std::vector<float> table = {0, 1, 10, 11, 20, 21}, rows(4);
//     std::vector<int64_t> numbers = {2, 0};
//     gatherum::gather({table, {3, 2}}, numbers, {rows, {2, 2}});
//
// A call takes views: addresses with a dtype, a shape and, unless the array is in C order, strides in bytes.
// A view owns no memory. Each function makes a program and runs it. To run a call many times, keep a Program.
#ifndef GATHERUM_HPP
#define GATHERUM_HPP

#include <gatherum.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gatherum {
// This namespace separates these names from those of the core, which a static library also contains.
inline namespace interface_1 {

// The base class of this library's exceptions, except std::bad_alloc.
struct Error : std::runtime_error {
  Error(gatherum_status code, const std::string& message) : std::runtime_error(message), status(code) {}
  gatherum_status status;
};

// Shapes, dtypes or attributes that do not form a valid call, or memory that is too small or shared.
struct InvalidCall : Error {
  InvalidCall(gatherum_status code, const std::string& message, const char* name)
      : Error(code, message), operand(name) {}
  std::string operand;
};

// An index that is out of bounds in mode "raise". `position` counts tuples in row-major order.
struct InvalidIndex : Error {
  explicit InvalidIndex(const gatherum_error& error)
      : Error(GATHERUM_INVALID_INDEX, std::string(error.message) + ": " + std::to_string(error.value) + " (" +
                                          error.operand + "[" + std::to_string(error.position) + "])"),
        position(error.position),
        value(error.value),
        component(error.component) {}
  int64_t position, value;
  int32_t component;
};

using Sizes = std::vector<int64_t>;

namespace detail {

template <class T>
constexpr const char* integer_name() {
  constexpr const char* names[2][4] = {{"uint8", "uint16", "uint32", "uint64"},
                                       {"int8", "int16", "int32", "int64"}};
  return names[std::is_signed_v<T>][sizeof(T) == 8 ? 3 : sizeof(T) / 2];
}

// The name of the dtype of a C++ type, or null if values of the type can be copied but not reduced.
template <class T>
constexpr const char* dtype_name() {
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_integral_v<T>) return integer_name<T>();
  if constexpr (std::is_same_v<T, float>) return "float32";
  if constexpr (std::is_same_v<T, double>) return "float64";
  if constexpr (std::is_same_v<T, std::complex<float>>) return "complex64";
  if constexpr (std::is_same_v<T, std::complex<double>>) return "complex128";
  return nullptr;
}

inline int64_t product(const Sizes& shape) {
  int64_t items = 1;
  for (int64_t size : shape) items *= size;
  return items;
}

inline void check(gatherum_status status, const gatherum_error& error) {
  if (status == GATHERUM_OK) return;
  if (status == GATHERUM_NO_MEMORY) throw std::bad_alloc();
  if (status == GATHERUM_INVALID_INDEX) throw InvalidIndex(error);
  if (status == GATHERUM_TOO_SMALL || status == GATHERUM_INVALID_CALL) {
    const std::string name = error.operand == nullptr ? "" : error.operand;
    throw InvalidCall(status, name + ": " + error.message, name.c_str());
  }
  throw Error(status, error.message);
}

}  // namespace detail

// An array in memory that belongs to the caller. T is `const void` for inputs and `void` for results.
template <class T>
class View {
 public:
  // A view of exactly the memory that the shape and strides address.
  template <class E, class = std::enable_if_t<!std::is_void_v<E> && std::is_convertible_v<E*, T*>>>
  View(E* start, Sizes shape, Sizes strides = {})
      : View(start, detail::dtype_name<std::remove_const_t<E>>(), sizeof(E), std::move(shape),
             std::move(strides)) {}

  // The same for a dtype that has no C++ type, such as "bfloat16". If `dtype` is null, items have `item`
  // bytes, and can be copied but not reduced.
  View(T* start, const char* dtype, std::size_t item, Sizes shape, Sizes strides = {})
      : start_(start),
        dtype_(dtype),
        item_(static_cast<int64_t>(item)),
        shape_(std::move(shape)),
        strides_(std::move(strides)) {
    if (!strides_.empty() && strides_.size() != shape_.size())
      throw InvalidCall(GATHERUM_INVALID_CALL, "a view needs one stride for each dimension", "");
    find_extent();
  }

  // A view of a vector: one-dimensional by default, or with a shape that has as many items as the vector.
  // (std::vector<bool> has no addresses.)
  template <class E, class = std::enable_if_t<!std::is_same_v<E, bool>>>
  View(const std::vector<E>& items, Sizes shape = {-1})
      : View(of(items.data(), items.size(), std::move(shape))) {
    static_assert(std::is_const_v<T>, "a result needs a vector that is not const");
  }
  template <class E, class = std::enable_if_t<!std::is_same_v<E, bool>>>
  View(std::vector<E>& items, Sizes shape = {-1}) : View(of(items.data(), items.size(), std::move(shape))) {}

  const Sizes& shape() const { return shape_; }
  // The description that the C functions take. It is valid while the view exists.
  gatherum_spec spec() const {
    gatherum_spec spec{};
    spec.dtype = dtype_;
    spec.rank = static_cast<int32_t>(shape_.size());
    spec.shape = shape_.data();
    spec.strides = strides_.empty() ? nullptr : strides_.data();
    spec.item = item_;
    return spec;
  }
  gatherum_buffer buffer() const {
    gatherum_buffer buffer;
    buffer.start = const_cast<void*>(static_cast<const void*>(start_));
    buffer.bytes_before = before_;
    buffer.bytes_after = after_;
    return buffer;
  }

 private:
  template <class E>
  static View of(E* start, std::size_t items, Sizes shape) {
    const auto count = static_cast<int64_t>(items);
    if (shape == Sizes{-1}) shape = {count};
    if (detail::product(shape) != count)
      throw InvalidCall(GATHERUM_INVALID_CALL,
                        "a view of " + std::to_string(count) + " items needs a shape of as many items", "");
    return View(start, std::move(shape));
  }

  void find_extent() {
    after_ = item_;
    int64_t stride = item_;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      const int64_t step = strides_.empty() ? stride : strides_[d];
      if (shape_[d] <= 0) {
        before_ = after_ = 0;
        return;
      }
      (step < 0 ? before_ : after_) += (step < 0 ? -step : step) * (shape_[d] - 1);
      stride *= shape_[d];
    }
  }

  T* start_;
  const char* dtype_;
  int64_t item_, before_ = 0, after_ = 0;
  Sizes shape_, strides_;
};

using Input = View<const void>;
using Output = View<void>;

// The arguments that are not arrays; the defaults are Python's.
struct Options {
  int64_t axis = 0;  // or batch_dims
  const char* mode = "raise";
  bool negative = true;
  const char* reduction = "none";
  bool include_self = true;
  const void* fill = nullptr;  // one item for mode "fill" or "drop"; it must outlive the program
};

// A checked call without its data. It can run any number of times, from any number of threads.
class Program {
 public:
  static Program gather(const Input& data, const Input& indices, const Output& out,
                        const Options& options = {}) {
    return make(gatherum_make_gather, data, indices, out, options);
  }
  static Program gather_elements(const Input& data, const Input& indices, const Output& out,
                                 const Options& options = {}) {
    return make(gatherum_make_gather_elements, data, indices, out, options);
  }
  static Program gather_nd(const Input& data, const Input& indices, const Output& out,
                           const Options& options = {}) {
    return make(gatherum_make_gather_nd, data, indices, out, options);
  }
  static Program scatter_slices(const Input& data, const Input& indices, const Input& updates,
                                const Output& out, const Options& options = {}) {
    return make(gatherum_make_scatter_slices, data, indices, updates, out, options);
  }
  static Program scatter_elements(const Input& data, const Input& indices, const Input& updates,
                                  const Output& out, const Options& options = {}) {
    return make(gatherum_make_scatter_elements, data, indices, updates, out, options);
  }
  static Program scatter_nd(const Input& data, const Input& indices, const Input& updates, const Output& out,
                            const Options& options = {}) {
    return make(gatherum_make_scatter_nd, data, indices, updates, out, options);
  }
  // Reads a program from its bytes, which `write` or a plan in Python returned.
  static Program read(const std::vector<unsigned char>& bytes) {
    gatherum_program* program = nullptr;
    gatherum_error error{};
    detail::check(gatherum_program_read(bytes.data(), bytes.size(), &program, &error), error);
    return Program(program, nullptr);
  }

  std::vector<unsigned char> write() const {
    std::vector<unsigned char> bytes(gatherum_program_write(program_.get(), nullptr, 0));
    if (bytes.empty()) throw std::bad_alloc();
    gatherum_program_write(program_.get(), bytes.data(), bytes.size());
    return bytes;
  }
  Sizes shape() const {  // of the result
    const int64_t* sizes = gatherum_program_shape(program_.get());
    return Sizes(sizes, sizes + gatherum_program_rank(program_.get()));
  }

  // Run a gather. The views must have the shapes, dtypes and strides of the program.
  void operator()(const Input& data, const Input& indices, const Output& out) const {
    run(data, indices, gatherum_buffer{}, out);
  }
  // Run a scatter. It works in place if `out` is `data`.
  void operator()(const Input& data, const Input& indices, const Input& updates, const Output& out) const {
    run(data, indices, updates.buffer(), out);
  }
  const gatherum_program* get() const { return program_.get(); }

 private:
  struct Free {
    void operator()(gatherum_program* program) const { gatherum_program_free(program); }
  };
  Program(gatherum_program* program, const void* fill) : program_(program), fill_(fill) {}

  template <class Function, class... Views>
  static Program make(Function function, const Input& data, const Views&... others_and_options) {
    return make_of(function, std::forward_as_tuple(data, others_and_options...),
                   std::make_index_sequence<sizeof...(Views)>());
  }
  template <class Function, class Arguments, std::size_t... I>
  static Program make_of(Function function, const Arguments& arguments, std::index_sequence<I...>) {
    const Options& options = std::get<sizeof...(I)>(arguments);
    gatherum_attributes attributes = gatherum_defaults();
    attributes.axis = options.axis;
    attributes.mode = options.mode;
    attributes.negative = options.negative;
    attributes.reduction = options.reduction;
    attributes.include_self = options.include_self;
    const gatherum_spec specs[] = {std::get<I>(arguments).spec()...};
    gatherum_program* program = nullptr;
    gatherum_call_error error{};
    const gatherum_status status = function(&specs[I]..., &attributes, &program, &error);
    if (status == GATHERUM_NO_MEMORY) throw std::bad_alloc();
    if (status != GATHERUM_OK) throw InvalidCall(status, error.message, error.operand);
    return Program(program, options.fill);
  }

  void run(const Input& data, const Input& indices, const gatherum_buffer& updates, const Output& out) const {
    gatherum_operands operands{};
    operands.data = data.buffer();
    operands.indices = indices.buffer();
    operands.updates = updates;
    operands.out = out.buffer();
    operands.fill = fill_;
    gatherum_error error{};
    detail::check(gatherum_check(program_.get(), &operands, &error), error);
    detail::check(gatherum_run(program_.get(), &operands, nullptr, &error), error);
  }

  std::unique_ptr<gatherum_program, Free> program_;
  const void* fill_;
};

// The operators, as in Python, with the result in `out`. A scatter works in place if `out` is `data`.
inline void gather(const Input& data, const Input& indices, const Output& out, const Options& options = {}) {
  Program::gather(data, indices, out, options)(data, indices, out);
}
inline void gather_elements(const Input& data, const Input& indices, const Output& out,
                            const Options& options = {}) {
  Program::gather_elements(data, indices, out, options)(data, indices, out);
}
inline void gather_nd(const Input& data, const Input& indices, const Output& out,
                      const Options& options = {}) {
  Program::gather_nd(data, indices, out, options)(data, indices, out);
}
inline void scatter_slices(const Input& data, const Input& indices, const Input& updates, const Output& out,
                           const Options& options = {}) {
  Program::scatter_slices(data, indices, updates, out, options)(data, indices, updates, out);
}
inline void scatter_elements(const Input& data, const Input& indices, const Input& updates, const Output& out,
                             const Options& options = {}) {
  Program::scatter_elements(data, indices, updates, out, options)(data, indices, updates, out);
}
inline void scatter_nd(const Input& data, const Input& indices, const Input& updates, const Output& out,
                       const Options& options = {}) {
  Program::scatter_nd(data, indices, updates, out, options)(data, indices, updates, out);
}

}  // namespace interface_1
}  // namespace gatherum

#endif  // GATHERUM_HPP
