//! What only tenant files have.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::format;

use super::Reader;
use crate::error::detached;

impl Reader {
    pub(super) fn check_tenant(&self) -> PyResult<()> {
        self.shared.check_open()?;
        if *self.format != format::tenant::FORMAT {
            let name = self.format.name;
            return Err(PyValueError::new_err(format!(
                "{name} files have no partitions and tenants"
            )));
        }
        Ok(())
    }

    pub(super) fn contents(&self, py: Python<'_>) -> PyResult<format::tenant::Contents> {
        self.check_tenant()?;
        detached(py, || {
            format::tenant::Contents::read(self.source.clone(), &self.options)
        })
    }
}
