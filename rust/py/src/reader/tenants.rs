//! What only tenant files have.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use seglake::format;
use seglake::text::escape;

use super::Reader;
use crate::error::{detached, raise};
use crate::typed::typed;

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

    /// What `tenants` gives.
    pub(super) fn tenants_of(
        &self,
        py: Python<'_>,
        partition: Option<u32>,
    ) -> PyResult<Vec<String>> {
        let contents = self.contents(py)?;
        let blocks = contents.blocks().iter();
        let mut tenants: Vec<&[u8]> = blocks
            .filter(|block| partition.is_none_or(|partition| block.partition == partition))
            .map(|block| &*block.tenant)
            .collect();
        tenants.sort_unstable();
        tenants.dedup();
        Ok(tenants
            .into_iter()
            .map(|tenant| escape(tenant).into_owned())
            .collect())
    }

    /// What `blocks` gives.
    pub(super) fn tenant_blocks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.check_tenant()?;
        let options = self.options.clone().strict(false);
        let blocks = py.detach(|| format::tenant::blocks(self.source.clone(), &options));
        let object = |block: &format::tenant::Block| {
            let fields = (
                block.position,
                block.partition,
                escape(&block.tenant),
                PyBytes::new(py, &block.tenant),
                block.messages,
            );
            typed(py, "Block", fields)
        };
        let blocks = blocks.map_err(|error| raise(py, error))?;
        blocks.iter().map(object).collect()
    }
}
