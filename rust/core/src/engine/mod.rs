//! How a file is gone through, whatever its format.

mod budget;

pub(crate) use budget::Budget;
