// Bindings only.
#define GATHERUM_OWNS_NUMPY_API
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "calls.hpp"
#include "file_calls.hpp"
#include "memory.hpp"
#include "platform.hpp"
#include "pool.hpp"

namespace gatherum {
namespace {

using Quad = std::array<int64_t, 4>;
using Triple = std::array<int64_t, 3>;

// (line, loops, components, block) as Python lowers it; the rest is common to all nests of a call.
struct NestSpec {
  int line;
  std::vector<Quad> loops;
  std::vector<Triple> components;
  int64_t block;
};

NestSpec read_spec(nb::handle spec) {
  const auto t = nb::cast<nb::tuple>(spec);
  return {nb::cast<int>(t[0]), nb::cast<std::vector<Quad>>(t[1]), nb::cast<std::vector<Triple>>(t[2]),
          nb::cast<int64_t>(t[3])};
}

struct CallType {
  int64_t item;
  Mode mode;
  bool negative;
  IndexType index;
};

// About how many bytes lie between the first and the last that the nest can address; of an empty array
// the strides may be anything, so not in integers.
double reach(const Nest& nest) {
  auto bytes = static_cast<double>(nest.block);
  const auto add = [&](int64_t extent, int64_t stride) {
    bytes += static_cast<double>(extent - 1) * std::abs(static_cast<double>(stride));
  };
  for (int i = 0; i < nest.rank; ++i) add(nest.loops[i].extent, nest.loops[i].data);
  for (int c = 0; c < nest.components; ++c) add(nest.component[c].size, nest.component[c].stride);
  return bytes;
}

Nest make_nest(nb::handle python_spec, const CallType& type) {
  constexpr double kNear = 512 << 10;  // about what a core's own cache holds besides the streams
  const NestSpec spec = read_spec(python_spec);
  if (spec.loops.size() > kMaxLoops || spec.components.size() > kMaxComponents || spec.line < 0 ||
      static_cast<size_t>(spec.line) >= spec.loops.size())
    throw nb::value_error("gatherum: not a nest");
  Nest nest;
  nest.rank = static_cast<int>(spec.loops.size());
  nest.line = spec.line;
  nest.components = static_cast<int>(spec.components.size());
  nest.mode = type.mode;
  nest.negative = type.negative;
  nest.index = type.index;
  nest.block = spec.block;
  nest.item = type.item;
  for (int i = 0; i < nest.rank; ++i) {
    const Quad& q = spec.loops[static_cast<size_t>(i)];
    nest.loops[i] = {q[0], q[1], q[2], q[3]};
  }
  for (int c = 0; c < nest.components; ++c) {
    const Triple& t = spec.components[static_cast<size_t>(c)];
    nest.component[c] = {t[0], t[1], t[2]};
  }
  nest.far = reach(nest) > kNear;
  return nest;
}

void make_program(PlannedProgram* self, nb::dict spec) {
  auto get = [&](const char* name) { return nb::object(spec[name]); };
  auto number = [&](const char* name) { return nb::cast<int64_t>(get(name)); };
  new (self) PlannedProgram;
  Program& p = self->program;
  CallType type{number("item"), static_cast<Mode>(number("mode")), nb::cast<bool>(get("negative")), {}};
  type.index.width = static_cast<uint8_t>(number("index_width"));
  type.index.is_signed = nb::cast<bool>(get("index_signed"));
  type.index.swapped = nb::cast<bool>(get("index_swapped"));
  p.scatter = nb::cast<bool>(get("scatter"));
  p.algorithm = static_cast<Algorithm>(number("algorithm"));
  p.combine = {static_cast<Reduction>(number("reduction")), static_cast<Value>(number("value")),
               nb::cast<bool>(get("include_self"))};
  p.units = static_cast<int>(number("units"));
  p.line_chunk = number("line_chunk");
  p.split_line = nb::cast<bool>(get("split_line"));
  p.destinations = number("destinations");
  p.step = number("step");
  p.tiles = nb::cast<bool>(get("tiles"));
  p.moves = nb::cast<bool>(get("moves"));
  p.copies = nb::cast<bool>(get("copies"));
  p.unaddressable = static_cast<int>(number("unaddressable"));
  p.tuples = number("tuples");
  p.bytes = number("bytes");
  p.nest = make_nest(get("nest"), type);
  p.ids = make_nest(get("ids"), type);
  p.checks = make_nest(get("checks"), type);
  p.copy = make_nest(get("copy"), type);
  for (int c = 0; c < p.nest.components && p.moves && p.destinations > 0; ++c) {
    const int64_t reach = (p.nest.component[c].size - 1) * p.nest.component[c].stride;
    p.components_low += std::min<int64_t>(reach, 0);
    p.components_reach += std::abs(reach);
  }
  p.components_reach += p.nest.components > 0 ? 1 : 0;
  p.raises = type.mode == Mode::raise;
  // A scatter checks before it writes; what another thread has made invalid since is dropped.
  if (p.scatter && p.raises) p.nest.mode = p.ids.mode = Mode::drop;
  const auto shape = nb::cast<std::vector<int64_t>>(get("shape"));
  self->rank = static_cast<int>(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) self->shape[i] = shape[i];
}

// Numbers of the destinations of all tuples, in row-major order; -1 where invalid.
nb::object number_destinations(const PlannedProgram& planned, nb::handle indices, int64_t tuples) {
  const npy_intp shape[1] = {tuples};
  nb::object numbers = nb::steal(PyArray_SimpleNew(1, shape, NPY_INT64));
  if (!numbers.is_valid()) nb::raise_python_error();
  if (tuples > 0)
    chosen_kernels().number(planned.program.ids, PyArray_BYTES(as_array(indices)),
                            reinterpret_cast<int64_t*>(PyArray_BYTES(as_array(numbers))));
  return numbers;
}

void* import_numpy() {
  import_array();
  return &PyArray_API;
}

}  // namespace
}  // namespace gatherum

