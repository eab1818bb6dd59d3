// exp and log of our own, since those of the C library differ from system to system. They are made of
// additions, multiplications, divisions, selections and integer operations alone, which IEEE 754 defines to
// the bit: each instruction-set level, vector or not, and each processor gives the same bits. Errors are
// below 1 ulp, at most 0.51 for float (tests/test_elementary.py measures them).
//
//   exp(x) = 2^k exp(r),  k = round(x / ln 2),  r = x - k ln 2 in two parts,  |r| <= 0.347
//   log(x) = k ln 2 + log(1 + f),  x = 2^k (1 + f),  1 + f in [sqrt(1/2), sqrt(2)),  s = f / (2 + f),
//            log(1 + f) = 2 s + 2/3 s^3 + 2/5 s^5 + ...
//
// float is computed in double and rounded once. NaN, and the log of a negative number, is the canonical NaN.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#include "halves.hpp"

namespace gatherum::GATHERUM_LEVEL {

inline constexpr double kCanonicalNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Adding it rounds a number below 2^51 to an integer, which is then in its low bits.
inline constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
// ln 2 in two parts. The first has 21 zeros at its end: its products with exponents are exact.
inline constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;

GATHERUM_INLINE uint64_t bits_of(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

GATHERUM_INLINE double of_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// c ? a : b. (See select() in halves.hpp.)
GATHERUM_INLINE double choose(bool c, double a, double b) {
  return of_bits(select(c, bits_of(a), bits_of(b)));
}

// 2^k for k in [-1022, 1023].
GATHERUM_INLINE double power_of_two(int64_t k) { return of_bits(static_cast<uint64_t>(k + 1023) << 52); }

// 1/2! + r/3! + r^2/4! + ... Both series are written out: no vectors are made of loops in loops.
template <int kTerms, int kFirst = 0>
GATHERUM_INLINE double exp_series(double r) {
  constexpr double kInverse[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                 1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  if constexpr (kFirst + 1 == kTerms)
    return kInverse[kFirst];
  else
    return kInverse[kFirst] + r * exp_series<kTerms, kFirst + 1>(r);
}

template <int kTerms>
GATHERUM_INLINE double exp_of(double x) {
  // Beyond these all results are 0 or infinite.
  const double bounded = choose(x < -746.0, -746.0, choose(x > 710.0, 710.0, x));
  const double shifted = bounded * 1.44269504088896338700 + kRound;
  const double k = shifted - kRound;
  const int64_t exponent = static_cast<int64_t>(bits_of(shifted) - bits_of(kRound));
  const double high = bounded - k * kLn2High, low = k * kLn2Low;
  const double r = high - low, rest = (high - r) - low;
  const double found = 1.0 + (r + (rest + r * r * exp_series<kTerms>(r)));
  // In two steps: the first is exact, and the second rounds a subnormal result once.
  const int64_t half = static_cast<int64_t>(static_cast<uint64_t>(exponent + 2048) >> 1) - 1024;
  const double scaled = found * power_of_two(half) * power_of_two(exponent - half);
  return choose(x != x, kCanonicalNan, scaled);
}

// 2/3 + 2/5 z + 2/7 z^2 + ...
template <int kTerms, int kFirst = 1>
GATHERUM_INLINE double log_series(double z) {
  constexpr double kTerm = 2.0 / (2 * kFirst + 1);
  if constexpr (kFirst == kTerms)
    return kTerm;
  else
    return kTerm + z * log_series<kTerms, kFirst + 1>(z);
}

template <int kTerms>
GATHERUM_INLINE double log_of(double x) {
  constexpr double kLeastNormal = std::numeric_limits<double>::min();
  constexpr uint64_t kRootHalf = 0x3FE6A09E667F3BCDu;  // sqrt(1/2)
  const bool subnormal = x < kLeastNormal;
  const uint64_t bits = bits_of(choose(subnormal, x * 18014398509481984.0, x));  // 2^54
  // The exponent with an offset, so that the shift is of a number above 0.
  const uint64_t exponent = (bits - kRootHalf + (uint64_t{1023} << 52)) >> 52;
  const double k = (of_bits(bits_of(kRound) + exponent) - kRound) - choose(subnormal, 1077.0, 1023.0);
  const double f = of_bits(bits - ((exponent - 1023) << 52)) - 1.0;
  const double s = f / (2.0 + f), half = 0.5 * f * f, z = s * s;
  const double rest = s * (half + z * log_series<kTerms>(z));
  double found = k * kLn2High - ((half - (rest + k * kLn2Low)) - f);
  found = choose(x == kInfinity, kInfinity, found);
  found = choose(x == 0.0, -kInfinity, found);
  return choose(x >= 0.0, found, kCanonicalNan);
}

// One function, of values of one type.
struct Exp {
  GATHERUM_INLINE double operator()(double x) const { return exp_of<12>(x); }
  GATHERUM_INLINE float operator()(float x) const { return static_cast<float>(exp_of<7>(x)); }
};

struct Log {
  GATHERUM_INLINE double operator()(double x) const { return log_of<11>(x); }
  GATHERUM_INLINE float operator()(float x) const { return static_cast<float>(log_of<6>(x)); }
};

// to[i] = function(from[i]) for n items; they may be the same array. Halves are computed as float.
template <class V, class F>
void map_items(const char* from, char* to, int64_t n) {
  const F function;
  const auto* in = reinterpret_cast<const V*>(from);
  auto* out = reinterpret_cast<V*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = function(in[i]);
}

template <class F, float (*widen)(uint16_t), uint16_t (*narrow)(float)>
void map_halves(const char* from, char* to, int64_t n) {
  const F function;
  const auto* in = reinterpret_cast<const uint16_t*>(from);
  auto* out = reinterpret_cast<uint16_t*>(to);
  for (int64_t i = 0; i < n; ++i) out[i] = narrow(function(widen(in[i])));
}

}  // namespace gatherum::GATHERUM_LEVEL
