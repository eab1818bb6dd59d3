//! Gathers three rows of a table, with the required declarations of gatherum.h.
//!
//!     rustc --edition 2021 gather.rs -L FOLDER_OF_THE_LIBRARY -C link-arg=-Wl,-rpath,FOLDER_OF_THE_LIBRARY

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Spec {
    dtype: *const c_char,
    rank: i32,
    shape: *const i64,
    strides: *const i64,
    item: i64,
    swapped: i32,
}

#[repr(C)]
struct CallError {
    fault: c_int,
    operand: *const c_char,
    message: [c_char; 512],
}

#[repr(C)]
struct Error {
    message: *const c_char,
    operand: *const c_char,
    position: i64,
    value: i64,
    component: i32,
}

#[repr(C)]
struct Buffer {
    start: *mut c_void,
    before: i64,
    behind: i64,
}

#[repr(C)]
struct Operands {
    data: Buffer,
    indices: Buffer,
    updates: Buffer,
    out: Buffer,
    fill: *const c_void,
    fresh: i32,
}

#[link(name = "gatherum")]
extern "C" {
    fn gatherum_abi_version() -> i32;
    fn gatherum_make_gather(
        data: *const Spec,
        indices: *const Spec,
        out: *const Spec,
        attributes: *const c_void,
        program: *mut *mut c_void,
        error: *mut CallError,
    ) -> c_int;
    fn gatherum_check(program: *const c_void, operands: *const Operands, error: *mut Error) -> c_int;
    fn gatherum_run(
        program: *const c_void,
        operands: *const Operands,
        poll: *const c_void,
        error: *mut Error,
    ) -> c_int;
    fn gatherum_program_free(program: *mut c_void);
}

fn spec(dtype: &CStr, shape: &[i64]) -> Spec {
    Spec {
        dtype: dtype.as_ptr(),
        rank: shape.len() as i32,
        shape: shape.as_ptr(),
        strides: null(),
        item: 0,
        swapped: 0,
    }
}

fn buffer<T>(items: &[T]) -> Buffer {
    let behind = std::mem::size_of_val(items) as i64;
    Buffer { start: items.as_ptr() as *mut c_void, before: 0, behind }
}

/// Returns rows of a table of `width` columns, or an error message.
fn gather(table: &[f32], width: i64, rows: &[i64]) -> Result<Vec<f32>, String> {
    let shape = [table.len() as i64 / width, width];
    let count = [rows.len() as i64];
    let (data, indices) = (spec(c"float32", &shape), spec(c"int64", &count));
    let mut result = vec![0f32; rows.len() * width as usize];
    unsafe {
        let mut program = null_mut();
        let mut wrong: CallError = std::mem::zeroed();
        if gatherum_make_gather(&data, &indices, null(), null(), &mut program, &mut wrong) != 0 {
            return Err(CStr::from_ptr(wrong.message.as_ptr()).to_string_lossy().into_owned());
        }
        let out = Buffer { start: result.as_mut_ptr() as *mut c_void, ..buffer(&result) };
        let (data, indices, updates) = (buffer(table), buffer(rows), buffer::<u8>(&[]));
        let operands = Operands { data, indices, updates, out, fill: null(), fresh: 1 };
        let mut error: Error = std::mem::zeroed();
        let mut status = gatherum_check(program, &operands, &mut error);
        if status == 0 {
            status = gatherum_run(program, &operands, null(), &mut error);
        }
        gatherum_program_free(program);
        if status != 0 {
            let message = CStr::from_ptr(error.message).to_string_lossy();
            return Err(format!("{message}: {} at {}", error.value, error.position));
        }
    }
    Ok(result)
}

fn main() {
    assert_eq!(unsafe { gatherum_abi_version() }, 1);
    let table = [0., 1., 10., 11., 20., 21., 30., 31.];
    println!("{:?}", gather(&table, 2, &[2, 0, -1]));
    println!("{:?}", gather(&table, 2, &[2, 9]));
}
