//! Makes a sealed segment from an active one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Report;
use super::paths::refuse_source;
use super::verify::first_damage;
use crate::bug::OrBug;
use crate::checksum::{Incremental, Key};
use crate::cursor::Cursor;
use crate::engine::{IfExists, Start, WriteOptions};
use crate::error::{Damage, Error, Finding, Result, name};
use crate::format::active::{self, ActiveWalk};
use crate::format::{self, resolve, sealed};
use crate::ledger::Cause;
use crate::record::{Checked, Rows, Value};
use crate::setters::setters;
use crate::source::{FileSource, Source, Window};
use crate::spec::Filter;
use crate::walk::{Begin, Eof, Options, Step, Walk};

const CHECKSUM_BYTES: usize = 8;
/// How many checksums are read at once.
const CHECKSUMS_AHEAD_BYTES: usize = 64 << 10;

/// Options of sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealOptions {
    #[doc(hidden)] // public for the Python extension and tests
    pub trailer: bool,
    #[doc(hidden)] // public for the Python extension and tests
    pub if_exists: IfExists,
}

setters!(SealOptions {
    /// Whether to write checksums after the data.
    trailer: bool;
    /// Whether an existing file is an error or replaced. It cannot be appended to.
    if_exists: IfExists;
});

impl Default for SealOptions {
    fn default() -> Self {
        Self {
            trailer: true,
            if_exists: IfExists::default(),
        }
    }
}

/// Writes the records of an active segment to a new sealed one. Returns the report on the source. `progress` is called
/// at intervals with how many bytes of the source are done. An error that it returns ends the sealing.
///
/// Each record keeps its checksum from the source, which is never recomputed. So a record that changes on the way is
/// found, at the latest when the new file is read back, before it appears. It appears complete and synced.
///
/// In strict mode, damage in the source ends the sealing, also a torn tail. In lenient mode, sound records are sealed,
/// and the report lists the damage. A segment with the wrong key is never sealed. Of several keys, the source's becomes
/// the new file's.
///
/// # Errors
/// - [`Error::Usage`] if the source is not an active segment, or is the destination.
/// - [`Error::Damage`] if it is damaged, if its key is probably another, or if the new file reads back differently.
/// - [`Error::Io`] if the destination exists and is not to be replaced, or if it cannot be written.
/// - [`Error::Limit`], [`Error::Interrupted`].
pub fn seal(
    source: Arc<dyn Source>,
    options: &Options,
    destination: impl AsRef<Path>,
    seal: &SealOptions,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let destination = destination.as_ref();
    let format = resolve(&*source, options)?;
    if *format != active::FORMAT {
        return Err(Error::Usage(format!(
            "{}: expected an active segment to seal, found {}: convert it instead",
            name(&source.path().map(Path::to_path_buf)),
            format.name
        )));
    }
    let options = options
        .clone()
        .format(format)
        .filter(Filter::default())
        .values(true)
        .eof(Eof::Final);
    refuse_source(options.on(), &*source, Some(destination))?;
    let mut walk = ActiveWalk::open(source.clone(), &options, Begin::Beginning)?;
    let mut writer = sealed::Writer::create(
        destination,
        &WriteOptions::default()
            .on_disk(options.on())
            .if_exists(seal.if_exists)
            .interrupt(options.interrupt.clone())
            .set("trailer", seal.trailer),
    )?;
    let mut report = Report::of(format, &*source);
    while walk.step()? == Step::More {
        report.add(&walk);
        walk.scan()
            .each_record(|record| writer.append_record(&record))?;
        progress(walk.offset())?;
    }
    if report.summary.wrong_key() {
        return Err(first_damage(source, &options));
    }
    let key = walk.scan().file_key();
    writer.set_key(key)?;
    let written = writer.assemble()?;
    let checksums = writer.checksums()?;
    read_back(written, &checksums, key, &options)?;
    writer.commit()?;
    Ok(report)
}

