// Kernel: kernels/scatter_rounds.hpp. One unit, many threads: in each round, every thread sorts pieces of the
// updates into lists by destination, and folds its share of the previous round's lists.
#include <thread>

#include "algorithms/algorithms.hpp"
#include "algorithms/items.hpp"

namespace gatherum {
namespace {

constexpr int64_t kUnitTuples = 1024;
constexpr int kMostMembers = RoundScatter::kMostShared;
// More lists would be shorter, so that more of their runs are partly filled (20M updates of 10,000 float32,
// 32 threads: 3.6 ns an update with 32 lists, 4.5 with 64). With fewer destinations in a list, many folds
// would wait for the previous one.
constexpr int64_t kFewestLists = 32, kFewestInList = 8;
// A thread that has folded a longer share distributes fewer pieces.
constexpr int64_t kPiecesOfMember = 2;

// The shapes of the rounds: `members` threads take part.
struct Rounds {
  RoundScatter shape;
  int members;
  int64_t rounds;

  int64_t areas() const { return std::min<int64_t>(rounds, 2) * shape.pieces; }
  // The bytes of the lists: their ends, their runs, and one more run, which may be read but is not used.
  int64_t bytes() const {
    return limited_product(
               areas(), shape.area_bytes + RoundScatter::kMostLists * int64_t{sizeof(RoundScatter::List)}) +
           2 * RoundScatter::kRunBytes;
  }
  int64_t slots() const { return shape.slots << shape.shift; }
  int64_t blocks() const { return shape.slots / RoundScatter::kBlock; }
};

Rounds rounds_of(const Program& p, int threads) {
  const Loop& line = p.nest.line_loop();
  const int64_t pair = RoundScatter::pair_bytes(p.item);
  Rounds r{};
  r.members = std::min(threads, kMostMembers);
  RoundScatter& s = r.shape;
  s.chunk = std::min(kUnitTuples, line.extent);
  s.units = limited_product(p.nest.outer_count(), (line.extent - 1) / s.chunk + 1);
  s.pieces = kPiecesOfMember * r.members;
  // The lists of a thread's pieces fill most of a core's private cache. The threads that fold shorter lists
  // would read them from the cache of the thread that wrote them (prototype, two threads, 20M updates of
  // 10,000 float32: 22 ms with pieces of 16,384 updates, 14 ms with 65,536).
  const int64_t most =
      std::max<int64_t>(1, thresholds().private_cache_bytes / pair / s.chunk / kPiecesOfMember);
  r.rounds = (s.units - 1) / (most * s.pieces) + 1;
  s.piece_units = (s.units - 1) / (r.rounds * s.pieces) + 1;
  while (s.shared() < std::max<int64_t>(kFewestLists, r.members) &&
         p.destinations >> (s.shift + 1) >= kFewestInList)
    ++s.shift;
  s.slots = (((p.destinations - 1) >> s.shift) / RoundScatter::kBlock + 1) * RoundScatter::kBlock;
  // Two pairs of a run are at most replaced by the address of the next run.
  const int64_t in_run = RoundScatter::kRunBytes / pair - 2;
  s.area_bytes = (RoundScatter::kMostLists + s.piece_units * s.chunk / in_run + 1) * RoundScatter::kRunBytes;
  return r;
}

// Orders the tasks of all members in all rounds. Tasks start in the order of their numbers, so a task that
// waits for all earlier tasks always continues, even if one thread runs them all.
class Order {
 public:
  explicit Order(int members) : members_(members), spins_(have_processors(members) ? kSpins : 0) {}

  // Waits until the earlier rounds have ended. Returns the member whose work the task does. If possible, this
  // is the member with the worker's number, because its accumulators are in the worker's cache.
  int begin(int round, int worker) {
    wait(round * members_);
    for (int member = worker;; member = (member + 1) % members_)
      if (int seen = round; next_[member].compare_exchange_strong(seen, round + 1)) return member;
  }
  // Returns the number of a piece below `end` that no thread has taken, or -1.
  int64_t take_piece(int64_t end) {
    for (int64_t piece = piece_.load(); piece < end;)
      if (piece_.compare_exchange_weak(piece, piece + 1)) return piece;
    return -1;
  }
  void end() {
    if ((ended_.fetch_add(1, std::memory_order_acq_rel) + 1) % members_ == 0) ended_.notify_all();
  }

