#include "model/program.hpp"

#include <cstring>
#include <type_traits>

namespace gatherum {
namespace {

constexpr int64_t kMagic = 0x6D75726568746167;  // "gatherum", least significant byte first

// Writes a program as words: a magic number, a version, the fields, and a checksum.
class Writer {
 public:
  template <class T>
  void operator()(const char*, const T& field) {
    if constexpr (std::is_same_v<T, Nest>)
      write(field);
    else if constexpr (std::is_same_v<T, Shape>)
      write(field);
    else
      write_word(static_cast<int64_t>(field));
  }

  void write_word(int64_t word) {
    sum_ = (sum_ ^ static_cast<uint64_t>(word)) * 0x100000001B3u;
    for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<uint8_t>(static_cast<uint64_t>(word) >> 8 * i));
  }

  std::vector<uint8_t> finish() {
    write_word(static_cast<int64_t>(sum_));
    return std::move(bytes_);
  }

 private:
  void write(const Nest& nest) {
    for (int64_t n : {int64_t{nest.rank}, int64_t{nest.line}, int64_t{nest.components}, nest.block})
      write_word(n);
    for (int i = 0; i < nest.rank; ++i)
      for (int64_t n : {nest.loops[i].extent, nest.loops[i].data, nest.loops[i].index, nest.loops[i].moved})
        write_word(n);
    for (int c = 0; c < nest.components; ++c)
      for (int64_t n : {nest.component[c].size, nest.component[c].stride, nest.component[c].offset})
        write_word(n);
  }
  void write(const Shape& shape) {
    write_word(shape.rank);
    for (int i = 0; i < shape.rank; ++i) write_word(shape.extent[i]);
  }

  std::vector<uint8_t> bytes_;
  uint64_t sum_ = 0xCBF29CE484222325u;
};

// Reads the output of a Writer. After the first invalid value, every read returns 0.
class Reader {
 public:
  Reader(const uint8_t* bytes, size_t size) : next_(bytes), end_(bytes + size) {}

  template <class T>
  void operator()(const char*, T& field) {
    if constexpr (std::is_same_v<T, Nest>) {
      read(field);
    } else if constexpr (std::is_same_v<T, Shape>) {
      field.rank = static_cast<int>(read_count(kMaxLoops));
      for (int i = 0; i < field.rank; ++i) field.extent[i] = read_word();
    } else {
      const int64_t word = read_word();
      field = static_cast<T>(word);
      if (static_cast<int64_t>(field) != word) succeeded_ = false;
    }
  }

  int64_t read_word() {
    if (end_ - next_ < 8) return succeeded_ = false, 0;
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word |= uint64_t{next_[i]} << 8 * i;
    next_ += 8;
    return static_cast<int64_t>(word);
  }

  bool succeeded() const { return succeeded_; }
  bool at_end() const { return next_ == end_; }

 private:
  int64_t read_count(int64_t most) {
    const int64_t n = read_word();
    if (n >= 0 && n <= most) return n;
    return succeeded_ = false, 0;
  }

  void read(Nest& nest) {
    nest.rank = static_cast<int>(read_count(kMaxLoops));
    nest.line = static_cast<int>(read_count(kMaxLoops));
    nest.components = static_cast<int>(read_count(kMaxComponents));
    nest.block = read_word();
    for (int i = 0; i < nest.rank; ++i)
      for (int64_t* n :
           {&nest.loops[i].extent, &nest.loops[i].data, &nest.loops[i].index, &nest.loops[i].moved})
        *n = read_word();
    for (int c = 0; c < nest.components; ++c)
      for (int64_t* n : {&nest.component[c].size, &nest.component[c].stride, &nest.component[c].offset})
        *n = read_word();
  }

