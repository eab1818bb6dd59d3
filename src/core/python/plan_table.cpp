#include "python/plan_table.hpp"

#include <structmember.h>

#include <array>
#include <cstring>
#include <memory>

#include "python/call_plans.hpp"
#include "python/callbacks.hpp"

namespace gatherum {
namespace {

constexpr int kDeepestNames = 16;

// Calls `visit(names)` for the names of a structured dtype, and of every structure inside it. Returns false
// if there are too many, or if they are nested too deeply.
template <class Visit>
bool visit_names(PyArray_Descr* dtype, const Visit& visit, int depth = 0) {
  while (PyDataType_HASSUBARRAY(dtype)) dtype = PyDataType_SUBARRAY(dtype)->base;
  if (dtype->type_num != NPY_VOID || !PyDataType_HASFIELDS(dtype)) return true;
  if (depth == kDeepestNames || !visit(PyDataType_NAMES(dtype))) return false;
  PyObject *name = nullptr, *field = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(PyDataType_FIELDS(dtype), &at, &name, &field) != 0;)
    if (!visit_names(reinterpret_cast<PyArray_Descr*>(PyTuple_GET_ITEM(field, 0)), visit, depth + 1))
      return false;
  return true;
}

nb::handle as_bool(bool value) { return value ? Py_True : Py_False; }

struct Entry {
  std::vector<int64_t> words;
  std::vector<nb::object> kept_objects;  // the objects that the words refer to
  CachedPlan cached;

  bool matches(const Key& key) const {
    return key.identifies_call() && words.size() == static_cast<size_t>(key.size()) &&
           std::memcmp(words.data(), key.words(), sizeof(int64_t) * words.size()) == 0;
  }
  // Compares without making a key. Returns false for a dtype that has no number.
  bool describes(const Call& call) const {
    if (words.size() != static_cast<size_t>(kAttributeWords + words_of(call.operands))) return false;
    Comparison comparison(words.data());
    comparison.add(call.attributes);
    comparison.add(call.operands);
    return comparison.is_equal();
  }
};

// Each plan has one slot, so the table is bounded and a collision costs only a new plan.
constexpr int kSlotBits = 10;
using Table = std::array<std::unique_ptr<Entry>, size_t{1} << kSlotBits>;

Table& table() {
  static auto* plans = new Table;  // never destroyed: the interpreter may have ended by then
  return *plans;
}
size_t table_slot_of(const Key& key) { return key.hash() >> (64 - kSlotBits); }

// The slot of the operator's last plan. Several operators may share a slot.
uint16_t& recent_slot(const Attributes& attributes) {
  static std::array<uint16_t, 256> slots{};
  const auto op = reinterpret_cast<uintptr_t>(attributes.op.ptr());
  return slots[static_cast<uint64_t>(op) * 0x9E3779B97F4A7C15u >> 56];
}
nb::ft_mutex table_mutex;

}  // namespace

void Key::add_numpy(const View& view) {
  is_lasting_ = false;
  add_address(view.numpy);
  add(view.item * 2 + (PyDataType_REFCHK(view.numpy) ? 1 : 0));  // dtype.__setstate__ can change these
  if (view.numpy->type_num != NPY_VOID) return;
  identifies_call_ = identifies_call_ && visit_names(view.numpy, [this](PyObject* tuple) {
                       if (++names_ > kMostNames) return false;
                       add_address(tuple);
                       return true;
                     });
}

// The hash is a sum of products with different odd numbers. Products of products would take longer than the
// lookup.
uint64_t hash_of(const int64_t* words, int n) {
  static constexpr auto factors = [] {
    std::array<uint64_t, 32> odd{};
    uint64_t at = 0x9E3779B97F4A7C15u;
    for (uint64_t& factor : odd) {
      at = (at ^ (at >> 29)) * 0xBF58476D1CE4E5B9u;
      factor = at | 1;
    }
    return odd;
  }();
  uint64_t sum = 0;
  for (int i = 0; i < n; ++i)
    sum += static_cast<uint64_t>(words[i]) * factors[static_cast<size_t>(i) % factors.size()];
  return sum;
}

