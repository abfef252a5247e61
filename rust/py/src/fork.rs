//! What a process that was just forked has to know of itself.

use pyo3::prelude::*;

use crate::{exclusive, remote};

/// Called in a process that was just forked, by its only thread.
#[pyfunction]
pub(crate) fn forked() {
    exclusive::forked();
    remote::forked();
}