/// Walks the new file and compares its records with the checksums that were carried over.
fn read_back(
    written: FileSource,
    checksums: &FileSource,
    key: Key,
    options: &Options,
) -> Result<()> {
    let path = written.path().map(PathBuf::from);
    let strict = options
        .clone()
        .format(&sealed::FORMAT)
        .keys(vec![key])
        .strict(true);
    let mut walk = format::open(Arc::new(written), &strict, Start::Beginning)?;
    let (mut window, mut at) = (Window::default(), 0);
    while walk.step()? == Step::More {
        let rows = walk.rows();
        if walk.checked() == Checked::Checksum {
            at += (rows.len() * CHECKSUM_BYTES) as u64; // the walk compared them
            continue;
        }
        for row in 0..rows.len() {
            window.load(checksums, at, CHECKSUM_BYTES, CHECKSUMS_AHEAD_BYTES)?;
            let stored = Cursor::new(window.bytes(checksums, at)).u64_be();
            at += CHECKSUM_BYTES as u64;
            let computed = checksum(&*rows, row, &key)?;
            if let Some(stored) = stored.filter(|stored| *stored != computed) {
                let computed = key.disclosed(computed);
                let finding = Finding::Checksum { stored, computed };
                return Err(not_as_written(path, rows.position(row), finding));
            }
        }
    }
    if at == checksums.len() {
        return Ok(());
    }
    let finding = Finding::Number {
        cause: Cause::CountMismatch,
        what: "the number of messages read back",
        expected: checksums.len() / CHECKSUM_BYTES as u64,
        actual: at / CHECKSUM_BYTES as u64,
    };
    Err(not_as_written(path, 0, finding))
}

/// The checksum of a record that was read back.
fn checksum(rows: &dyn Rows, row: usize, key: &Key) -> Result<u64> {
    let mut hasher = Incremental::new(key);
    if let Value::Uuid(uuid) = rows.field(row, 0) {
        hasher.update(&uuid);
    }
    if let Value::Text(type_) = rows.field(row, 2) {
        hasher.update(&[u8::try_from(type_.len()).or_bug("a type's length of one byte")?]);
        hasher.update(type_);
    }
    let value = rows.value(row);
    let len = u32::try_from(value.len()).or_bug("a value's length of four bytes")?;
    hasher.update(&len.to_be_bytes());
    hasher.update(value);
    Ok(hasher.finish())
}

fn not_as_written(path: Option<PathBuf>, offset: u64, finding: Finding) -> Error {
    Error::Damage(Box::new(Damage::new(path.as_deref(), offset, finding)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::format::active::Record;
    use crate::uuid6::Generator;

    /// A record that changes on the way is found, whether the new file has checksums of its own or not.
    #[test]
    fn a_record_that_changed_in_between_is_not_sealed() {
        for (trailer, is_right) in [(true, true), (true, false), (false, true), (false, false)] {
            let folder = tempfile::tempdir().unwrap();
            let options = WriteOptions::default().set("trailer", trailer);
            let path = folder.path().join("segment.sealed");
            let mut writer = sealed::Writer::create(&path, &options).unwrap();
            let uuid = Generator::default().now().into_bytes();
            let value: &[u8] = if is_right { b"value" } else { b"walue" };
            let hashed = [&uuid[..], b"\x04type\0\0\0\x05value"].concat();
            let record = Record {
                uuid,
                type_: b"type",
                value,
                checksum: crate::checksum::hash(&Key::DEFAULT, &hashed),
            };
            writer.append_record(&record).unwrap();
            let (written, checksums) = (writer.assemble().unwrap(), writer.checksums().unwrap());
            let read = read_back(written, &checksums, Key::DEFAULT, &Options::default());
            match read {
                Ok(()) => assert!(is_right),
                Err(Error::Damage(damage)) => {
                    assert!(!is_right);
                    assert_eq!((damage.offset, damage.cause), (48, Cause::ChecksumMismatch));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}