CachedPlan find_plan(const Call& call) {
  const nb::ft_lock_guard lock(table_mutex);
  uint16_t& recent = recent_slot(call.attributes);
  const auto& last = table()[recent];
  if (last && last->describes(call)) return last->cached;
  const Key key(call);
  const size_t slot = table_slot_of(key);
  const auto& entry = table()[slot];
  if (!entry || !entry->matches(key)) return {};
  recent = static_cast<uint16_t>(slot);
  return entry->cached;
}

CachedPlan plan_in_python(const Attributes& attributes, const OperandHandles& operands) {
  const auto [data, indices, updates, out] = operands;
  CachedPlan cached;
  cached.plan = callbacks().make_plan(attributes.op, data, indices, updates, attributes.axis,
                                      reduction_name(attributes), as_bool(attributes.include_self),
                                      mode_name(attributes), as_bool(attributes.negative), out);
  cached.program = &program_of(cached.plan);
  return cached;
}

void keep_plan(const Key& key, const Call& call, const CachedPlan& cached) {
  const Key current_key(call);  // fields may have been renamed while the plan was made
  auto entry = std::make_unique<Entry>();
  entry->words.assign(key.words(), key.words() + key.size());
  entry->cached = cached;
  if (!entry->matches(current_key)) return;
  entry->kept_objects.push_back(nb::borrow(call.attributes.op));
  for (const View& view : call.operands)
    if (view.numpy != nullptr) {
      entry->kept_objects.push_back(nb::borrow(reinterpret_cast<PyObject*>(view.numpy)));
      visit_names(view.numpy, [&](PyObject* tuple) {
        entry->kept_objects.push_back(nb::borrow(tuple));
        return true;
      });
    }
  {
    const nb::ft_lock_guard lock(table_mutex);
    table()[table_slot_of(key)].swap(entry);
  }  // the old entry is destroyed here, outside the lock: releasing objects may run Python code
}

namespace {

// A member of `__slots__` in objects of one type.
struct MemberSlot {
  PyTypeObject* type = nullptr;
  Py_ssize_t offset = 0;

  // Returns the slot's value in an object, or null if the slot is empty or the object has another type.
  PyObject* read(PyObject* object) const {
    if (Py_TYPE(object) != type) return nullptr;
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
  }
};

// Returns an attribute as a member of `__slots__`, or an empty MemberSlot if the attribute is not such a
// member.
MemberSlot member_slot_of(PyTypeObject* type, PyObject* name) {
  const nb::object descriptor = nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  if (!descriptor.is_valid()) PyErr_Clear();
  if (!descriptor.is_valid() || Py_TYPE(descriptor.ptr()) != &PyMemberDescr_Type) return {};
  const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(descriptor.ptr())->d_member;
  if (member->type != T_OBJECT_EX) return {};
  Py_INCREF(type);
  return {type, member->offset};
}

}  // namespace

const BoundProgram& program_of(nb::handle plan) {
  if (is_call_plan(plan)) return *nb::inst_ptr<BoundProgram>(nb::inst_ptr<CallPlan>(plan)->program());
  static PyObject* const name = kept_text("program");
  static const MemberSlot slot = member_slot_of(Py_TYPE(plan.ptr()), name);  // on plans: getattr takes 10 ns
  static const nb::handle type = nb::type<BoundProgram>();                   // isinstance takes 5 ns
  nb::object program = nb::borrow(slot.read(plan.ptr()));
  if (!program.is_valid()) program = checked(PyObject_GetAttr(plan.ptr(), name));
  if ((!program.type().is(type) && !nb::isinstance<BoundProgram>(program)) || !nb::inst_ready(program))
    throw nb::type_error("gatherum: a plan's `program` is not a program");
  return *nb::inst_ptr<BoundProgram>(program);  // the plan keeps it alive
}

std::vector<CachedPlan> take_plans() {
  Table old;
  {
    const nb::ft_lock_guard lock(table_mutex);
    old.swap(table());
  }
  std::vector<CachedPlan> plans;
  for (const auto& entry : old)
    if (entry) plans.push_back(entry->cached);
  return plans;
}

}  // namespace gatherum
