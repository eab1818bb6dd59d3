//! Gather and scatter on slices: a safe interface to `gatherum.h`.
//!
//! ```
//! use gatherum::{gather, Options, View};
//!
//! let table = [0., 1., 10., 11., 20., 21., 30., 31.];
//! let rows = gather(View::new(&table, &[4, 2]), &[2_i64, 0, -1], &Options::default())?;
//! assert_eq!(rows.items, [20., 21., 0., 1., 30., 31.]);
//! assert_eq!(rows.shape, [3, 2]);
//! # Ok::<(), gatherum::Error>(())
//! ```
//!
//! Gathers return a new array; scatters change their first operand. Arrays are in C order. Every error is an
//! [`Error`] with the message of the library. The library checks the indices and the lengths of all slices.

mod error;
mod ffi;
mod program;
mod view;

pub use error::Error;
pub use view::{Array, Index, Item, View, ViewMut};

use program::Program;

/// How a call handles an index that is out of bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Return [`Error::InvalidIndex`]. A scatter then has written nothing.
    #[default]
    Raise,
    Clip,
    Wrap,
    /// Gather the fill value, and skip the update of a scatter.
    Fill,
    /// The same as `Fill`.
    Drop,
}

/// How a scatter combines an update with the old value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Replace the old value.
    #[default]
    None,
    Add,
    Mul,
    Max,
    Min,
    Mean,
    /// The exact sum, rounded once.
    Fsum,
    /// The exact mean, rounded once.
    Fmean,
}

/// The arguments that are not arrays. The defaults are the defaults of Python.
#[derive(Clone, Debug)]
pub struct Options<T> {
    /// The axis, or `batch_dims` of [`gather_nd`] and [`scatter_nd`].
    pub axis: i64,
    pub mode: Mode,
    /// Whether negative indices count from the end.
    pub negative: bool,
    /// The reduction of a scatter.
    pub reduction: Reduction,
    /// Whether the old value is part of the reduction.
    pub include_self: bool,
    /// The value that a gather with [`Mode::Fill`] writes for invalid indices.
    pub fill: T,
}

impl<T: Item> Default for Options<T> {
    fn default() -> Self {
        Options {
            axis: 0,
            mode: Mode::Raise,
            negative: true,
            reduction: Reduction::None,
            include_self: true,
            fill: T::default(),
        }
    }
}

macro_rules! gathers {
    ($($(#[$doc:meta])* $name:ident => $make:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// Returns an [`Error`] if the shapes, options or indices are invalid, or if memory runs out.
        pub fn $name<'a, T: Item, I: Index>(
            data: impl Into<View<'a, T>>,
            indices: impl Into<View<'a, I>>,
            options: &Options<T>,
        ) -> Result<Array<T>, Error> {
            let (data, indices) = (data.into(), indices.into());
            Program::gather(ffi::$make, &data, &indices, options)?.gather_into_array(&data, &indices, options)
        }
    )*};
}

macro_rules! scatters {
    ($($(#[$doc:meta])* $name:ident => $make:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        ///
        /// Returns an [`Error`] if the shapes, options or indices are invalid, or if memory runs out. `data` is
        /// then unchanged.
        pub fn $name<'a, T: Item, I: Index>(
            data: impl Into<ViewMut<'a, T>>,
            indices: impl Into<View<'a, I>>,
            updates: impl Into<View<'a, T>>,
            options: &Options<T>,
        ) -> Result<(), Error> {
            let (data, indices, updates) = (data.into(), indices.into(), updates.into());
            Program::scatter(ffi::$make, &data, &indices, &updates, options)?.scatter_in_place(data, &indices, &updates)
        }
    )*};
}

gathers! {
    /// Return `data[a.., indices[i..], s..]`: the slices with these numbers along the axis.
    gather => gatherum_make_gather;
    /// Return the element that each index selects along the axis, at the index's own other coordinates.
    gather_elements => gatherum_make_gather_elements;
    /// Return the elements or slices at index tuples, the last dimension of `indices`.
    gather_nd => gatherum_make_gather_nd;
}

scatters! {
    /// Write `updates` to the slices of `data` with these numbers along the axis, in order.
    scatter_slices => gatherum_make_scatter_slices;
    /// Write each update to the element that its index selects along the axis, in order.
    scatter_elements => gatherum_make_scatter_elements;
    /// Write `updates` to the elements or slices at index tuples, in order.
    scatter_nd => gatherum_make_scatter_nd;
}
