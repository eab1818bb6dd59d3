// Programs as Python values: named fields with defaults, equality, hash, bytes and pickle.
#pragma once

#include <memory>
#include <vector>

#include "include/gatherum.h"
#include "model/program.hpp"
#include "python/device/device_programs.hpp"
#include "python/numpy/arrays.hpp"

namespace gatherum {

// A core program, with the fields in the form in which Python reads them.
class BoundProgram {
 public:
  BoundProgram(const uint8_t* bytes, size_t size);
  explicit BoundProgram(const std::vector<uint8_t>& bytes) : BoundProgram(bytes.data(), bytes.size()) {}

  const gatherum_program* core() const { return core_.get(); }
  // Returns true if no Python code can run during a call without `out`. Such a call has no fill value, keeps
  // the interpreter's lock, and allocates its result with NumPy's allocator.
  bool runs_without_python() const { return runs_without_python_; }
  // The specs of the last operands that matched the plan are stored as words. `same(words)` compares them
  // with the current operands.
  template <class Same>
  bool was_run_on(const Same& same) const {
    const nb::ft_lock_guard lock(mutex_);
    return same(operand_words_);
  }
  void note_run_on(const int64_t* words, int n) const;
  const Program& fields() const { return fields_; }
  // The launches of the program on CUDA devices.
  DevicePrograms& device_programs() const { return device_programs_; }

 private:
  Program fields_;
  std::unique_ptr<gatherum_program, decltype(&gatherum_program_free)> core_;
  bool runs_without_python_ = false;
  mutable nb::ft_mutex mutex_;
  mutable std::vector<int64_t> operand_words_;
  mutable DevicePrograms device_programs_;
};

// Converts the 64 bits in which the core stores an index to the value of the index, according to the
// program's index type.
nb::object index_value(const BoundProgram& program, int64_t bits);

// The strings name_of(0), name_of(1), ... up to the first null.
template <class NameOf>
nb::list names_of(const NameOf& name_of) {
  nb::list names;
  for (int i = 0; name_of(i) != nullptr; ++i) names.append(nb::str(name_of(i)));
  return names;
}

// Converts a 64-bit integer. `name` is the name of the field in error messages.
int64_t read_integer(const char* name, nb::handle value);
// Returns Python's form of a nest: (line, loops, components, block).
nb::object nest_tuple(const Nest& nest);
// Reads the fields of a program from a dictionary, which may be null. Missing fields have their defaults.
Program fields_of(PyObject* values);

}  // namespace gatherum
