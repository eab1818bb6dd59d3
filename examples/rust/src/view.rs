//! Slices with a shape, and the types of their items.

use std::ffi::{c_void, CStr};
use std::ptr::null;

use crate::ffi;

mod private {
    pub trait Sealed {}
}

/// A type that the library knows: an integer or a float. Every bit pattern is a value.
pub trait Item: private::Sealed + Copy + Default + 'static {
    #[doc(hidden)]
    const DTYPE: &'static CStr;
}

/// A type of indices: an integer.
pub trait Index: Item {}

macro_rules! items {
    ($($type:ty => $dtype:literal),*) => {$(
        impl private::Sealed for $type {}
        impl Item for $type {
            const DTYPE: &'static CStr = $dtype;
        }
    )*};
}

macro_rules! indices {
    ($($type:ty),*) => {$(impl Index for $type {})*};
}

items! {
    i8 => c"int8", i16 => c"int16", i32 => c"int32", i64 => c"int64",
    u8 => c"uint8", u16 => c"uint16", u32 => c"uint32", u64 => c"uint64",
    f32 => c"float32", f64 => c"float64"
}
indices!(i8, i16, i32, i64, u8, u16, u32, u64);

/// A new array in C order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    pub items: Vec<T>,
    pub shape: Vec<i64>,
}

/// A slice that an operator reads, with a shape.
#[derive(Clone, Debug)]
pub struct View<'a, T> {
    items: &'a [T],
    shape: Vec<i64>,
}

/// A slice that a scatter changes, with a shape.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    items: &'a mut [T],
    shape: Vec<i64>,
}

impl<'a, T: Item> View<'a, T> {
    /// Describe a slice as an array in C order. A call returns an error if the slice is too short.
    #[must_use]
    pub fn new(items: &'a [T], shape: &[i64]) -> Self {
        View { items, shape: shape.to_vec() }
    }

    pub(crate) fn spec(&self) -> ffi::Spec {
        spec::<T>(&self.shape)
    }

    pub(crate) fn buffer(&self) -> ffi::Buffer {
        buffer(self.items.as_ptr().cast_mut().cast(), self.items)
    }
}

impl<'a, T: Item> ViewMut<'a, T> {
    /// Describe a slice as an array in C order. A call returns an error if the slice is too short.
    #[must_use]
    pub fn new(items: &'a mut [T], shape: &[i64]) -> Self {
        ViewMut { items, shape: shape.to_vec() }
    }

    pub(crate) fn spec(&self) -> ffi::Spec {
        spec::<T>(&self.shape)
    }

    pub(crate) fn buffer(&mut self) -> ffi::Buffer {
        buffer(self.items.as_mut_ptr().cast(), self.items)
    }
}

/// A one-dimensional array of all items.
impl<'a, T: Item, S: AsRef<[T]> + ?Sized> From<&'a S> for View<'a, T> {
    fn from(items: &'a S) -> Self {
        let items = items.as_ref();
        View::new(items, &[size_of_slice(items)])
    }
}

/// A one-dimensional array of all items.
impl<'a, T: Item, S: AsMut<[T]> + ?Sized> From<&'a mut S> for ViewMut<'a, T> {
    fn from(items: &'a mut S) -> Self {
        let items = items.as_mut();
        let shape = [size_of_slice(items)];
        ViewMut::new(items, &shape)
    }
}

fn size_of_slice<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).expect("a slice has at most isize::MAX bytes")
}

fn spec<T: Item>(shape: &[i64]) -> ffi::Spec {
    ffi::Spec {
        dtype: T::DTYPE.as_ptr(),
        rank: i32::try_from(shape.len()).unwrap_or(i32::MAX), // which the library rejects
        shape: shape.as_ptr(),
        strides: null(),
        item: 0,
        swapped: 0,
    }
}

pub(crate) fn buffer<T>(start: *mut c_void, items: &[T]) -> ffi::Buffer {
    let bytes = i64::try_from(size_of_val(items)).expect("a slice has at most isize::MAX bytes");
    ffi::Buffer { start, bytes_before: 0, bytes_after: bytes }
}
