// What the C interface's own types hold.
#pragma once

#include "program.hpp"

struct gatherum_program {
  gatherum::Program value;
};
