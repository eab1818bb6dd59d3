//! The declarations of `gatherum.h` that the crate uses, with the names of the header.

use std::ffi::{c_char, c_int, c_void};

pub const ABI_VERSION: i32 = 1;
pub const OK: c_int = 0;
pub const INVALID_INDEX: c_int = 1;
pub const NO_MEMORY: c_int = 3;

/// A program, which only the library can read.
#[repr(C)]
pub struct Program {
    private: [u8; 0],
}

#[repr(C)]
pub struct Spec {
    pub dtype: *const c_char,
    pub rank: i32,
    pub shape: *const i64,
    pub strides: *const i64,
    pub item: i64,
    pub swapped: i32,
}

#[repr(C)]
pub struct Attributes {
    pub axis: i64,
    pub mode: *const c_char,
    pub negative: i32,
    pub reduction: *const c_char,
    pub include_self: i32,
}

#[repr(C)]
pub struct CallError {
    pub fault: c_int,
    pub operand: *const c_char,
    pub message: [c_char; 512],
}

#[repr(C)]
pub struct RunError {
    pub message: *const c_char,
    pub operand: *const c_char,
    pub position: i64,
    pub value: i64,
    pub component: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Buffer {
    pub start: *mut c_void,
    pub bytes_before: i64,
    pub bytes_after: i64,
}

#[repr(C)]
pub struct Operands {
    pub data: Buffer,
    pub indices: Buffer,
    pub updates: Buffer,
    pub out: Buffer,
    pub fill: *const c_void,
    pub fresh: i32,
}

pub type MakeGather = unsafe extern "C" fn(
    data: *const Spec,
    indices: *const Spec,
    out: *const Spec,
    attributes: *const Attributes,
    program: *mut *mut Program,
    error: *mut CallError,
) -> c_int;

pub type MakeScatter = unsafe extern "C" fn(
    data: *const Spec,
    indices: *const Spec,
    updates: *const Spec,
    out: *const Spec,
    attributes: *const Attributes,
    program: *mut *mut Program,
    error: *mut CallError,
) -> c_int;

macro_rules! make_functions {
    (gathers: $($gather:ident),*; scatters: $($scatter:ident),*) => {
        extern "C" {
            $(pub fn $gather(
                data: *const Spec,
                indices: *const Spec,
                out: *const Spec,
                attributes: *const Attributes,
                program: *mut *mut Program,
                error: *mut CallError,
            ) -> c_int;)*
            $(pub fn $scatter(
                data: *const Spec,
                indices: *const Spec,
                updates: *const Spec,
                out: *const Spec,
                attributes: *const Attributes,
                program: *mut *mut Program,
                error: *mut CallError,
            ) -> c_int;)*
        }
    };
}

make_functions! {
    gathers: gatherum_make_gather, gatherum_make_gather_elements, gatherum_make_gather_nd;
    scatters: gatherum_make_scatter_slices, gatherum_make_scatter_elements, gatherum_make_scatter_nd
}

extern "C" {
    pub fn gatherum_abi_version() -> i32;
    pub fn gatherum_program_free(program: *mut Program);
    pub fn gatherum_program_rank(program: *const Program) -> i32;
    pub fn gatherum_program_shape(program: *const Program) -> *const i64;
    pub fn gatherum_check(program: *const Program, operands: *const Operands, error: *mut RunError) -> c_int;
    pub fn gatherum_run(
        program: *const Program,
        operands: *const Operands,
        poll: *const c_void,
        error: *mut RunError,
    ) -> c_int;
}
