// Sorts values by group on several threads. One thread sorts all values of a group.
#include "lists/group_order.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "engine/owned_memory.hpp"
#include "engine/schedule.hpp"
#include "kernels/value_order.hpp"
#include "lists/row_lists.hpp"

namespace gatherum {
namespace {

// Tasks have groups of about this many values together. A larger group is a separate task.
constexpr int64_t kTaskValues = int64_t{1} << 16;
// Sorting a value takes about as long as moving this many bytes.
constexpr int64_t kSortedValueBytes = 64;

// Returns a program that reads one group number for each value.
Program reads_groups(const GroupedValues& call) {
  Program p;
  p.negative = p.checks.negative = false;
  p.checks.loops[0].extent = call.count;
  p.checks.loops[0].index = sizeof *call.groups;
  p.checks.components = 1;
  p.checks.component[0] = {call.group_count, 1, 0};
  complete(p);
  return p;
}

// Groups [begin, end), which have `values` values together. If these are more than kTaskValues, only one of
// the groups has values.
struct Task {
  int64_t begin, end, values;
};

// Returns tasks of all groups, those with the most values first.
std::vector<Task> tasks_of(const RowLists& lists, int64_t group_count) {
  std::vector<Task> tasks;
  Task next{};
  for (int64_t group = 0; group < group_count; ++group) {
    const int64_t values = lists.start_of(group + 1) - lists.start_of(group);
    if (next.values > 0 && next.values + values > kTaskValues) {
      tasks.push_back(next);
      next = {group, group, 0};
    }
    next.end = group + 1;
    next.values += values;
  }
  if (next.values > 0) tasks.push_back(next);
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& b) { return a.values > b.values; });
  return tasks;
}

// Writes the positions of the values of a group in order.
void order_group(const RowLists& lists, const GroupedValues& call, int64_t group, char* scratch,
                 int64_t* order) {
  const int64_t start = lists.start_of(group);
  const ValueOrder values{.value = call.value,
                          .values = call.values,
                          .positions = lists.rows_of(group),
                          .wide = lists.is_wide(),
                          .count = lists.start_of(group + 1) - start,
                          .scratch = scratch,
                          .order = order + start};
  if (call.values != nullptr) return order_values(values);
  for (int64_t i = start; i < start + values.count; ++i) order[i] = lists.row_at(i);
}

}  // namespace

Outcome order_by_group(const GroupedValues& call, int64_t* order, const Poll& poll) {
  if (call.count == 0) return {};
  const Program program = reads_groups(call);
  RowLists lists;
  int invalid = 0;
  const EdgeEnds groups{&program, reinterpret_cast<const char*>(call.groups)};
  const Outcome made = lists.make(call.group_count, 1, groups, {}, false, poll, invalid);
  if (made.status != Status::done) return made;

  const std::vector<Task> tasks = tasks_of(lists, call.group_count);
  const int threads = threads_for(limited_product(call.count, kSortedValueBytes));
  const auto run = [&](size_t begin, size_t end, int workers) {
    if (begin == end) return true;
    const int64_t values = std::max(tasks[begin].values, kTaskValues);
    const int64_t bytes = order_scratch_bytes(bytes_of(call.value), lists.is_wide());
    const WorkerScratch scratch(limited_product(values, bytes), workers);
    if (!scratch) throw std::bad_alloc();
    return run_tasks(static_cast<int64_t>(end - begin), workers, poll, [&](int64_t i, int worker) {
      const Task& task = tasks[begin + static_cast<size_t>(i)];
      for (int64_t group = task.begin; group < task.end; ++group)
        order_group(lists, call, group, scratch.memory_of(worker), order);
    });
  };
  size_t large = 0;
  while (large < tasks.size() && tasks[large].values > kTaskValues) ++large;
  const int64_t fitting = large > 0 ? std::max<int64_t>(1, 2 * call.count / tasks[0].values) : 1;
  const bool finished = run(0, large, static_cast<int>(std::min<int64_t>(threads, fitting))) &&
                        run(large, tasks.size(), threads);
  return {finished ? Status::done : Status::interrupted, {}};
}

}  // namespace gatherum