  const uint8_t* next_;
  const uint8_t* const end_;
  bool succeeded_ = true;
};

bool is_checksum_right(const uint8_t* bytes, size_t size) {
  Writer again;
  Reader words(bytes, size);
  for (size_t i = 0; i + 8 < size; i += 8) again.write_word(words.read_word());
  const std::vector<uint8_t> expected = again.finish();
  return expected.size() == size && std::memcmp(expected.data(), bytes, size) == 0;
}

// Checks that a nest has the form that the kernels rely on: see nest.hpp.
bool is_nest(const Nest& nest, int64_t item, bool rows_have_indices) {
  if (nest.rank < 1 || nest.rank > kMaxLoops || nest.line < 0 || nest.line >= nest.rank) return false;
  if (nest.components < 0 || nest.components > kMaxComponents) return false;
  if (nest.block < 0 || nest.block > kSizeLimit) return false;
  if (item > 0 ? nest.block % item != 0 : nest.block != 0) return false;
  for (int i = 0; i < nest.rank; ++i)
    if (nest.loops[i].extent < 1 || (i > nest.line && !rows_have_indices && nest.loops[i].index != 0))
      return false;
  for (int c = 0; c < nest.components; ++c)
    if (nest.component[c].size < 0) return false;
  return true;
}

template <class E>
bool is_known(E e) {
  return static_cast<int>(e) < kEnumerators<E>;
}

// Returns true if the nests of a program belong to one call: they check the same indices against the same
// sizes, and step through the data only in the loops where algorithms expect this. The size of scratch memory
// depends on this condition.
bool are_one_call(const Program& p) {
  if (!p.has_points) return true;
  const auto same = [&](const Nest& other) {
    if (other.components != p.nest.components) return false;
    for (int c = 0; c < other.components; ++c)
      if (other.component[c].size != p.nest.component[c].size) return false;
    return true;
  };
  // Returns true if loops [first, last) of a nest have stride 0 in the data.
  const auto stays = [](const Nest& nest, int first, int last) {
    for (int i = first; i < last; ++i)
      if (nest.loops[i].data != 0) return false;
    return true;
  };
  const bool by_column = p.nest.line_loop().data != 0;
  if (!same(p.checks) || ((p.scatter || by_column) && !stays(p.nest, p.unit_loops, p.nest.line)))
    return false;
  if (!p.scatter) return true;
  bool addresses = p.nest.components > 0;  // otherwise every update is dropped
  for (int c = 0; c < p.nest.components; ++c) addresses = addresses && p.nest.component[c].size > 0;
  const bool one_unit = p.unit_loops == 0 && !by_column;
  const int64_t updates = points(p.nest, p.nest.line + 1);
  if (p.split_line != by_column || p.fold_nest.block == 0 || !same(p.fold_nest)) return false;
  if (one_unit && addresses && updates > points(p.checks, p.checks.rank)) return false;
  return stays(p.fold_nest, p.fold_unit_loops, p.fold_nest.line + 1);
}

const char* why_invalid(const Program& p) {
  const bool known = is_known(p.mode) && is_known(p.fold_rule.reduction) && is_known(p.fold_rule.value);
  if (!known) return "an unknown mode, reduction or value type";
  const int width = p.index.width;
  if (width != 1 && width != 2 && width != 4 && width != 8) return "an index type of no such width";
  if (p.item < 0) return "a negative item size";
  const FoldRule& fold_rule = p.fold_rule;
  if (fold_rule.reduction != Reduction::none && (!p.scatter || bytes_of(fold_rule.value) != p.item ||
                                                 !has_meaning(fold_rule.value, fold_rule.reduction)))
    return "a reduction that is not defined for its value type";
  for (const Nest* nest : {&p.nest, &p.fold_nest, &p.checks, &p.copy})
    if (!is_nest(*nest, nest == &p.checks ? 0 : p.item, false)) return "not a nest";
  if (p.copy.components != 0) return "not a nest";
  if (p.unit_loops < 0 || p.unit_loops > p.nest.line || p.fold_unit_loops < 0 ||
      p.fold_unit_loops > p.fold_nest.line)
    return "unit loops outside of the nest";
  if (!are_one_call(p)) return "nests that do not belong together";
  if (p.line_chunk < 0) return "a negative line chunk";
  if (p.result.rank < 0 || p.result.rank > kMaxLoops) return "a shape of too many dimensions";
  for (int i = 0; i < p.result.rank; ++i)
    if (p.result.extent[i] < 0) return "a negative size";
  return nullptr;
}

// The approximate number of bytes between the first and the last byte that the nest can address. The result
// is a double, because it can exceed the range of an integer: the strides of an empty array may be arbitrary.
double approximate_span(const Nest& nest) {
  auto bytes = static_cast<double>(nest.block);
  const auto add = [&](int64_t extent, int64_t stride) {
    bytes += static_cast<double>(extent - 1) * std::abs(static_cast<double>(stride));
  };
  for (int i = 0; i < nest.rank; ++i) add(nest.loops[i].extent, nest.loops[i].data);
  for (int c = 0; c < nest.components; ++c) add(nest.component[c].size, nest.component[c].stride);
  return bytes;
}

// Counts the destinations that index components address. The last component varies fastest.
void count_destinations(Program& p) {
  int64_t count = 1, step = 0;
  bool even = true;
  for (int c = p.nest.components - 1; c >= 0; --c) {
    const Component& component = p.nest.component[c];
    if (component.size == 1) continue;
    if (step == 0 && count == 1)
      step = component.stride;
    else if (component.stride !=
             static_cast<int64_t>(static_cast<uint64_t>(step) * static_cast<uint64_t>(count)))
      even = false;
    count = limited_product(count, component.size);
  }
  if (step == 0 && p.nest.components > 0) step = p.nest.component[p.nest.components - 1].stride;
  p.destinations = count;
  p.step = even ? step : 0;
}

bool fits(const Reach& r, const gatherum_buffer& b) {
  return r.is_empty() || (-r.low <= b.bytes_before && r.high <= b.bytes_after);
}

Reach reach_of_data(const Nest& nest) {
  Reach r;
  if (nest.block == 0) return r;
  for (int c = 0; c < nest.components; ++c)
    if (nest.component[c].size == 0) return r;  // no index is valid
  for (int i = 0; i < nest.rank; ++i) r.add(nest.loops[i].extent, nest.loops[i].data);
  for (int c = 0; c < nest.components; ++c) r.add(nest.component[c].size, nest.component[c].stride);
  r.high = std::min(r.high + nest.block, kSizeLimit);
  return r;
}

Reach reach_of_moved(const Nest& nest) {
  Reach r;
  if (nest.block == 0) return r;
  for (int i = 0; i < nest.rank; ++i) r.add(nest.loops[i].extent, nest.loops[i].moved);
  r.high = std::min(r.high + nest.block, kSizeLimit);
  return r;
}

// The size in bytes of one component of all index tuples.
Reach reach_of_component(const Nest& nest, int c, const IndexType& type) {
  Reach r;
  for (int i = 0; i < nest.rank; ++i) r.add(nest.loops[i].extent, nest.loops[i].index);
  r.add(2, nest.component[c].offset);
  r.high += type.width;
  return r;
}

bool indices_fit(const Nest& nest, const IndexType& type, const gatherum_buffer& indices) {
  for (int c = 0; c < nest.components; ++c) {
    const Reach r = reach_of_component(nest, c, type);
    if (!fits(r, indices)) return false;
  }
  return true;
}

void set_reaches(Program& p) {
  p.reaches = {};
  p.reaches.data = reach_of_data(p.scatter ? p.copy : p.nest);
  p.reaches.out =
      p.scatter && !p.has_copy ? reach_of_data(p.nest) : reach_of_moved(p.scatter ? p.copy : p.nest);
  if (p.scatter) p.reaches.updates = reach_of_moved(p.nest);
  Reach& indices = p.reaches.indices;
  for (int c = 0; c < p.checks.components; ++c) {
    const Reach r = reach_of_component(p.checks, c, p.index);
    indices = {std::min(indices.low, r.low), std::max(indices.high, r.high)};
  }
}

}  // namespace

