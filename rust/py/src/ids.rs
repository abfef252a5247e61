//! What a record is found by, as Python gives it.

use arrow_array::Array;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use seglake::OrBug;
use seglake::format::{Column, ColumnKind, Format, RecordId, Scalar};

use crate::error::raise;
use crate::field_in::{FieldIn, from_python, uuid_field};
use crate::field_in_arrow::from_arrow;

/// An identifier from values of the identifying columns; `None` where one is null.
fn id(values: &[FieldIn<'_>]) -> Option<RecordId> {
    let values = values.iter().map(|field| Scalar::of(&field.value()));
    values.collect::<Option<Vec<_>>>().map(RecordId::new)
}

/// What a caller gave to find one record by: positional and keyword arguments named like the columns.
pub(crate) fn id_from_arguments(
    format: &Format,
    identifying: &[&Column],
    args: &Bound<'_, PyTuple>,
    fields: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<RecordId>> {
    let usage = || {
        PyTypeError::new_err(format!(
            "{} records are found by {}",
            format.name,
            format.identifier.join(", ")
        ))
    };
    let mut given = args.iter();
    let mut values = Vec::new();
    for column in identifying {
        let value = match (given.next(), fields) {
            (Some(value), _) => value,
            (None, Some(fields)) => fields.get_item(column.name)?.ok_or_else(usage)?,
            (None, None) => return Err(usage()),
        };
        if value.is_none() {
            return Err(usage());
        }
        values.push(from_python(&value, column.kind, column.name)?);
    }
    let named = fields.into_iter().flatten().count();
    if given.next().is_some() || args.len() + named != identifying.len() {
        return Err(usage());
    }
    Ok(id(&values))
}

/// One of several identifiers: a value, or a tuple of values.
pub(crate) fn id_from_python(
    format: &Format,
    identifying: &[&Column],
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<RecordId>> {
    // Many ids may come in one list.
    if let [column] = identifying
        && column.kind == ColumnKind::Uuid
        && !object.is_instance_of::<PyTuple>()
        && !object.is_none()
    {
        return Ok(Some(uuid_field(object, column.name)?.into()));
    }
    let args = match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.clone(),
        Err(_) => PyTuple::new(object.py(), [object])?,
    };
    id_from_arguments(format, identifying, &args, None)
}

/// The identifiers in an Arrow array: of one column, or a structure of several. `None` for a null and for what no record
/// can have.
pub(crate) fn ids_from_arrow(
    py: Python<'_>,
    format: &Format,
    identifying: &[&Column],
    array: &dyn Array,
) -> PyResult<Vec<Option<RecordId>>> {
    use arrow_array::cast::AsArray;
    let arrays: Option<Vec<&dyn Array>> = match (identifying, array.as_struct_opt()) {
        ([_], None) => Some(vec![array]),
        (_, Some(fields)) => {
            let field = |column: &&Column| fields.column_by_name(column.name).map(|own| &**own);
            identifying.iter().map(field).collect()
        }
        _ => None,
    };
    let arrays = arrays.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{} records are found by {}: give an array of that, or a struct of these fields",
            format.name,
            format.identifier.join(", ")
        ))
    })?;
    if let ([array], [column]) = (arrays.as_slice(), identifying)
        && column.kind == ColumnKind::Uuid
        && let Some(uuids) = array.as_fixed_size_binary_opt()
        && uuids.value_length() == 16
    {
        let id = |uuid: &[u8]| {
            let uuid: [u8; 16] = uuid.try_into().or_bug("16 bytes a UUID")?;
            Ok(RecordId::from(uuid))
        };
        let ids = uuids.iter().map(|uuid| uuid.map(id).transpose());
        let ids: seglake::Result<_> = ids.collect();
        return ids.map_err(|error| raise(py, error));
    }
    let row = |row: usize| {
        let values = arrays.iter().zip(identifying);
        let values =
            values.map(|(array, column)| from_arrow(*array, row, column.kind, column.name));
        let values = values.collect::<PyResult<Vec<_>>>()?;
        Ok(id(&values))
    };
    (0..array.len()).map(row).collect()
}
