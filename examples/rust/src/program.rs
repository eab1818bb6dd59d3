//! Programs: checked calls without their data.

use std::ffi::{c_int, CStr};
use std::mem::zeroed;
use std::ptr::{from_ref, null, null_mut};

use crate::error::Error;
use crate::view::{buffer, Array, Index, Item, View, ViewMut};
use crate::{ffi, Mode, Options, Reduction};

/// A program of the library, which is released when the value is dropped.
pub(crate) struct Program(*mut ffi::Program);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the library made the program, and nothing else releases it.
        unsafe { ffi::gatherum_program_free(self.0) };
    }
}

impl Program {
    pub(crate) fn gather<T: Item, I: Index>(
        make: ffi::MakeGather,
        data: &View<T>,
        indices: &View<I>,
        options: &Options<T>,
    ) -> Result<Self, Error> {
        let (data, indices, attributes) = (data.spec(), indices.spec(), attributes(options));
        Self::make(|program, error| {
            // SAFETY: the descriptions outlive the call, which copies them.
            unsafe { make(&data, &indices, null(), &attributes, program, error) }
        })
    }

    pub(crate) fn scatter<T: Item, I: Index>(
        make: ffi::MakeScatter,
        data: &ViewMut<T>,
        indices: &View<I>,
        updates: &View<T>,
        options: &Options<T>,
    ) -> Result<Self, Error> {
        let (data, indices, updates) = (data.spec(), indices.spec(), updates.spec());
        let attributes = attributes(options);
        Self::make(|program, error| {
            // SAFETY: the descriptions outlive the call, which copies them.
            unsafe { make(&data, &indices, &updates, &data, &attributes, program, error) }
        })
    }

    fn make(call: impl FnOnce(*mut *mut ffi::Program, *mut ffi::CallError) -> c_int) -> Result<Self, Error> {
        // SAFETY: the function has no arguments.
        let version = unsafe { ffi::gatherum_abi_version() };
        assert_eq!(version, ffi::ABI_VERSION, "this crate needs another version of the library");
        let mut program = null_mut();
        // SAFETY: all bits of the structure may be zero.
        let mut error: ffi::CallError = unsafe { zeroed() };
        match call(&mut program, &mut error) {
            ffi::OK => Ok(Program(program)),
            status => Err(Error::of_call(status, &error)),
        }
    }

    /// Run a gather and return its result.
    pub(crate) fn gather_into_array<T: Item, I: Index>(
        &self,
        data: &View<T>,
        indices: &View<I>,
        options: &Options<T>,
    ) -> Result<Array<T>, Error> {
        let shape = self.shape();
        let count = shape.iter().try_fold(1_usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?));
        let count = count.ok_or(Error::NoMemory)?;
        let mut items = Vec::new();
        items.try_reserve_exact(count).map_err(|_| Error::NoMemory)?;
        items.resize(count, T::default());
        self.run(&ffi::Operands {
            data: data.buffer(),
            indices: indices.buffer(),
            updates: ffi::Buffer { start: null_mut(), bytes_before: 0, bytes_after: 0 },
            out: buffer(items.as_mut_ptr().cast(), &items),
            fill: from_ref(&options.fill).cast(),
            fresh: 1,
        })?;
        Ok(Array { items, shape })
    }

    /// Run a scatter in place.
    pub(crate) fn scatter_in_place<T: Item, I: Index>(
        &self,
        mut data: ViewMut<T>,
        indices: &View<I>,
        updates: &View<T>,
    ) -> Result<(), Error> {
        let out = data.buffer();
        self.run(&ffi::Operands {
            data: out,
            indices: indices.buffer(),
            updates: updates.buffer(),
            out,
            fill: null(),
            fresh: 0,
        })
    }

    fn shape(&self) -> Vec<i64> {
        // SAFETY: the library returns as many sizes as the rank.
        unsafe {
            let rank = ffi::gatherum_program_rank(self.0);
            (0..rank).map(|d| *ffi::gatherum_program_shape(self.0).offset(d as isize)).collect()
        }
    }

    fn run(&self, operands: &ffi::Operands) -> Result<(), Error> {
        // SAFETY: all bits of the structure may be zero.
        let mut error: ffi::RunError = unsafe { zeroed() };
        // SAFETY: the buffers are slices. `gatherum_check` compares their lengths with the program, and
        // `gatherum_run` accesses no other memory. Only `out` is written, which is a slice that is borrowed
        // mutably or owned.
        unsafe {
            let mut status = ffi::gatherum_check(self.0, operands, &mut error);
            if status == ffi::OK {
                status = ffi::gatherum_run(self.0, operands, null(), &mut error);
            }
            if status == ffi::OK {
                Ok(())
            } else {
                Err(Error::of_run(status, &error))
            }
        }
    }
}

fn attributes<T>(options: &Options<T>) -> ffi::Attributes {
    ffi::Attributes {
        axis: options.axis,
        mode: mode_name(options.mode).as_ptr(),
        negative: options.negative.into(),
        reduction: reduction_name(options.reduction).as_ptr(),
        include_self: options.include_self.into(),
    }
}

fn mode_name(mode: Mode) -> &'static CStr {
    match mode {
        Mode::Raise => c"raise",
        Mode::Clip => c"clip",
        Mode::Wrap => c"wrap",
        Mode::Fill => c"fill",
        Mode::Drop => c"drop",
    }
}

fn reduction_name(reduction: Reduction) -> &'static CStr {
    match reduction {
        Reduction::None => c"none",
        Reduction::Add => c"add",
        Reduction::Mul => c"mul",
        Reduction::Max => c"max",
        Reduction::Min => c"min",
        Reduction::Mean => c"mean",
        Reduction::Fsum => c"fsum",
        Reduction::Fmean => c"fmean",
    }
}