 private:
  // Waking a thread takes about as long as its part of a round, so a thread that will soon have more work
  // does not sleep.
  static constexpr int kSpins = 256;

  void wait(int all) {
    for (int spin = 0; spin < spins_ && ended_.load(std::memory_order_acquire) < all; ++spin)
      std::this_thread::yield();
    for (int ended = 0; (ended = ended_.load(std::memory_order_acquire)) < all;)
      ended_.wait(ended, std::memory_order_acquire);
  }

  const int members_, spins_;
  alignas(kCacheLine) std::atomic<int> ended_{0};
  alignas(kCacheLine) std::atomic<int64_t> piece_{0};
  alignas(kCacheLine) std::atomic<int> next_[kMostMembers] = {};  // the next round of each member
};

struct Share {
  int64_t begin, end;
};

// Returns the lists of a set that a member folds: about the same number of pairs for each member.
Share share_of(const RoundScatter& s, int64_t set, int64_t member, int64_t members) {
  int64_t pairs[RoundScatter::kMostLists] = {}, all = 0;
  const RoundScatter::List* ends = s.ends + set * s.pieces * RoundScatter::kMostLists;
  for (int64_t piece = 0; piece < s.pieces; ++piece, ends += RoundScatter::kMostLists)
    for (int64_t list = 0; list < s.lists(); ++list) pairs[list] += ends[list].pairs;
  for (int64_t list = 0; list < s.lists(); ++list) all += pairs[list];
  int64_t list = 0, before = 0;
  const auto first_of = [&](int64_t number) {
    for (; list < s.lists() && 2 * before + pairs[list] < 2 * all * number / members; ++list)
      before += pairs[list];
    return list;
  };
  const int64_t begin = first_of(member);
  return {begin, first_of(member + 1)};
}

// Finds destinations that have more than half of a thread's share of a sample of the updates.
void find_heavy(RoundScatter& rounds, const Operands& operands, int members) {
  constexpr int fewest = 24;  // more than from one place of the sample, at which updates may be sorted
  uint32_t samples[RoundScatter::kSamples];
  const int n = chosen_kernels().rounds_sample(rounds, operands, samples);
  std::sort(samples, samples + n);
  for (int i = 0, next = 0; i < n && rounds.heavies < RoundScatter::kMostHeavy; i = next) {
    next = static_cast<int>(std::upper_bound(samples + i, samples + n, samples[i]) - samples);
    if (next - i >= std::max(fewest, RoundScatter::kSamples / (2 * members)))
      rounds.heavy[rounds.heavies++] = samples[i];
  }
}

}  // namespace

bool applies_in_rounds(const Program& p, int threads, std::string* why) {
  // Sorting takes about as long as folding, so this algorithm is not faster on few threads. The time that it
  // saves must also exceed the time in which threads start and wait for each other.
  // docs/decisions/thresholds.md lists the measurements on 16 processors.
  constexpr int kFewestThreads = 6;
  constexpr int64_t kFewestUpdates = 64;  // of all threads together
  const bool fits = p.destinations < int64_t{1} << 31 && p.tuples < int64_t{1} << 40;
  if (threads < kFewestThreads || p.item > 8 || !fits || !keeps_one_slab(p, nullptr)) return false;
  if (limited_product(p.tuples, threads) < limited_product(kFewestUpdates, thresholds().many_updates))
    return false;
  if (p.destinations < 8 * threads) return false;
  const Rounds all = rounds_of(p, threads);
  if (p.item <= 2 && all.shape.slots > RoundScatter::kMostOfShortPairs) return false;
  keeps_one_slab(p, why);
  append(why, ": in rounds, each of ", int64_t{all.members},
         " threads sorts some of the updates into lists by destination, and folds some of the lists");
  return true;
}

int64_t scratch_in_rounds(const Program& p, int threads) {
  const Rounds all = rounds_of(p, threads);
  return slab_bytes(p, all.slots()) + all.bytes();
}

namespace {

// Returns the scatter of a call, without memory.
RoundScatter scatter_of(const Program& p, const Execution& call, const Rounds& all, const Nest& numbering) {
  RoundScatter rounds = all.shape;
  rounds.numbering = &numbering;
  rounds.destinations = p.destinations;
  rounds.step = p.step;
  rounds.source = call.source;
  rounds.fold_rule = p.fold_rule;
  find_heavy(rounds, call.operands, all.members);
  return rounds;
}

// Divides memory of Rounds::bytes() into the lists of a scatter.
void place_lists(RoundScatter& rounds, const Rounds& all, char* memory) {
  rounds.ends = reinterpret_cast<RoundScatter::List*>(memory);
  char* const runs = reinterpret_cast<char*>(rounds.ends + all.areas() * RoundScatter::kMostLists);
  rounds.runs = runs + (-reinterpret_cast<uintptr_t>(runs) % RoundScatter::kRunBytes);
}

}  // namespace

// Nothing is written before all indices have been checked.
RunResult run_in_rounds(const Program& p, const Execution& call) {
  if (const std::optional<RunResult> near = run_near(p, call)) return *near;
  const auto& kernels = chosen_kernels();
  const Nest numbering = number_destinations(p.nest);
  const Rounds all = rounds_of(p, call.threads);
  RoundScatter rounds = scatter_of(p, call, all, numbering);
  const WorkerScratch slab(slab_bytes(p, all.slots()), 1), lists(all.bytes(), 1);
  if (!slab || !lists) return {.has_memory = false};
  rounds.slab = slab.memory_of(0);
  place_lists(rounds, all, lists.memory_of(0));

  All clean, valid;
  Order order(all.members);
  const auto distribute = [&](int64_t round) {
    for (int64_t piece = 0; (piece = order.take_piece((round + 1) * rounds.pieces)) >= 0;)
      valid &= kernels.rounds_distribute(rounds, call.operands, piece, piece % (2 * rounds.pieces));
  };
  const auto settles = [&] {
    return static_cast<bool>(clean) && p.tuples >= limited_product(kFewestUpdatesToSettle, p.destinations);
  };
  const auto fold = [&](int64_t round, int64_t member) {
    RoundScatter settling = rounds;
    settling.settles = settles();
    const int64_t set = (round + 1) % 2;
    const Share share = share_of(rounds, set, member, all.members);
    kernels.rounds_fold(settling, call.operands, set, share.begin, share.end);
  };
  RunResult run;
  run.finished =
      run_tasks((all.rounds + 1) * all.members, all.members, call.poll, [&](int64_t task, int worker) {
        const int64_t round = task / all.members;
        const int64_t member = order.begin(static_cast<int>(round), worker);
        if (static_cast<bool>(valid) || !p.invalid_is_error) {
          if (round > 0)
            fold(round, member);
          else
            clean &= kernels.rounds_read(rounds, call.operands, all.blocks() * member / all.members,
                                         all.blocks() * (member + 1) / all.members);
          if (round < all.rounds) distribute(round);
        }
        order.end();
      });
  run.valid = static_cast<bool>(valid);
  if (!run.finished || (!run.valid && p.invalid_is_error)) return run;
  rounds.settles = settles();
  // Threads start later than one thread ends to convert fewer bytes.
  const int converters = limited_product(p.destinations, p.step) < kParallelBytes ? 1 : all.members;
  run_tasks(converters, converters, {}, [&](int64_t i, int) {
    kernels.rounds_write(rounds, call.operands, all.blocks() * i / converters,
                         all.blocks() * (i + 1) / converters);
  });
  return run;
}

}  // namespace gatherum
