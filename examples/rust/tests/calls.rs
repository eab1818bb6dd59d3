//! Calls of each operator, and every kind of error.

use gatherum::{
    gather, gather_elements, gather_nd, scatter_elements, scatter_nd, scatter_slices, Error, Mode, Options,
    Reduction, View, ViewMut,
};

const TABLE: [i32; 6] = [1, 2, 3, 4, 5, 6];

fn options<T: gatherum::Item>() -> Options<T> {
    Options::default()
}

#[test]
fn gathers_return_items_and_shapes() {
    let table = View::new(&TABLE, &[3, 2]);
    let rows = gather(table.clone(), View::new(&[2_u8, 0], &[2, 1]), &options()).unwrap();
    assert_eq!((rows.items, rows.shape), (vec![5, 6, 1, 2], vec![2, 1, 2]));
    let columns = Options { axis: 1, ..options() };
    let elements = gather_elements(table.clone(), View::new(&[1_i8, 0, -1], &[3, 1]), &columns).unwrap();
    assert_eq!((elements.items, elements.shape), (vec![2, 3, 6], vec![3, 1]));
    let tuples = View::new(&[2_i64, 1, 0, 0], &[2, 2]);
    assert_eq!(gather_nd(table.clone(), tuples, &options()).unwrap().items, [6, 1]);
    let empty = gather(table, &[0_u64; 0], &options()).unwrap();
    assert_eq!((empty.items, empty.shape), (vec![], vec![0, 2]));
    let one = gather(&[7.5_f64], View::new(&[0_u16], &[]), &options()).unwrap();
    assert_eq!((one.items, one.shape), (vec![7.5], vec![]));
}

#[test]
fn modes_replace_the_error_of_an_invalid_index() {
    let gathered = |mode, fill| {
        let options = Options { mode, fill, negative: false, ..options() };
        gather(&TABLE, &[5_i16, 8, -1], &options).unwrap().items
    };
    assert_eq!(gathered(Mode::Clip, 0), [6, 6, 1]);
    assert_eq!(gathered(Mode::Wrap, 0), [6, 3, 6]);
    assert_eq!(gathered(Mode::Fill, 40), [6, 40, 40]);
    assert_eq!(gathered(Mode::Drop, 0), [6, 0, 0]);
}

#[test]
fn scatters_change_their_data_in_place() {
    let mut table = TABLE;
    let data = ViewMut::new(&mut table, &[3, 2]);
    scatter_slices(data, &[1_u32, 1], View::new(&[7, 7, 8, 9], &[2, 2]), &options()).unwrap();
    assert_eq!(table, [1, 2, 8, 9, 5, 6]);
    let places = View::new(&[0_i64, 1, 2, 0], &[2, 2]);
    scatter_nd(ViewMut::new(&mut table, &[3, 2]), places, &[-1, -2], &options()).unwrap();
    assert_eq!(table, [1, -1, 8, 9, -2, 6]);
}

#[test]
fn reductions_have_their_names() {
    let reduced = |reduction, include_self| {
        let mut totals = [10_f32, 20.];
        let options = Options { reduction, include_self, ..options() };
        scatter_elements(&mut totals, &[0_i32, 0], &[3., 5.], &options).unwrap();
        totals[0]
    };
    let results = [
        (Reduction::None, 5., 5.),
        (Reduction::Add, 18., 8.),
        (Reduction::Mul, 150., 15.),
        (Reduction::Max, 10., 5.),
        (Reduction::Min, 3., 3.),
        (Reduction::Mean, 6., 4.),
        (Reduction::Fsum, 18., 8.),
        (Reduction::Fmean, 6., 4.),
    ];
    for (reduction, with, without) in results {
        assert_eq!((reduced(reduction, true), reduced(reduction, false)), (with, without), "{reduction:?}");
    }
}

#[test]
fn an_invalid_index_writes_nothing() {
    let mut table = TABLE;
    let data = ViewMut::new(&mut table, &[3, 2]);
    let error = scatter_nd(data, View::new(&[0_i64, 0, 1, 2], &[2, 2]), &[8, 8], &options()).unwrap_err();
    assert_eq!(error.to_string(), "an index is out of bounds: 2 (indices[1])");
    let message = "an index is out of bounds".to_owned();
    assert_eq!(error, Error::InvalidIndex { message, position: 1, value: 2, component: 1 });
    assert_eq!(table, TABLE);
}

#[test]
fn an_invalid_call_has_the_message_of_the_library() {
    let error = gather(&TABLE, &[0_i64], &Options { axis: 1, ..options() }).unwrap_err();
    let message = "gather: `axis` must be in [-1, 1), got 1".to_owned();
    assert_eq!(error.to_string(), message);
    assert_eq!(error, Error::InvalidCall { operand: String::new(), message });
    let updates = View::new(&[8; 4], &[2, 2]);
    let mut table = TABLE;
    let data = ViewMut::new(&mut table, &[3, 2]);
    let error = scatter_slices(data, &[0_i64, 1, 2], updates, &options()).unwrap_err();
    assert_eq!(error.to_string(), "scatter_slices: `updates` must have shape (3, 2), got (2, 2)");
    assert_eq!(table, TABLE);
}

#[test]
fn a_slice_must_contain_its_shape() {
    for shape in [vec![4, 2], vec![i64::MAX / 4], vec![-1, 2], vec![1; 65]] {
        let error = gather(View::new(&TABLE, &shape), &[0_i64], &options()).unwrap_err();
        assert!(matches!(&error, Error::InvalidCall { operand, .. } if operand == "data"), "{error}");
    }
    let wide = View::new(&TABLE, &[1, 6]);
    let error = gather(wide, View::new(&[0_i64], &[1 << 50]), &options()).unwrap_err();
    assert_eq!(error, Error::NoMemory);
}
