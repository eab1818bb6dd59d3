//! Gathers rows, adds to accounts, and prints the errors of an invalid index and of an invalid shape.

use gatherum::{gather, scatter_elements, scatter_slices, Error, Options, Reduction, View, ViewMut};

fn main() -> Result<(), Error> {
    let table = [0_f32, 1., 10., 11., 20., 21., 30., 31.];
    let rows = gather(View::new(&table, &[4, 2]), &[2_i64, 0, -1], &Options::default())?;
    println!("{:?} {:?}", rows.items, rows.shape);

    let mut accounts = vec![100., 0., 5.];
    let add = Options { reduction: Reduction::Add, ..Options::default() };
    scatter_elements(&mut accounts, &[0_i32, 2, 0], &[1., 2., 3.], &add)?;
    println!("{accounts:?}");

    match gather(View::new(&table, &[4, 2]), &[2_u8, 0, 9], &Options::default()) {
        Err(error @ Error::InvalidIndex { .. }) => println!("{error}"),
        other => panic!("{other:?}"),
    }
    let mut copy = table;
    let updates = View::new(&[0.; 4], &[2, 2]);
    match scatter_slices(ViewMut::new(&mut copy, &[4, 2]), &[2_i64, 0, -1], updates, &Options::default()) {
        Err(error) => println!("{error}"),
        Ok(()) => panic!("the updates have too few rows"),
    }
    Ok(())
}
