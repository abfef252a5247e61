//! Making a sealed segment of an active one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Report;
use crate::bug::OrBug;
use crate::checksum::{Incremental, Key};
use crate::cursor::Cursor;
use crate::engine::{Eof, Filter, IfExists, Options, Start, Step, Walk, WriteOptions};
use crate::error::{Damage, Error, Finding, Result};
use crate::format::active::{self, ActiveWalk};
use crate::format::{self, resolve, sealed};
use crate::ledger::Cause;
use crate::record::Checked;
use crate::record::{Rows, Value};
use crate::setters::setters;
use crate::source::{FileSource, Source, Window};

const CHECKSUM_BYTES: usize = 8;
/// How many checksums are read at once.
const CHECKSUMS_AHEAD_BYTES: usize = 64 << 10;

/// How a segment is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SealOptions {
    /// Write checksums behind the data.
    pub trailer: bool,
    /// Replace an existing file. Otherwise it is an error.
    pub overwrite: bool,
}

setters!(SealOptions {
    trailer: bool;
    overwrite: bool;
});

impl Default for SealOptions {
    fn default() -> Self {
        Self {
            trailer: true,
            overwrite: false,
        }
    }
}

/// Writes the records of an active segment to a new sealed one, and gives what was found in the source. `progress` is told again
/// and again how many bytes of the source are done; its error ends the sealing.
///
/// Each record keeps the checksum that it has in the source, which is never computed anew: what changes a record between the
/// two is found, at the latest when the new file is read back, before it gets its name. It appears there complete and synced,
/// or not at all. Whatever may be done with the source, the new file can be read by its owner alone.
///
/// Reading strictly, damage in the source, a torn tail too, ends the sealing; else what is sound is sealed, and the report
/// tells of the rest. A segment under a wrong key is never sealed. Of several keys the source's is the new file's.
///
/// # Errors
/// [`Error::Usage`] where the source is no active segment; [`Error::Damage`] where it is damaged, or probably under another
/// key, or where what was written is not what is read back; [`Error::Io`] where the destination exists and is not to be
/// overwritten, or cannot be written to; [`Error::Limit`]; [`Error::Interrupted`].
pub fn seal(
    source: Arc<dyn Source>,
    options: &Options,
    destination: &Path,
    seal: &SealOptions,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Report> {
    let format = resolve(&*source, options)?;
    if *format != active::FORMAT {
        return Err(Error::Usage(format!(
            "only active segments are sealed, and this is {}: convert it",
            format.name
        )));
    }
    let options = options
        .clone()
        .format(format)
        .filter(Filter::default())
        .values(true)
        .eof(Eof::Final);
    let mut walk = ActiveWalk::open(source.clone(), &options, Start::Beginning)?;
    let mut writer = sealed::Writer::create(
        destination,
        &WriteOptions::default()
            .if_exists(IfExists::overwrite_if(seal.overwrite))
            .interrupt(options.interrupt.clone())
            .set("trailer", seal.trailer),
    )?;
    let mut report = Report::of(format, &*source);
    while walk.step()? == Step::More {
        report.add(&walk);
        walk.scan()
            .each_stored(|record| writer.append_stored(&record))?;
        progress(walk.offset())?;
    }
    if report.wrong_key() {
        return Err(wrong_key(source, &options));
    }
    let key = walk.scan().file_key();
    writer.set_key(key)?;
    let written = writer.assemble()?;
    let checksums = writer.checksums()?;
    read_back(written, &checksums, key, &options)?;
    writer.commit()?;
    Ok(report)
}

/// The error of a source under another key.
fn wrong_key(source: Arc<dyn Source>, options: &Options) -> Error {
    let strict = options.clone().strict(true);
    let mut walk = match ActiveWalk::open(source, &strict, Start::Beginning) {
        Ok(walk) => walk,
        Err(error) => return error,
    };
    loop {
        match walk.step() {
            Ok(Step::More) => {}
            Ok(_) => {
                return Error::Usage("the source changed while it was sealed".to_owned());
            }
            Err(error) => return error,
        }
    }
}

/// Walks what was written, and compares it with the checksums that were carried over.
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

/// The checksum of a record as it was read back.
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
    use crate::format::active::Stored;
    use crate::uuid6::Generator;

    /// What changes on the way from one file to the other is found, whether the new one has checksums of its own or not.
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
            let record = Stored {
                uuid,
                type_: b"type",
                value,
                checksum: crate::checksum::hash(&Key::DEFAULT, &hashed),
            };
            writer.append_stored(&record).unwrap();
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
