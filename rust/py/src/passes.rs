//! Passes over the file of one reader, and what they share.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use seglake::format::{Growth, Part};
use seglake::ledger::Kind;
use seglake::store::LogReader;
use seglake::verbs;

use crate::error::{damage_warning, warn};
use crate::exclusive::{InUse, lock};
use crate::log_facts::warn_of_skipped;

/// What passes are over.
pub(crate) struct Passes {
    /// A part of the file; `None` for all of it.
    pub(crate) part: Option<Part>,
    /// What the file grew by; `None` for all of it.
    pub(crate) growth: Option<Growth>,
    /// How many threads make batches.
    pub(crate) threads: usize,
}

impl Passes {
    /// Passes over a part of the file, or over all of it.
    pub(crate) const fn over(part: Option<Part>, threads: usize) -> Self {
        Self {
            part,
            growth: None,
            threads,
        }
    }
}

/// Who makes batches.
pub(crate) enum Made {
    /// So many threads, if all of the file is read.
    By(usize),
    /// A thread that is one batch ahead.
    Ahead,
}

/// A pass over the file that can say what it has read.
pub(crate) trait Pass: Send + Sync {
    fn report(&self) -> Result<verbs::Report, InUse>;
}

/// What all passes of one reader share.
#[derive(Default)]
pub(crate) struct Shared {
    /// What is shown of the file.
    about: String,
    /// The log, of which offsets are those in a segment.
    log: Option<LogReader>,
    pub(crate) closed: AtomicBool,
    warned: AtomicBool,
    /// Locked only to read or replace it, by whoever has the GIL or not: nothing is waited for meanwhile.
    latest: Mutex<Option<Arc<dyn Pass>>>,
}

impl Shared {
    /// Of a pass over a log.
    pub(crate) fn of_log(log: LogReader) -> Arc<Self> {
        Arc::new(Self {
            log: Some(log),
            ..Self::default()
        })
    }

    /// Of a reader of this file.
    pub(crate) fn new(path: Option<&Path>, format: &str, nbytes: u64) -> Self {
        Self {
            about: format!("{}, nbytes={nbytes}", about(path, format)),
            ..Self::default()
        }
    }

    /// What is shown of a reader, or of a pass that is called `class`.
    pub(crate) fn shown(&self, class: &str) -> String {
        let closed = self.closed.load(Ordering::Acquire);
        let state = if closed { ", closed" } else { "" };
        format!("{class}({}{state})", self.about)
    }

    /// Refuses where the reader is closed.
    pub(crate) fn check_open(&self) -> PyResult<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(PyValueError::new_err("the reader is closed"));
        }
        Ok(())
    }

    pub(crate) fn begin(&self, pass: Arc<dyn Pass>) {
        let before = lock(&self.latest).replace(pass);
        drop(before); // which may run Python code
    }

    pub(crate) fn latest(&self) -> Option<Arc<dyn Pass>> {
        lock(&self.latest).clone()
    }

    /// Warns, unless the reader has warned of damage already, that something was not found because of damage.
    pub(crate) fn warn_of_miss(&self, py: Python<'_>, path: Option<&Path>) -> PyResult<()> {
        if self.warned.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let path = name(path);
        let text = format!(
            "{path}: a record that was not found may be where the file is damaged: `seglake verify` lists all damage"
        );
        warn(py, damage_warning(py)?, text)
    }

    /// Warns of what a log's reader passed over.
    pub(crate) fn warn_of_skipped(&self, py: Python<'_>) -> PyResult<()> {
        match &self.log {
            Some(log) => warn_of_skipped(py, log.take_skipped()),
            None => Ok(()),
        }
    }

    /// Warns, once for each reader, that damage is being skipped. Once that is done, the pass is not asked for its report
    /// any more: that copies thousands of ranges where there are so many.
    pub(crate) fn warn(&self, py: Python<'_>, pass: &dyn Pass) -> PyResult<()> {
        self.warn_of_skipped(py)?;
        if self.warned.load(Ordering::Acquire) {
            return Ok(());
        }
        let report = py.detach(|| pass.report())?;
        let Some(first) = report.summary.damage.first() else {
            return Ok(());
        };
        if self.warned.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let path = name(report.summary.path.as_deref());
        let cause = first.cause.map_or("damage", |cause| cause.as_str());
        let advice = if report.summary.wrong_key() {
            "nothing checks though the structure is sound: this is probably the wrong key"
        } else if self.log.is_some() {
            "`seglake log verify` lists all damage"
        } else {
            "the reader's report and ledger() name all damage"
        };
        let of = if self.log.is_some() {
            " of a segment"
        } else {
            ""
        };
        let what = match first.kind {
            Kind::Repaired => "not all is as the parity sidecar has it",
            _ => "damage is skipped",
        };
        let text = format!(
            "{path}: {what}, first {cause} at offset {}{of}: {advice}",
            first.start
        );
        warn(py, damage_warning(py)?, text)
    }
}

/// What a file is called in a warning.
fn name(path: Option<&Path>) -> String {
    path.map_or_else(|| "<buffer>".into(), seglake::text::path)
}

/// What is shown of a file, of a thing that is about it.
pub(crate) fn about(path: Option<&Path>, format: &str) -> String {
    let path = path.map(|path| format!("{:?}", path.as_os_str()));
    let path = path.as_deref().unwrap_or("<buffer>");
    format!("{path}, format={format:?}")
}
