// Gathers rows and adds to accounts with gatherum.hpp, and catches the error of an invalid index.
#include <gatherum.hpp>
#include <iostream>

int main() {
  const std::vector<float> table = {0, 1, 10, 11, 20, 21, 30, 31};
  std::vector<float> rows(6);
  gatherum::gather({table, {4, 2}}, std::vector<int64_t>{2, 0, -1}, {rows, {3, 2}});
  for (int i = 0; i < 6; i += 2) std::cout << rows[i] << ' ' << rows[i + 1] << '\n';

  std::vector<double> accounts = {100, 0, 5};
  gatherum::Options add;
  add.reduction = "add";
  gatherum::scatter_elements(accounts, std::vector<int32_t>{0, 2, 0}, std::vector<double>{1, 2, 3}, accounts, add);
  std::cout << accounts[0] << ' ' << accounts[1] << ' ' << accounts[2] << '\n';

  try {
    gatherum::gather({table, {4, 2}}, std::vector<int64_t>{2, 0, 9}, {rows, {3, 2}});
  } catch (const gatherum::InvalidIndex& error) {
    std::cout << error.what() << '\n';
  }
}
