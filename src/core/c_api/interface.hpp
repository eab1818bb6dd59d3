// The types of the C interface, and helpers that its functions share.
#pragma once

#include <cstring>
#include <initializer_list>
#include <new>
#include <string>

#include "engine/outcome.hpp"
#include "engine/overlaps.hpp"
#include "kernels/calls.hpp"
#include "model/program.hpp"

struct gatherum_program {
  gatherum::Program value;
};

namespace gatherum {

constexpr const char* kNoMemory = "there is no working memory";
constexpr const char* kTooSmall = "an operand's memory is smaller than the program addresses";

inline gatherum_status report_failure(gatherum_status status, gatherum_error* error, const char* message,
                                      const char* operand = "") {
  if (error != nullptr) *error = {message, operand, -1, 0, 0};
  return status;
}

// An argument that must not be null, with its name.
struct NamedPointer {
  const char* name;
  const void* value;
};

// Returns true if one of the arguments is null, and reports it.
inline bool is_any_null(std::initializer_list<NamedPointer> arguments, gatherum_error* error) {
  for (const NamedPointer& argument : arguments)
    if (argument.value == nullptr) {
      report_failure(GATHERUM_INVALID_CALL, error, "an argument must not be null", argument.name);
      return true;
    }
  return false;
}

// Reports that the output of a call shares memory with an operand.
inline gatherum_status report_overlap(gatherum_error* error, const char* operand) {
  return report_failure(GATHERUM_INVALID_CALL, error, "the output must not share memory with an operand",
                        operand);
}
// Reports that `out` shares memory with an operand of one of the six operators.
inline gatherum_status report_out_overlap(gatherum_error* error, const char* operand) {
  constexpr const char* kMessages[][2] = {{"data", "`out` must not share memory with `data`"},
                                          {"indices", "`out` must not share memory with `indices`"},
                                          {"updates", "`out` must not share memory with `updates`"},
                                          {"fill", "`out` must not share memory with `fill`"}};
  for (const auto& [name, message] : kMessages)
    if (std::strcmp(name, operand) == 0)
      return report_failure(GATHERUM_INVALID_CALL, error, message, operand);
  return report_overlap(error, operand);
}

// Finds the enumerator with this name. Returns false if there is none.
template <class E>
bool find_name(const char* name, E& result) {
  for (int i = 0; name != nullptr && i < kEnumerators<E>; ++i)
    if (std::strcmp(name, name_of(static_cast<E>(i))) == 0) return result = static_cast<E>(i), true;
  return false;
}

// Copies a string into the caller's memory, truncated to the size of that memory.
template <size_t N>
void copy_text(const std::string& text, char (&to)[N]) {
  const size_t n = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// Runs `body()`, which returns a status. Reports an error if memory runs out.
template <class Body>
gatherum_status with_memory(gatherum_error* error, const Body& body, const char* message = kNoMemory) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report_failure(GATHERUM_NO_MEMORY, error, message);
  }
}

// Returns the addresses of the operands for kernels.
Operands operands_of(const Program& p, const gatherum_operands& operands);
// Reports an operand that is null, too small, or shares memory with `out`. If `writes` is false, the call
// does not write to `out`, which may then be null.
gatherum_status check_operands(const Program& p, const gatherum_operands& operands, bool writes,
                               gatherum_error* error);

inline Poll poll_of(const gatherum_poll* poll) { return poll == nullptr ? Poll{} : *poll; }

inline gatherum_status report(const Outcome& outcome, gatherum_error* error) {
  switch (outcome.status) {
    case Status::done:
      return GATHERUM_OK;
    case Status::interrupted:
      return report_failure(GATHERUM_INTERRUPTED, error, "the call was interrupted");
    case Status::no_memory:
      return report_failure(GATHERUM_NO_MEMORY, error, kNoMemory);
    case Status::invalid_index:
      break;
  }
  const Invalid& i = outcome.invalid;
  if (error != nullptr) *error = {"an index is out of bounds", "indices", i.position, i.value, i.component};
  return GATHERUM_INVALID_INDEX;
}

}  // namespace gatherum
