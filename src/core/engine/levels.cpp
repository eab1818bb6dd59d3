#include "engine/levels.hpp"

#include <cstring>

#include "platform/processor.hpp"

namespace gatherum {
namespace {

const Kernels* chosen = nullptr;

struct Level {
  const char* name;
  int id;
  const Kernels& (*kernels)();
};

// The levels of this build, best first.
const Level kLevels[] = {
#if GATHERUM_V4
    {"v4", 4, kernels_v4},
#endif
#if GATHERUM_V3
    {"v3", 3, kernels_v3},
#endif
    {"portable", 0, kernels_portable}};

}  // namespace

const char* available_level(int i) {
  for (const Level& level : kLevels)
    if (processor_has(level.id) && i-- == 0) return level.name;
  return nullptr;
}

bool choose_level(const char* name) {
  for (const Level& level : kLevels)
    if ((name[0] == 0 || std::strcmp(name, level.name) == 0) && processor_has(level.id)) {
      chosen = &level.kernels();
      return true;
    }
  return false;
}

const Kernels& chosen_kernels() { return *chosen; }

[[maybe_unused]] const bool started = choose_level("");

}  // namespace gatherum
