// Each function defines the part of the module that one file implements.
#pragma once

#include "python/numpy/arrays.hpp"

namespace gatherum {

void bind_programs(nb::module_& m);       // programs as values, and the properties of reductions
void bind_call_plans(nb::module_& m);     // plans that the core makes
void bind_lowering(nb::module_& m);       // the checks of a call, the roles of dimensions, and the loops
void bind_accelerate(nb::module_& m);     // functions whose calls the core runs without their bodies
void bind_indices(nb::module_& m);        // from arrays of indices to the addressed elements
void bind_folds(nb::module_& m);          // folds in batches
void bind_neutral(nb::module_& m);        // neutral elements of folds
void bind_lists(nb::module_& m);          // lists of rows
void bind_files(nb::module_& m);          // reads and writes of files
void bind_row_caches(nb::module_& m);     // a cache of rows
void bind_memory_tables(nb::module_& m);  // gathers from open tables in memory
void bind_elementary(nb::module_& m);     // exp and log of arrays
void bind_quantized(nb::module_& m);      // gathers of quantized rows
void bind_memory_calls(nb::module_& m);   // calls on memory outside NumPy
void bind_group_calls(nb::module_& m);    // scatters for functions over groups
void bind_tensors(nb::module_& m);        // calls on tensors
void bind_tensor_gradients(nb::module_& m);
void bind_tensor_routes(nb::module_& m);  // whether the core runs a call on tensors
void bind_torch_state(nb::module_& m);    // the torch objects that the core uses
void bind_scatter_into_zeros(nb::module_& m);
void bind_override_kernels(nb::module_& m);
void bind_coalesce(nb::module_& m);
void bind_jax_call_cache(nb::module_& m);  // the cache of calls on another framework's arrays

void bind_device_programs(nb::module_& m);   // launches on a CUDA device
void bind_device_arrays(nb::module_& m);     // calls on arrays on a CUDA device
void bind_device_tensors(nb::module_& m);    // calls on tensors on a CUDA device
void bind_xla_device_calls(nb::module_& m);  // XLA custom calls on a CUDA device

}  // namespace gatherum
