// Kernel: kernels/scatter_rounds.hpp. One unit, many threads: in each round, every thread sorts a piece of
// the updates into lists by destination, and folds its share of the lists of the last round.
#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

constexpr int64_t kUnitTuples = 1024;
// A list contains the updates of neighbouring destinations, whose sizes add up to at most this many bytes.
constexpr int64_t kNeighbourBytes = 4096;
constexpr int kMostMembers = 64;
constexpr int64_t kListsOfMember = 4;

// The shapes of the rounds: `members` threads take part, each with one piece in each round.
struct Rounds {
  RoundScatter shape;
  int members;
  int64_t rounds;

  int64_t sets() const { return std::min<int64_t>(rounds, 2); }
  int64_t areas() const { return sets() * members; }
  // The size of the lists in bytes: their ends, their runs, and one more run, which may be read but is not
  // used.
  int64_t bytes() const {
    return times(areas(), shape.area_bytes + shape.lists * int64_t{sizeof(RoundScatter::List)}) +
           2 * RoundScatter::kRunBytes;
  }
};

// Returns log2 of the number of neighbouring destinations that share a list. These destinations fill at least
// a cache line, because two threads should not write to the same line.
int neighbour_shift(const Program& p, int members) {
  int shift = 0;
  while (times(p.item, int64_t{1} << shift) < kCacheLine) ++shift;
  while (times(p.item, int64_t{2} << shift) <= kNeighbourBytes &&
         p.destinations >> (shift + 1) >= 16 * kListsOfMember * members)
    ++shift;
  return shift;
}

Rounds rounds_of(const Program& p, int threads) {
  const Loop& line = p.nest.line_loop();
  const int64_t pair = RoundScatter::pair_bytes(p.item), in_run = RoundScatter::kRunBytes / pair - 1;
  Rounds r{};
  r.members = std::min(threads, kMostMembers);
  RoundScatter& s = r.shape;
  s.chunk = std::min(kUnitTuples, line.extent);
  s.units = times(p.nest.outer_count(), (line.extent - 1) / s.chunk + 1);
  // The lists of a piece fill most of a core's private cache. The threads that fold shorter lists would read
  // them from the cache of the thread that wrote them (prototype, two threads, 20M updates of 10,000 float32:
  // 22 ms with pieces of 16,384 updates, 14 ms with 65,536).
  const int64_t most = std::max<int64_t>(1, thresholds().private_cache_bytes / pair / s.chunk);
  r.rounds = (s.units - 1) / (most * r.members) + 1;
  s.piece_units = (s.units - 1) / (r.rounds * r.members) + 1;
  s.pieces = r.members;
  s.shift = neighbour_shift(p, r.members);
  const int64_t neighbourhoods = ((p.destinations - 1) >> s.shift) + 1;
  while (s.lists == 0 || (s.lists < kListsOfMember * r.members && s.lists < RoundScatter::kMostLists &&
                          2 * s.lists <= neighbourhoods))
    s.lists = std::max<int64_t>(1, 2 * s.lists);
  s.area_bytes = (s.lists + s.piece_units * s.chunk / in_run + 1) * RoundScatter::kRunBytes;
  return r;
}

// Orders the tasks of all members in all rounds. Tasks start in the order of their numbers, so a task that
// waits for all earlier tasks always continues, even if one thread runs them all.
class Order {
 public:
  explicit Order(int members) : members_(members) {}

  // Waits until the earlier rounds have ended. Returns the member whose work the task does. If possible, this
  // is the member with the worker's number, because its accumulators are in the worker's cache.
  int begin(int round, int worker) {
    for (int ended = 0; (ended = ended_.load(std::memory_order_acquire)) < round * members_;)
      ended_.wait(ended, std::memory_order_acquire);
    for (int member = worker;; member = (member + 1) % members_)
      if (int seen = round; next_[member].compare_exchange_strong(seen, round + 1)) return member;
  }
  void end() {
    if ((ended_.fetch_add(1, std::memory_order_acq_rel) + 1) % members_ == 0) ended_.notify_all();
  }

 private:
  const int members_;
  std::atomic<int> ended_{0};
  std::atomic<int> next_[kMostMembers] = {};  // the next round of each member
};

struct Share {
  int64_t begin, end;
};

