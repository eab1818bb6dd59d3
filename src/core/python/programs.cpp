#include "python/programs.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "python/bindings/bindings.hpp"
#include "python/callbacks.hpp"
#include "python/guarded.hpp"

namespace gatherum {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw nb::value_error(("gatherum: not a program: " + what).c_str());
}

template <class T>
void assign(const char* name, nb::handle value, T& field) {
  if constexpr (std::is_enum_v<T>) {
    field = nb::cast<T>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    field = nb::cast<bool>(value);
  } else {
    const int64_t integer = read_integer(name, value);
    field = static_cast<T>(integer);
    if (static_cast<int64_t>(field) != integer) refuse(std::string("`") + name + "` is out of range");
  }
}

// Calls `each(i, item)` for the items of a sequence, at most `most` of them.
template <class Each>
int64_t read_items(const char* name, nb::handle sequence, int most, const Each& each) {
  int64_t n = 0;
  for (nb::handle item : sequence) {
    if (n == most) refuse(std::string("`") + name + "` is too long");
    each(n++, item);
  }
  return n;
}

// Converts (line, loops, components, block), Python's form of a nest.
void assign(const char* name, nb::handle value, Nest& nest) {
  const auto parts = nb::cast<nb::tuple>(value);
  if (parts.size() != 4) refuse(std::string("`") + name + "` is not a nest");
  const auto integer = [&](nb::handle from, Py_ssize_t i) {
    PyObject* const item = PyTuple_Check(from.ptr()) ? PyTuple_GetItem(from.ptr(), i) : nullptr;
    if (item == nullptr) refuse(std::string("`") + name + "` is not a nest");
    return read_integer(name, item);
  };
  assign(name, parts[0], nest.line);
  nest.rank = static_cast<int>(read_items(name, parts[1], kMaxLoops, [&](int64_t i, nb::handle loop) {
    nest.loops[i] = {integer(loop, 0), integer(loop, 1), integer(loop, 2), integer(loop, 3)};
  }));
  nest.components =
      static_cast<int>(read_items(name, parts[2], kMaxComponents, [&](int64_t i, nb::handle component) {
        nest.component[i] = {integer(component, 0), integer(component, 1), integer(component, 2)};
      }));
  nest.block = read_integer(name, parts[3]);
}

void assign(const char* name, nb::handle value, Shape& shape) {
  shape.rank = static_cast<int>(read_items(name, value, kMaxLoops, [&](int64_t i, nb::handle extent) {
    shape.extent[i] = read_integer(name, extent);
  }));
}

template <class T>
nb::object read(const T& field) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return nb::int_(int64_t{field});
  else
    return nb::cast(field);
}

nb::object read(const Nest& nest) { return nest_tuple(nest); }

nb::object read(const Shape& shape) { return tuple_of(shape.extent, shape.rank); }

// Program(**fields). (nanobind does not check for failures when it makes the dictionary of such arguments.)
int make_program(PyObject* self, PyObject* positional, PyObject* keywords) {
  const auto make = [&] {
    const Program fields = fields_of(keywords);
    if (PyTuple_GET_SIZE(positional) != 0) throw nb::type_error("Program: an unknown field");
    if (nb::inst_ready(self)) throw nb::type_error("Program: it is made already");
    new (nb::inst_ptr<BoundProgram>(self)) BoundProgram(to_bytes(fields));
    nb::inst_mark_ready(self);
    return nb::none();
  };
  PyObject* const done = guarded(make);
  Py_XDECREF(done);
  return done == nullptr ? -1 : 0;
}
PyType_Slot program_slots[] = {{Py_tp_new, reinterpret_cast<void*>(new_guarded)},
                               {Py_tp_init, reinterpret_cast<void*>(make_program)},
                               {0, nullptr}};

nb::bytes as_bytes(const BoundProgram& program) {
  const std::vector<uint8_t> bytes = to_bytes(program.fields());
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object describe(const BoundProgram& program) {
  gatherum_description d;
  if (gatherum_describe(program.core(), &d) != GATHERUM_OK) throw std::bad_alloc();
  return nb::make_tuple(text(d.algorithm), text(d.reason), d.scratch);
}

nb::dict get_thresholds() {
  nb::dict sizes;
  int64_t value = 0;
  for (int i = 0; const char* name = gatherum_threshold(i, &value); ++i) sizes[name] = value;
  return sizes;
}

void set_thresholds(const nb::dict& sizes) {
  int64_t value = 0;
  size_t known = 0;
  for (int i = 0; const char* name = gatherum_threshold(i, &value); ++i) {
    if (!sizes.contains(name)) continue;
    gatherum_set_threshold(i, nb::cast<int64_t>(sizes[name]));
    ++known;
  }
  if (known != sizes.size()) throw nb::value_error("gatherum: an unknown threshold");
}

nb::object repr_of(const BoundProgram& program) {
  std::string shown = "Program(";
  each_field(program.fields(), [&](const char* name, const auto& field) {
    if (shown.back() != '(') shown += ", ";
    shown += std::string(name) + "=" + nb::str(nb::repr(read(field))).c_str();
  });
  return text((shown + ")").c_str());
}

template <class E>
void bind_enum(nb::module_& m, const char* name, const char* doc) {
  nb::enum_<E> bound(m, name, doc);
  for (int i = 0; i < kEnumerators<E>; ++i) bound.value(name_of(static_cast<E>(i)), static_cast<E>(i));
}

}  // namespace

// Python integers are unbounded, but fields have 64 bits.
int64_t read_integer(const char* name, nb::handle value) {
  int overflow = 0;
  const long long integer = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) refuse(std::string("`") + name + "` does not fit in 64 bits");
  if (integer == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return integer;
}