Nest number_destinations(const Nest& nest) {
  Nest numbering = nest;
  int64_t step = 1;
  for (int c = nest.components - 1; c >= 0; --c) {
    numbering.component[c].stride = step;
    step = limited_product(step, nest.component[c].size);
  }
  return numbering;
}

const char* complete(Program& p) {
  p.has_points = p.nest.block > 0;
  p.has_copy = p.scatter && p.copy.block > 0;
  if (const char* fault = why_invalid(p)) return fault;
  p.invalid_is_error = p.mode == Mode::raise;
  p.tuples = p.checks.components > 0 ? points(p.checks, p.checks.rank) : 0;
  p.bytes = limited_product(2, limited_product(points(p.nest, p.nest.rank), p.nest.block));
  p.unaddressable = -1;
  for (int c = p.checks.components - 1; c >= 0; --c)
    if (p.checks.component[c].size == 0 && moves_index(p.mode)) p.unaddressable = c;
  count_destinations(p);
  set_reaches(p);
  for (Nest* nest : {&p.nest, &p.fold_nest, &p.checks, &p.copy}) {
    nest->mode = p.mode;
    nest->negative = p.negative;
    nest->index = p.index;
    nest->item = p.item;
    nest->far = approximate_span(*nest) > static_cast<double>(kPrivateCacheBytes);
  }
  // A scatter checks before it writes. Indices that another thread invalidates later are dropped.
  if (p.scatter && p.invalid_is_error) p.nest.mode = p.fold_nest.mode = Mode::drop;
  p.components_reach = p.nest.components > 0 ? 1 : 0;
  Reach reach;
  for (int c = 0; c < p.nest.components && p.has_points && p.destinations > 0; ++c)
    reach.add(p.nest.component[c].size, p.nest.component[c].stride);
  p.components_low = reach.low;
  p.components_reach += reach.high - reach.low;
  return nullptr;
}

