//! Errors of calls.

use std::ffi::{c_char, c_int, CStr};
use std::fmt;

use crate::ffi;

/// The reason why a call failed. `to_string` returns the message of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Shapes or options that are not a valid call, or a slice that is shorter than its shape.
    InvalidCall { operand: String, message: String },
    /// An index out of bounds, with [`Mode::Raise`](crate::Mode::Raise). `position` counts index tuples in
    /// row-major order, and `component` the indices of a tuple.
    InvalidIndex { message: String, position: i64, value: i64, component: i32 },
    /// The memory for the result or for the work is not available.
    NoMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::InvalidCall { message, .. } => formatter.write_str(message),
            Error::InvalidIndex { message, position, value, .. } => {
                write!(formatter, "{message}: {value} (indices[{position}])")
            }
            Error::NoMemory => formatter.write_str("out of memory"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Return the error of a call that the library rejected before it saw the data.
    pub(crate) fn of_call(status: c_int, error: &ffi::CallError) -> Self {
        if status == ffi::NO_MEMORY {
            return Error::NoMemory;
        }
        let message = text(error.message.as_ptr());
        Error::InvalidCall { operand: text(error.operand), message }
    }

    /// Return the error of a call on data.
    pub(crate) fn of_run(status: c_int, error: &ffi::RunError) -> Self {
        match status {
            ffi::NO_MEMORY => Error::NoMemory,
            ffi::INVALID_INDEX => Error::InvalidIndex {
                message: text(error.message),
                position: error.position,
                value: error.value,
                component: error.component,
            },
            _ => {
                let operand = text(error.operand);
                Error::InvalidCall { message: format!("{operand}: {}", text(error.message)), operand }
            }
        }
    }
}

fn text(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the library's texts end with a zero byte, and are constants or part of the error.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}
