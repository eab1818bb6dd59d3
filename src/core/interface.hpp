// What the C interface's own types hold, and what its functions share.
#pragma once

#include <cstring>
#include <new>
#include <string>

#include "engine.hpp"
#include "program.hpp"

struct gatherum_program {
  gatherum::Program value;
};

namespace gatherum {

constexpr const char* kNoMemory = "there is no working memory";

inline gatherum_status report_failure(gatherum_status status, gatherum_error* error, const char* message,
                                      const char* operand = "") {
  if (error != nullptr) *error = {message, operand, -1, 0, 0};
  return status;
}

// Writes a text into memory of the caller's, as much of it as fits.
template <size_t N>
void copy_text(const std::string& text, char (&to)[N]) {
  const size_t n = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), n);
  to[n] = 0;
}

// Runs body(), which returns a status, and reports when there is no memory for it.
template <class Body>
gatherum_status with_memory(gatherum_error* error, const Body& body, const char* message = kNoMemory) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report_failure(GATHERUM_NO_MEMORY, error, message);
  }
}

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