const char* kernel_name(const Program& p) {
  const bool by_lines = runs_by_lines(p.nest, p.fold_rule);
  if (p.scatter) return by_lines ? "scatter_lines" : "scatter_rows";
  return by_lines ? "gather_lines" : "gather_rows";
}

std::vector<uint8_t> to_bytes(const Program& program) {
  Writer writer;
  writer.write_word(kMagic);
  writer.write_word(kProgramVersion);
  each_field(program, writer);
  return writer.finish();
}

const char* from_bytes(const uint8_t* bytes, size_t size, Program& program) {
  Reader reader(bytes, size);
  if (size % 8 != 0 || reader.read_word() != kMagic) return "these are not the bytes of a program";
  if (reader.read_word() != kProgramVersion) return "the program is of another version";
  if (!is_checksum_right(bytes, size)) return "the bytes are damaged";
  program = Program{};
  each_field(program, reader);
  reader.read_word();
  if (!reader.succeeded() || !reader.at_end()) return "the bytes are damaged";
  return complete(program);
}

const char* find_too_small(const Program& p, const gatherum_buffer& data, const gatherum_buffer& indices,
                           const gatherum_buffer& moved, const gatherum_buffer& source) {
  const bool functional = p.scatter && source.start != nullptr;
  for (const Nest* nest : {&p.nest, &p.fold_nest}) {
    if (!fits(reach_of_data(*nest), data)) return p.scatter ? "out" : "data";
    if (functional && p.covers_data && !fits(reach_of_data(*nest), source)) return "data";
  }
  if (functional && !fits(reach_of_data(p.copy), source)) return "data";
  if (functional && !fits(reach_of_moved(p.copy), data)) return "out";
  for (const Nest* nest : {&p.nest, &p.fold_nest, &p.checks})
    if (!indices_fit(*nest, p.index, indices)) return "indices";
  for (const Nest* nest : {&p.nest, &p.fold_nest})
    if (!fits(reach_of_moved(*nest), moved)) return p.scatter ? "updates" : "out";
  return nullptr;
}

}  // namespace gatherum
