// The formulas of exp and log for the CPU (src/core/fold/exp_log.hpp) and CUDA devices (elementary.cu), which
// must agree bit for bit. They use only additions, multiplications, divisions, selections and integer
// operations. Each operation rounds separately, because no compiler used here fuses them.
//
//   exp(x) = 2^k exp(r),  k = round(x / ln 2),  r = x - k ln 2 in two parts,  |r| <= 0.347
//   log(x) = k ln 2 + log(1 + f),  x = 2^k (1 + f),  1 + f in [sqrt(1/2), sqrt(2)),  s = f / (2 + f),
//            log(1 + f) = 2 s + 2/3 s^3 + 2/5 s^5 + ...
//
// float is computed in double with fewer terms, and rounded once. NaN, and the log of a negative number, give
// the canonical NaN.
//
// Include this file inside a namespace that declares `uint64`, `bits_of`, `of_bits` and `choose(c, a, b)`,
// which means `c ? a : b`. Define GATHERUM_FORMULA first; it precedes each function.

// Adding this rounds a number below 2^51 to an integer in the low bits.
inline constexpr double kRoundingOffset = 6755399441055744.0;  // 1.5 * 2^52
// ln 2 in two parts. The first part ends in 21 zero bits, so its products with exponents are exact.
inline constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;

GATHERUM_FORMULA double infinity() { return of_bits(uint64{0x7FF0} << 48); }
GATHERUM_FORMULA double canonical_nan() { return of_bits(uint64{0x7FF8} << 48); }

// 2^k for k in [-1022, 1023], modulo 2^64.
GATHERUM_FORMULA double power_of_two(uint64 k) { return of_bits((k + 1023) << 52); }

// 1/2! + r/3! + r^2/4! + ... Both series are unrolled, because compilers do not vectorize nested loops.
template <int kTerms, int kFirst = 0>
GATHERUM_FORMULA double exp_series(double r) {
  constexpr double kInverse[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                 1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  if constexpr (kFirst + 1 == kTerms)
    return kInverse[kFirst];
  else
    return kInverse[kFirst] + r * exp_series<kTerms, kFirst + 1>(r);
}

template <int kTerms>
GATHERUM_FORMULA double exp_of(double x) {
  // Outside these bounds all results are 0 or infinite.
  const double bounded = choose(x < -746.0, -746.0, choose(x > 710.0, 710.0, x));
  const double shifted = bounded * 1.44269504088896338700 + kRoundingOffset;
  const double k = shifted - kRoundingOffset;
  const uint64 exponent = bits_of(shifted) - bits_of(kRoundingOffset);  // modulo 2^64; arbitrary if x is NaN
  const double high = bounded - k * kLn2High, low = k * kLn2Low;
  const double r = high - low, r_error = (high - r) - low;
  const double result = 1.0 + (r + (r_error + r * r * exp_series<kTerms>(r)));
  // In two steps: the first is exact, and the second rounds a subnormal result once.
  const uint64 half = ((exponent + 2048) >> 1) - 1024;
  const double scaled = result * power_of_two(half) * power_of_two(exponent - half);
  return choose(x != x, canonical_nan(), scaled);
}

// 2/3 + 2/5 z + 2/7 z^2 + ...
template <int kTerms, int kFirst = 1>
GATHERUM_FORMULA double log_series(double z) {
  constexpr double kTerm = 2.0 / (2 * kFirst + 1);
  if constexpr (kFirst == kTerms)
    return kTerm;
  else
    return kTerm + z * log_series<kTerms, kFirst + 1>(z);
}

template <int kTerms>
GATHERUM_FORMULA double log_of(double x) {
  constexpr double kLeastNormal = 0x1p-1022;
  constexpr uint64 kRootHalf = 0x3FE6A09E667F3BCDu;  // sqrt(1/2)
  const bool subnormal = x < kLeastNormal;
  const uint64 bits = bits_of(choose(subnormal, x * 18014398509481984.0, x));  // 2^54
  // The exponent with an offset, so that the shifted number is positive.
  const uint64 exponent = (bits - kRootHalf + (uint64{1023} << 52)) >> 52;
  const double k =
      (of_bits(bits_of(kRoundingOffset) + exponent) - kRoundingOffset) - choose(subnormal, 1077.0, 1023.0);
  const double f = of_bits(bits - ((exponent - 1023) << 52)) - 1.0;
  const double s = f / (2.0 + f), half = 0.5 * f * f, z = s * s;
  const double series = s * (half + z * log_series<kTerms>(z));
  double result = k * kLn2High - ((half - (series + k * kLn2Low)) - f);
  result = choose(x == infinity(), infinity(), result);
  result = choose(x == 0.0, -infinity(), result);
  return choose(x >= 0.0, result, canonical_nan());
}

// Each function computes in double, with as many terms as double needs, or with fewer if the result is
// rounded to float.
struct Exp {
  template <bool kRounded>
  static GATHERUM_FORMULA double of(double x) {
    return exp_of<kRounded ? 7 : 12>(x);
  }
};

struct Log {
  template <bool kRounded>
  static GATHERUM_FORMULA double of(double x) {
    return log_of<kRounded ? 6 : 11>(x);
  }
};
