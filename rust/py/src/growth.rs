//! `resume` and `identity`: reading what a file grew by.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use seglake::format::{self, Growth};
use uuid::Uuid;

use crate::error::{detached, raise};
use crate::filters::Filters;
use crate::key::KeyArgument;
use crate::keywords::with_keywords;
use crate::listed::ListedSegment;
use crate::names;
use crate::numbers;
use crate::open::uuids;
use crate::options::Named;
use crate::parity::{AUTO, SidecarArgument};
use crate::passes::Passes;
use crate::position::Position;
use crate::read_options::{OpenSource, ReadArguments};
use crate::reader::{Reader, Wanted};
use crate::remote::StorageOptions;
use crate::reopening::Reopening;

with_keywords! {
/// Opens a file to read what it grew by since a position; all of it where that is None. Each pass of the reader, and its
/// `ledger()`, are of that alone. Once a pass has read to the end, `Reader.position` says where to go on, and
/// `Reader.pending_bytes` how much of an unfinished record is left. `source` is as in `open`.
///
/// Records, damage and bytes of one call after the other add up to those of one reading of the file. An active file that was
/// sealed since goes on after the last record that was read. No more is read than the new bytes, and a look at the first record
/// and the last one that was read; but zeros at the end of a preallocated file are looked at each time, and an oplog of the
/// dialect "draft-1.1" with many keys is read from its beginning. With a parity sidecar each block that
/// is read (4 KiB or less) is verified. A band (16 MiB) is judged as a whole if one of its blocks is damaged, and then the whole file is.
///
/// A file is read as its sidecar has it, so a position does not depend on what is damaged meanwhile, repaired later, or read without the
/// sidecar. Of a file without checksums nothing is read that would have to be taken back: DamageError is raised, whatever `on_damage` is,
/// where lost blocks are reached in one that may grow, and if the sidecar is of another file.
///
/// size: read no more than this many bytes of the file: as many as were listed.
/// final: the file grows no more, so that an unfinished record at its end is damage. The position stays before it: if it is
///     finished after all, it is read then.
/// only_end: a pass is only to find where the new bytes end. `position` and `pending_bytes` are as after any pass, and there is a record or
///     damage if there would be. But of a chunked file most chunks are left out, without being decompressed: those that headers lead over to
///     the last sound one. In other formats, with `filters`, with a parity sidecar, of objects of a store and if `on_damage` is "raise",
///     it changes nothing.
/// The others are as in `open`. A file of a file system is given as the file object that this opens.
///
/// Raises ReplacedError where it is another file than the position is of, or less of it is left, and what `open` raises.
///
/// >>> orders = seglake.incremental.resume("orders.active", None, size=150)
/// >>> [record.type for record in orders], orders.pending_bytes
/// (['order.created', 'order.paid'], 45)
/// >>> [record.type for record in seglake.incremental.resume("orders.active", orders.position)]
/// ['order.shipped']
fn resume(source: &Bound<'_, PyAny>, position: Option<Bound<'_, Position>>; ResumeArguments<'a> [keywords] {
    #[pyo3(from_py_with = numbers::size)]
    size: Option<u64> = None,
    r#final: bool = false,
    only_end: bool = false,
    format: Option<&'a str> = None,
    #[pyo3(from_py_with = names::columns)]
    columns: Option<Vec<String>> = None,
    filters: Option<Filters> = None,
    on_damage: &'a str = "raise",
    key: Option<KeyArgument> = None,
    sidecar: Option<SidecarArgument> = AUTO,
    uuid_type: &'a str = "uuid",
    options: Option<Named> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Reader;
}

impl ResumeArguments<'_> {
    fn resume(
        self,
        source: &Bound<'_, PyAny>,
        position: Option<Bound<'_, Position>>,
    ) -> PyResult<Reader> {
        let py = source.py();
        let core = |error| raise(py, error);
        let on_damage = self.on_damage.parse().map_err(core)?;
        let uuids = uuids(self.uuid_type)?;
        let keywords = self.keywords(py)?;
        keywords.set_item("position", &position)?;
        let reopening = Reopening::new("resume", keywords, self.key.as_ref());
        let arguments = ReadArguments::new(self.format, self.key, self.options)
            .general()
            .sidecar(self.sidecar)
            .within(source, None, self.storage_options)?;
        let since = position.as_ref().map(|position| &position.get().0);
        let mut given = arguments.give_since(source, self.size)?;
        let listed = listed_last(source, &given, self.size)?;
        let options = given.options.on_damage(on_damage);
        let growth = py.detach(|| Growth::since(given.source.clone(), &options, since));
        let growth = growth.map_err(core)?.is_final(self.r#final);
        let growth = growth.only_end(self.only_end).up_to(listed);
        let format = growth.format();
        given.options = growth.options().clone();
        let wanted = Wanted {
            columns: self.columns,
            filters: self.filters,
            uuids,
        };
        let passes = Passes {
            part: None,
            growth: Some(growth),
            threads: 1,
        };
        Reader::new(py, given, format, wanted, passes, reopening)
    }
}

/// The last record of a segment of a log that was sealed since it was listed. Refuses a size beside that of the listing.
fn listed_last(
    source: &Bound<'_, PyAny>,
    given: &OpenSource,
    size: Option<u64>,
) -> PyResult<Option<Uuid>> {
    let Ok(segment) = source.cast::<ListedSegment>() else {
        return Ok(None);
    };
    if size.is_some() {
        return Err(PyValueError::new_err(
            "size does not concern a segment of a log: it was listed with its size",
        ));
    }
    let is_sealed = given.options.format == Some(&format::sealed::FORMAT);
    let own = &segment.get().0;
    let bound = own.bound.filter(|_| own.is_open && is_sealed);
    Ok(bound.and_then(|bound| bound.last).map(Uuid::from_bytes))
}

with_keywords! {
/// What identifies a file while it grows and when it is sealed, as text; None as long as it has no whole record that is sound.
/// It is made of the first one: of the format's family ("segment" for active and sealed), the UUID where it has one, and a hash.
///
/// Files whose first records are the same have the same identity. So files of one identity may be two: `resume` with the position
/// of one raises ReplacedError for the other. The arguments are as in `resume`; the first record is the one that the sidecar restores.
///
/// >>> identity = seglake.incremental.identity
/// >>> identity("orders.active").split(":")[0], identity("orders.active", size=10)
/// ('segment', None)
fn identity(source: &Bound<'_, PyAny>; IdentityArguments<'a> {
    #[pyo3(from_py_with = numbers::size)]
    size: Option<u64> = None,
    format: Option<&'a str> = None,
    key: Option<KeyArgument> = None,
    sidecar: Option<SidecarArgument> = AUTO,
    options: Option<Named> = None,
    storage_options: Option<StorageOptions> = None,
}) -> Option<String>;
}

impl IdentityArguments<'_> {
    fn identity(self, source: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let py = source.py();
        let arguments = ReadArguments::new(self.format, self.key, self.options)
            .general()
            .sidecar(self.sidecar)
            .within(source, None, self.storage_options)?;
        let OpenSource {
            source, options, ..
        } = arguments.give_since(source, self.size)?;
        let found = detached(py, || format::identity(&source, &options))?;
        Ok(found.map(|identity| identity.to_string()))
    }
}