NB_MODULE(_core, m) {
  using namespace gatherum;
  using nb::handle;
  if (import_numpy() == nullptr) nb::raise_python_error();

  nb::class_<PlannedProgram>(m, "Program").def("__init__", make_program, nb::arg("spec"));

  m.def(
      "set_hooks",
      [](nb::object normalise, nb::object make_plan, nb::object check_out, nb::object make_fill,
         nb::object raise_invalid, nb::object raise_changed) {
        hooks() = {normalise, make_plan, check_out, make_fill, raise_invalid, raise_changed};
      },
      nb::arg("normalise"), nb::arg("make_plan"), nb::arg("check_out"), nb::arg("make_fill"),
      nb::arg("raise_invalid"), nb::arg("raise_changed"));
  m.def(
      "call",
      [](handle op, handle data, handle indices, handle updates, handle axis, handle reduction,
         handle include_self, handle mode, handle negative, handle fill_value, handle out) {
        handle arguments[kArguments] = {op,           data, indices,  updates,    axis, reduction,
                                        include_self, mode, negative, fill_value, out};
        return call(arguments);
      },
      nb::arg("op").none(), nb::arg("data").none(), nb::arg("indices").none(), nb::arg("updates").none(),
      nb::arg("axis").none(), nb::arg("reduction").none(), nb::arg("include_self").none(),
      nb::arg("mode").none(), nb::arg("negative").none(), nb::arg("fill_value").none(),
      nb::arg("out").none());
  m.def(
      "run",
      [](handle plan, handle data, handle indices, handle updates, handle fill_value, handle out) {
        return run(plan, data, indices, updates, fill_value, out);
      },
      nb::arg("plan"), nb::arg("data"), nb::arg("indices"), nb::arg("updates").none(),
      nb::arg("fill_value").none(), nb::arg("out").none());
  m.def("number_destinations", &number_destinations, nb::arg("program"), nb::arg("indices"),
        nb::arg("tuples"));
  m.def("clear_plans", &clear_plans);
  m.def("leave", &leave);

  m.def("reads_at_positions", [] { return kReadsAtPositions; });
  m.def("read_file_rows", &read_file_rows, nb::arg("file"), nb::arg("where"), nb::arg("numbers"),
        nb::arg("places").none(), nb::arg("out"), nb::arg("waste"), nb::arg("once"), nb::arg("scratch"));
  m.def(
      "start_writing",
      [](int file, int64_t offset, int64_t bytes) {
        const nb::gil_scoped_release unlock;
        start_writing(file, offset, bytes);
      },
      nb::arg("file"), nb::arg("offset"), nb::arg("nbytes"));

  m.def("available_levels", &available_levels);
  m.def("choose_level", &choose_level, nb::arg("name"));
  m.def("level", [] { return chosen_kernels().level; });
  m.def("usable_processors", &usable_processors);
  m.def("set_threads", &set_threads, nb::arg("n"));
  m.def("get_threads", &get_threads);
  m.def("set_cache_limit", &set_cache_limit, nb::arg("nbytes"));
  m.def("get_cache_limit", &get_cache_limit);
  m.def("cached_bytes", &cached_bytes);
  m.def("clear_cache", &clear_cache);
}