nb::object nest_tuple(const Nest& nest) {
  nb::list loops, components;
  for (int i = 0; i < nest.rank; ++i) {
    const Loop& l = nest.loops[i];
    loops.append(nb::make_tuple(l.extent, l.data, l.index, l.moved));
  }
  for (int c = 0; c < nest.components; ++c) {
    const Component& one = nest.component[c];
    components.append(nb::make_tuple(one.size, one.stride, one.offset));
  }
  return nb::make_tuple(nest.line, nb::tuple(loops), nb::tuple(components), nest.block);
}

Program fields_of(PyObject* values) {
  Program fields;
  Py_ssize_t known = 0;
  each_field(fields, [&](const char* name, auto& field) {
    PyObject* const value = values == nullptr ? nullptr : PyDict_GetItemWithError(values, text(name).ptr());
    if (value == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
    if (value == nullptr) return;
    assign(name, value, field);
    ++known;
  });
  if (known != (values == nullptr ? 0 : PyDict_GET_SIZE(values)))
    throw nb::type_error("Program: an unknown field");
  return fields;
}

BoundProgram::BoundProgram(const uint8_t* bytes, size_t size) : core_(nullptr, &gatherum_program_free) {
  gatherum_error error;
  gatherum_program* read = nullptr;
  const gatherum_status status = gatherum_program_read(bytes, size, &read, &error);
  core_.reset(read);
  if (status == GATHERUM_NO_MEMORY) throw std::bad_alloc();
  if (status != GATHERUM_OK) refuse(error.message);
  from_bytes(bytes, size, fields_);
  const int64_t result = limited_product(fields_.item, fields_.result.items());
  const bool fills = !fields_.scatter && fields_.mode == Mode::drop;
  runs_without_python_ =
      fields_.item > 0 && result < kLargeResult && !fills && gatherum_program_is_long(read) == 0;
}

void BoundProgram::note_run_on(const int64_t* words, int n) const {
  const nb::ft_lock_guard lock(mutex_);
  operand_words_.assign(words, words + n);
}

nb::object index_value(const BoundProgram& program, int64_t bits) {
  if (program.fields().index.is_signed) return nb::int_(bits);
  return nb::int_(static_cast<uint64_t>(bits));
}

void bind_programs(nb::module_& m) {
  bind_enum<Mode>(m, "Mode", "What an invalid index means to the kernels.");
  bind_enum<Value>(m, "Value", "The value types that reductions know.");
  bind_enum<Reduction>(m, "Reduction", "How updates combine with existing values.");
  bind_enum<Gradient>(m, "Gradient", "How kernels compute the gradients of a fold.");
  bind_enum<RunFault>(m, "RunFault", "The faults that a run of a plan reports to Python.");

  m.def("modes", [] {
    nb::dict modes;
    for (const ModeRow& row : kModes) modes[row.name] = row.mode;
    return modes;
  });
  m.def("has_meaning", &has_meaning, nb::arg("value"), nb::arg("reduction"));
  m.def("is_real_float", &is_real_float, nb::arg("value"));
  m.def("sum_type", &sum_type, nb::arg("value"), nb::arg("reduction"));
  m.def("sum_bytes", &sum_bytes, nb::arg("value"), nb::arg("reduction"));
  m.def(
      "is_exact", [](Reduction reduction) -> bool { return row_of(reduction).exact; }, nb::arg("reduction"));
  m.def("is_any_order", &is_any_order, nb::arg("value"), nb::arg("reduction"));
  m.def(
      "divides", [](Reduction reduction) -> bool { return row_of(reduction).divides; }, nb::arg("reduction"));
  m.def(
      "needs_accumulator",
      [](Value value, Reduction reduction, bool include_self) {
        return needs_accumulator({reduction, value, include_self});
      },
      nb::arg("value"), nb::arg("reduction"), nb::arg("include_self"));
  m.def(
      "gradient_of", [](Reduction reduction) -> Gradient { return row_of(reduction).gradient; },
      nb::arg("reduction"));

  const Program defaults;
  nb::class_<BoundProgram> bound(m, "Program", nb::type_slots(program_slots));
  each_field(defaults, [&](const char* name, const auto&) {
    bound.def_prop_ro(name, [name](const BoundProgram& self) {
      nb::object value;
      each_field(self.fields(), [&](const char* each, const auto& field) {
        if (std::strcmp(name, each) == 0) value = read(field);
      });
      return value;
    });
  });
  bound.def("__bytes__", as_bytes);
  bound.def("__repr__", repr_of);
  bound.def("__hash__", [](const BoundProgram& self) { return nb::hash(as_bytes(self)); });
  bound.def(
      "__eq__",
      [](const BoundProgram& self, nb::handle other) {
        return nb::isinstance<BoundProgram>(other) &&
               as_bytes(self).equal(as_bytes(nb::cast<const BoundProgram&>(other)));
      },
      nb::arg("other").none());
  bound.def_static(
      "from_bytes",
      [](const nb::bytes& data) {
        return make_bound<BoundProgram>(static_cast<const uint8_t*>(data.data()), data.size());
      },
      nb::arg("data"));

  m.def("describe", &describe, nb::arg("program"));
  m.def(
      "kernel_name", [](const BoundProgram& program) { return kernel_name(program.fields()); },
      nb::arg("program"));
  m.def("algorithm_names", [] { return names_of(gatherum_algorithm); });
  m.def("thresholds", get_thresholds);
  m.def("set_thresholds", set_thresholds, nb::arg("sizes"));
}

}  // namespace gatherum
