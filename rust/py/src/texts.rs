//! Texts of records, which repeat: most segments have few types and tenants.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString};
use seglake::text::escape;

/// How many texts are kept to be shared.
const PLACES: usize = 16;
/// Longer texts are not kept.
const LONGEST: usize = 255;

/// A text that several records may share. Its Python objects are made when they are asked for first.
pub(crate) struct Text {
    stored: Box<[u8]>,
    bytes: PyOnceLock<Py<PyBytes>>,
    shown: PyOnceLock<Py<PyString>>,
}

impl Text {
    fn new(stored: &[u8]) -> Arc<Self> {
        Arc::new(Self {
            stored: stored.into(),
            bytes: PyOnceLock::new(),
            shown: PyOnceLock::new(),
        })
    }

    /// The text as it is in the file.
    pub(crate) fn bytes<'py>(&self, py: Python<'py>) -> &Bound<'py, PyBytes> {
        let make = || PyBytes::new(py, &self.stored).unbind();
        self.bytes.get_or_init(py, make).bind(py)
    }

    /// The text escaped.
    pub(crate) fn shown<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        let make = || PyString::new(py, &escape(&self.stored)).unbind();
        self.shown.get_or_init(py, make).bind(py)
    }
}

/// The texts of the last records. Texts with the same length + last byte, modulo [`PLACES`], replace each other.
#[derive(Default)]
pub(crate) struct Texts([Option<Arc<Text>>; PLACES]);

impl Texts {
    /// The text of these bytes.
    pub(crate) fn get(&mut self, bytes: &[u8]) -> Arc<Text> {
        let last = bytes.last().map_or(0, |byte| usize::from(*byte));
        let place = self.0.get_mut(bytes.len().wrapping_add(last) % PLACES);
        match place.filter(|_| bytes.len() <= LONGEST) {
            Some(Some(text)) if *text.stored == *bytes => text.clone(),
            Some(kept) => kept.insert(Text::new(bytes)).clone(),
            None => Text::new(bytes),
        }
    }
}
