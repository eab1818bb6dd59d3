#include "engine/thresholds.hpp"

#include <iterator>

#include "platform/processor.hpp"

namespace gatherum {
// Two cache lines. With fewer cache lines, most of the memory traffic would double. Intel processors prefetch
// the remaining cache lines of a row anyway, so on these processors each thread processes complete rows (1M
// rows of 64 float32 into 100k on two threads of a Xeon: 32 ms with shares of the columns, 26 ms with
// complete rows; rows of 256: 38 and 31 ms).
int64_t least_columns() { return is_intel() ? int64_t{1} << 62 : int64_t{2} * kCacheLine; }

Thresholds& thresholds() {
  static Thresholds t;
  return t;
}

NamedThreshold threshold(int i) {
  Thresholds& t = thresholds();
  const NamedThreshold all[] = {
#define GATHERUM_THRESHOLD(name, value) {#name, &t.name},
      GATHERUM_THRESHOLDS(GATHERUM_THRESHOLD)
#undef GATHERUM_THRESHOLD
  };
  return i >= 0 && i < static_cast<int>(std::size(all)) ? all[i] : NamedThreshold{};
}

}  // namespace gatherum
