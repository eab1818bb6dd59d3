// Uses gatherum.hpp: views, strides, items without a dtype, programs as bytes, and each exception.
#include <gatherum.hpp>
#include <cstdio>
#include <cstdlib>

using namespace gatherum;

static void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  std::exit(1);
}

template <class Exception, class Call>
static std::string caught(Call call) {
  try {
    call();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing";
}

struct Pixel {
  unsigned char red, green, blue;
};

int main() {
  const std::vector<float> table = {0, 1, 10, 11, 20, 21};
  std::vector<float> out(2);
  const std::vector<int32_t> rows = {1, 0};

  // A column that is read backwards.
  gather({table.data() + 5, {3}, {-8}}, rows, out);
  expect(out == std::vector<float>({11, 21}), "negative strides");

  const Pixel pixels[2] = {{1, 2, 3}, {4, 5, 6}};
  Pixel moved[2];
  gather({pixels, {2}}, rows, {moved, {2}});
  expect(moved[0].green == 5 && moved[1].blue == 3, "items that only move");

  Options fill;
  const float none = -1;
  fill.mode = "fill";
  fill.fill = &none;
  gather({table, {6}}, std::vector<uint8_t>{9, 2}, out, fill);
  expect(out == std::vector<float>({-1, 10}), "a fill value");

  std::vector<double> sums(3);
  Options add;
  add.reduction = "add";
  const std::vector<uint16_t> ends = {2, 2};
  const std::vector<double> amounts = {1, 2};
  const Program program = Program::scatter_slices(sums, ends, amounts, sums, add);
  program(sums, ends, amounts, sums);
  Program::read(program.write())(sums, ends, amounts, sums);
  expect(sums == std::vector<double>({0, 0, 6}) && program.shape() == Sizes{3}, "programs");

  expect(caught<InvalidIndex>([&] { gather({table, {6}}, std::vector<int8_t>{0, 7}, out); }) ==
             "an index is out of bounds: 7 (indices[1])",
         "an invalid index");
  expect(caught<InvalidCall>([&] { gather(rows, table, out); }) ==
             "gather: `indices` must have an integer dtype, got float32",
         "an invalid dtype");
  expect(caught<InvalidCall>([&] { gather({table, {4, 2}}, rows, out); }) ==
             "a view of 6 items needs a shape of as many items",
         "a shape of more items");
  expect(caught<InvalidCall>([&] { gather(std::vector<float>{1, 2}, rows, {out, {2, 1}}); })
                 .find("`out` must have shape (2,)") != std::string::npos,
         "an invalid result");
  std::vector<int32_t> same = {1, 0};
  expect(caught<InvalidCall>([&] { gather({same.data(), {2}}, rows, same); }).find("data: ") == 0,
         "shared memory");
  expect(caught<Error>([] { Program::read({1, 2, 3}); }) != "nothing", "damaged bytes");
  std::puts("done");
}
