//! `Uuids`: the UUIDs of many records, in little memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::FixedSizeBinaryArray;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyTuple};
use seglake::columns::{Selection, UuidType};
use seglake::format::{Options, active};
use uuid::Uuid;

use crate::arrow::{column_capsules, failed};
use crate::error::raise;
use crate::value::{to_uuids, uuid_class, uuid_from_python, uuid_to_python};

const UUID_BYTES: usize = 16;
/// `repr` shows so many at the beginning, and as many at the end.
const SHOWN: usize = 3;

/// UUIDs in an order, as `SegmentLog.write_batch` returns them: a sequence that compares equal to a list of them. Each `uuid.UUID` is made when
/// it is asked for, since making one takes longer than writing its record.
///
/// pyarrow takes it as a column of UUIDs, without an object for each: `pyarrow.array(uuids)`.
///
/// >>> with seglake.SegmentLog("new") as log:
/// ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
/// ...     [record.uuid for record in log] == uuids
/// True
#[pyclass(frozen, sequence, module = "seglake.types")]
pub(crate) struct Uuids(Vec<Uuid>);

impl Uuids {
    pub(crate) const fn new(uuids: Vec<Uuid>) -> Self {
        Self(uuids)
    }

    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, to_uuids(py, &self.0)?)
    }

    /// The offsets of a value, which may be of any type, between two offsets.
    fn places(
        &self,
        value: &Bound<'_, PyAny>,
        start: isize,
        stop: Option<isize>,
    ) -> PyResult<impl Iterator<Item = usize>> {
        let is_uuid = value.is_instance(uuid_class(value.py())?)?;
        let wanted = is_uuid.then(|| uuid_from_python(value)).transpose()?;
        let (start, stop) = (
            self.place(start),
            stop.map_or(self.0.len(), |stop| self.place(stop)),
        );
        let found = self.0.iter().enumerate().take(stop).skip(start);
        let found = found.filter(move |(_, uuid)| wanted == Some(*uuid.as_bytes()));
        Ok(found.map(|(place, _)| place))
    }

    /// What an index of a slice means.
    fn place(&self, index: isize) -> usize {
        match usize::try_from(index) {
            Ok(place) => place,
            Err(_) => self.0.len().saturating_sub(index.unsigned_abs()),
        }
    }
}

#[pymethods]
impl Uuids {
    /// UUIDs from what `to_bytes` gave. Raises ValueError where that is no multiple of 16 bytes.
    ///
    /// >>> len(seglake.types.Uuids.from_bytes(bytes(32)))
    /// 2
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        let (uuids, []) = data.as_chunks::<UUID_BYTES>() else {
            let message = format!(
                "the UUIDs have {} bytes: expected a multiple of {UUID_BYTES}",
                data.len()
            );
            return Err(PyValueError::new_err(message));
        };
        let uuids = uuids.iter().copied().map(Uuid::from_bytes);
        Ok(Self(uuids.collect()))
    }

    /// The 16 bytes of each, in network byte order.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
    /// ...     uuids.to_bytes() == uuids[0].bytes + uuids[1].bytes
    /// True
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.0.len() * UUID_BYTES, |out| {
            for (place, uuid) in out.chunks_exact_mut(UUID_BYTES).zip(&self.0) {
                place.copy_from_slice(uuid.as_bytes());
            }
            Ok(())
        })
    }

    /// The offset of the first one that is `value`. Raises ValueError where there is none.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
    /// ...     uuids.index(uuids[1])
    /// 1
    #[pyo3(signature = (value, start=0, stop=None))]
    fn index(
        &self,
        value: &Bound<'_, PyAny>,
        start: isize,
        stop: Option<isize>,
    ) -> PyResult<usize> {
        let found = self.places(value, start, stop)?.next();
        found.ok_or_else(|| PyValueError::new_err(format!("{value} is not among the UUIDs")))
    }

    /// How many of them are `value`.
    ///
    /// >>> with seglake.SegmentLog("new") as log:
    /// ...     uuids = log.write_batch([("order.created", b"1"), ("order.paid", b"2")])
    /// ...     uuids.count(uuids[1])
    /// 1
    fn count(&self, value: &Bound<'_, PyAny>) -> PyResult<usize> {
        Ok(self.places(value, 0, None)?.count())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let slice = slice.indices(self.0.len().cast_signed())?;
            let at = (0..slice.slicelength).filter_map(|number| {
                let place = slice.start + slice.step * number.cast_signed();
                self.0.get(place.cast_unsigned()).copied()
            });
            return Ok(Bound::new(py, Self(at.collect()))?.into_any());
        }
        let index: isize = index.extract()?;
        let from_end = if index < 0 { self.0.len() } else { 0 };
        let place = from_end.checked_add_signed(index);
        let uuid = place.and_then(|place| self.0.get(place));
        let beyond = || PyIndexError::new_err("index out of range");
        uuid_to_python(py, uuid.ok_or_else(beyond)?.as_bytes())
    }

    fn __iter__(slf: Py<Self>) -> UuidIterator {
        UuidIterator {
            uuids: slf,
            next: AtomicUsize::new(0),
        }
    }

    fn __contains__(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.places(value, 0, None)?.next().is_some())
    }

    fn __eq__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let is_equal = if let Ok(other) = other.cast::<Self>() {
            self.0 == other.get().0
        } else if let Ok(list) = other.cast::<PyList>() {
            list.len() == self.0.len() && self.to_list(py)?.eq(list)?
        } else {
            return Ok(py.NotImplemented().into_bound(py));
        };
        Ok(is_equal.into_pyobject(py)?.to_owned().into_any())
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        let bytes = slf.get().to_bytes(slf.py())?;
        Ok((from_bytes, PyTuple::new(slf.py(), [bytes])?))
    }

    fn __repr__(&self) -> String {
        let shown = |uuids: &[Uuid]| {
            let each: Vec<_> = uuids.iter().map(|uuid| format!("UUID('{uuid}')")).collect();
            each.join(", ")
        };
        match (self.0.first_chunk::<SHOWN>(), self.0.last_chunk::<SHOWN>()) {
            (Some(first), Some(last)) if self.0.len() > 2 * SHOWN => {
                format!("Uuids([{}, ..., {}])", shown(first), shown(last))
            }
            _ => format!("Uuids([{}])", shown(&self.0)),
        }
    }

    /// The UUIDs as an array of `arrow.uuid`, for Arrow's PyCapsule interface, as in `pyarrow.array(uuids)`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema; // a wish that may be left unfulfilled
        let names = ["uuid".to_owned()];
        let (options, uuids) = (Options::default(), UuidType::Extension);
        let selection = Selection::new(&active::FORMAT, &options, Some(&names), uuids);
        let selection = selection.map_err(|error| raise(py, error))?;
        let bytes: Vec<u8> = self.0.iter().flat_map(|uuid| *uuid.as_bytes()).collect();
        let array = FixedSizeBinaryArray::try_new(16, bytes.into(), None).map_err(failed)?;
        column_capsules(py, &array, selection.schema().field(0))
    }
}

/// Goes through `Uuids`.
#[pyclass(frozen, module = "seglake")]
pub(crate) struct UuidIterator {
    uuids: Py<Uuids>,
    next: AtomicUsize,
}

#[pymethods]
impl UuidIterator {
    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let uuids = &self.uuids.get().0;
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let uuid = uuids.get(place);
        uuid.map(|uuid| uuid_to_python(py, uuid.as_bytes()))
            .transpose()
    }
}