// Returns the lists of a set that a member folds. Each member folds about the same number of pairs.
Share share_of(const RoundScatter& s, int64_t set, int64_t member) {
  int64_t pairs[RoundScatter::kMostLists] = {}, all = 0;
  const RoundScatter::List* ends = s.ends + set * s.pieces * s.lists;
  for (int64_t piece = 0; piece < s.pieces; ++piece, ends += s.lists)
    for (int64_t list = 0; list < s.lists; ++list) pairs[list] += ends[list].pairs;
  for (int64_t list = 0; list < s.lists; ++list) all += pairs[list];
  int64_t list = 0, before = 0;
  const auto first_of = [&](int64_t number) {
    for (; list < s.lists && 2 * before + pairs[list] < 2 * all * number / s.pieces; ++list)
      before += pairs[list];
    return list;
  };
  const int64_t begin = first_of(member);
  return {begin, first_of(member + 1)};
}

}  // namespace

bool applies_in_rounds(const Program& p, int threads, std::string* why) {
  // Sorting takes about as long as folding, so this algorithm is not faster on few threads. The time that it
  // saves must also exceed the time in which threads start and wait for each other.
  // docs/decisions/thresholds.md lists the measurements on 16 processors.
  constexpr int kMany = 8;
  constexpr int64_t kUpdates = 64;  // of all threads together
  const bool fits = p.destinations < int64_t{1} << 31 && p.tuples < int64_t{1} << 40;
  if (threads < kMany || p.item > 8 || !fits || !keeps_one_slab(p, nullptr)) return false;
  if (times(p.tuples, threads) < times(kUpdates, thresholds().many_updates)) return false;
  if (p.destinations < 8 * threads) return false;
  keeps_one_slab(p, why);
  append(why, ": in rounds, each of ", int64_t{rounds_of(p, threads).members},
         " threads sorts some of the updates into lists by destination, and folds some of the lists");
  return true;
}

int64_t scratch_in_rounds(const Program& p, int threads) {
  return slab_bytes(p, p.destinations) + rounds_of(p, threads).bytes();
}

namespace {

// Returns the scatter of a call, without memory.
RoundScatter scatter_of(const Program& p, const Execution& call, const Rounds& all, const Nest& numbering) {
  RoundScatter rounds = all.shape;
  rounds.numbering = &numbering;
  rounds.destinations = p.destinations;
  rounds.step = p.step;
  rounds.source = call.source;
  rounds.combine = p.combine;
  rounds.direct = call.fresh;
  rounds.streams = times(p.destinations / all.members, p.step) >= thresholds().streamed_bytes;
  return rounds;
}

// Divides memory of Rounds::bytes() into the lists of a scatter.
void place_lists(RoundScatter& rounds, const Rounds& all, char* memory) {
  rounds.ends = reinterpret_cast<RoundScatter::List*>(memory);
  char* const runs = reinterpret_cast<char*>(rounds.ends + all.areas() * rounds.lists);
  rounds.runs = runs + (-reinterpret_cast<uintptr_t>(runs) % RoundScatter::kRunBytes);
}

}  // namespace

// Nothing is written before all indices have been checked.
Run run_in_rounds(const Program& p, const Execution& call) {
  const auto& kernels = chosen_kernels();
  const Nest numbering = number_destinations(p.nest);
  const Rounds all = rounds_of(p, call.threads);
  RoundScatter rounds = scatter_of(p, call, all, numbering);
  const WorkerScratch slab(slab_bytes(p, p.destinations), 1), lists(all.bytes(), 1);
  if (!slab || !lists) return {.memory = false};
  rounds.slab = slab.of(0);
  place_lists(rounds, all, lists.of(0));

  // One thread converts fewer bytes than this before other threads could start.
  const int converters = times(p.destinations, p.step) < kParallelBytes ? 1 : all.members;
  All clean, valid;
  share_destinations(p, converters, [&](int64_t begin, int64_t end) {
    clean &= kernels.rounds_read(rounds, call.operands, begin, end);
  });
  constexpr int64_t kSettledUpdates = 16;  // as kPlainUpdates
  rounds.settles = static_cast<bool>(clean) && p.tuples >= times(kSettledUpdates, p.destinations);
  Order order(all.members);
  Run run;
  run.finished =
      run_tasks((all.rounds + 1) * all.members, all.members, call.poll, [&](int64_t task, int worker) {
        const int64_t round = task / all.members, set = (round + 1) % 2;
        const int member = order.begin(static_cast<int>(round), worker);
        if (static_cast<bool>(valid) || !p.invalid_is_error) {
          if (round > 0) {
            const Share share = share_of(rounds, set, member);
            kernels.rounds_fold(rounds, call.operands, set, share.begin, share.end);
          }
          if (round < all.rounds)
            valid &= kernels.rounds_distribute(rounds, call.operands, round * all.members + member,
                                               round % 2 * all.members + member);
        }
        order.end();
      });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  share_destinations(p, converters, [&](int64_t begin, int64_t end) {
    kernels.rounds_write(rounds, call.operands, begin, end);
  });
  return run;
}

}  // namespace gatherum
