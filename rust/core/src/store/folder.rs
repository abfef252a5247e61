//! What is in a log's folder, whether a file is the segment that its name says, and files that appear or vanish for good:
//! docs/formats/log.md, "Names".

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::name::{MARK, Part, SegmentId, SegmentKind};
use crate::checksum::Key;
use crate::disk::{DiskRef, Handle};
use crate::engine::Start;
use crate::error::{Error, LogFault, Result};
use crate::format;
use crate::output::{NewFile, is_quarantine_offset};
use crate::record::Value;
use crate::source::{FileSource, Source as _};
use crate::walk::{Options, Step};

/// How often a folder is listed before a gap is believed: each time it has to be the same one.
const LISTINGS: usize = 10;
/// How often it is listed at most while it changes all the time.
const MOST_LISTINGS: usize = 1000;
/// So many files are listed by one call of the system, also on file systems of the network: at one moment, then.
const LISTED_AT_ONCE: usize = 32;
/// Where both kinds of segments have the UUID of their first record: at the beginning.
const UUID_BYTES: usize = 16;

/// The folder of a log, on its disk, and the key of the log.
#[derive(Clone, Debug)]
pub(super) struct LogFolder {
    pub(super) disk: DiskRef,
    pub(super) path: PathBuf,
    pub(super) key: Key,
}

impl LogFolder {
    /// The path of a file in it.
    pub(super) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// A segment whose file is of this kind.
    pub(super) fn segment(&self, id: SegmentId, kind: SegmentKind) -> Segment {
        Segment::of(&self.path, id, kind)
    }

    /// What its segments are read with.
    pub(super) fn options(&self) -> Options {
        Options::default().on_disk(&self.disk).keys(vec![self.key])
    }

    /// Writes a new file, which is on the disk with its name when this returns.
    pub(super) fn write_new(
        &self,
        name: &str,
        write: impl FnOnce(&mut Handle) -> std::io::Result<()>,
    ) -> Result<()> {
        let path = self.join(name);
        let mut new = NewFile::create(&self.disk, &path, true)?;
        write(new.file()).map_err(|error| Error::io(Some(&path), "cannot write", error))?;
        new.commit()
    }

    /// Removes a file, if it is there, and makes that survive a loss of power before anything else is removed.
    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        let removed = match self.disk.unlink(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        let removed = removed.and_then(|()| self.disk.sync_folder(&self.path));
        removed.map_err(|error| Error::io(Some(path), "cannot remove", error))
    }

    /// Removes a file that does no harm: an error is ignored.
    pub(super) fn forget(&self, name: &str) {
        let _ = self.disk.unlink(&self.join(name));
    }
}

/// A segment of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// Its place in the log, and its identity.
    pub id: SegmentId,
    /// Its layout. While it is being sealed there are two files for a moment: then this is [`SegmentKind::Sealed`], but for the newest
    /// segment.
    pub kind: SegmentKind,
    /// Its file.
    pub path: PathBuf,
    /// It was found damaged, or cut off, when the log was opened for writing. It is kept as it is.
    pub is_frozen: bool,
}

impl Segment {
    /// A segment whose file is of this kind.
    fn of(folder: &Path, id: SegmentId, kind: SegmentKind) -> Self {
        Self {
            id,
            kind,
            path: folder.join(id.file_name(kind)),
            is_frozen: false,
        }
    }
}

/// The segments of a log in their order, and what a dead writer left.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) segments: Vec<Segment>,
    /// The other files of segments that are there as both.
    pub(super) doubled: Vec<Segment>,
    /// What is kept beside segments.
    kept: Vec<(SegmentId, Part, PathBuf)>,
    pub(super) temporary: Vec<PathBuf>,
    /// How many files there are, whatever they are.
    files: usize,
    /// It has files that no log has, and neither a mark nor a segment.
    is_foreign: bool,
}

impl Listing {
    /// Lists a folder, in which there is a segment of this place in the log or after it. What is missing is looked for again, since a
    /// listing that overlaps with renames and removals may miss a file: of a segment that is sealed meanwhile it may miss both.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a folder of other files; [`Error::Log`] for a segment that is missing, a place that is taken
    /// twice, and first UUIDs that do not ascend.
    pub(super) fn read(disk: &DiskRef, folder: &Path, reached: u64) -> Result<Self> {
        let (mut first, mut whole) = (None, 0);
        let (mut wrong, mut alike) = (String::new(), 0);
        for _ in 0..MOST_LISTINGS {
            let listing = Self::once(disk, folder)?;
            if let Err(error) = listing.check(folder, reached) {
                let found = error.to_string();
                alike = if found == wrong { alike + 1 } else { 0 };
                wrong = found;
                if alike == LISTINGS {
                    return Err(error);
                }
                continue;
            }
            // That the first segment is missing shows in nothing else than another listing.
            whole += 1;
            let is_first = first == Some(listing.first());
            if listing.files <= LISTED_AT_ONCE || is_first || whole == LISTINGS {
                return Ok(listing);
            }
            first = Some(listing.first());
        }
        let last = Self::once(disk, folder)?;
        last.check(folder, reached)?;
        Ok(last)
    }

    /// The same, where segments that are missing are passed over.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a folder of other files; [`Error::Log`] for segments of several logs.
    pub(super) fn read_past_gaps(disk: &DiskRef, folder: &Path, reached: u64) -> Result<Self> {
        match Self::read(disk, folder, reached) {
            Err(error @ Error::Log { .. }) => {
                let listing = Self::once(disk, folder)?;
                let ascends = |pair: &[Segment]| {
                    let [before, after] = pair else { return true };
                    let (before, after) = (before.id, after.id);
                    before.sequence < after.sequence && before.first < after.first
                };
                match listing.segments.windows(2).all(ascends) {
                    true => Ok(listing),
                    false => Err(error),
                }
            }
            read => read,
        }
    }

    fn once(disk: &DiskRef, folder: &Path) -> Result<Self> {
        let paths = disk.list(folder);
        let paths = paths.map_err(|error| Error::io(Some(folder), "cannot list", error))?;
        let mut listing = Self {
            files: paths.len(),
            ..Self::default()
        };
        let names = || paths.iter().filter_map(|path| path.file_name()?.to_str());
        // A volume of its own has lost+found.
        let is_other = |name: &str| !name.starts_with(['_', '.']) && name != "lost+found";
        listing.is_foreign = names().any(is_other) && !names().any(is_log_name);
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            match SegmentId::parse_part(name) {
                Some((id, Part::File(kind))) => {
                    listing.segments.push(Segment::of(folder, id, kind));
                }
                Some((id, part)) => listing.kept.push((id, part, path)),
                None if SegmentId::is_temporary(name) => listing.temporary.push(path),
                None => {}
            }
        }
        let frozen = listing.having(Part::Frozen);
        // Of the two files of one segment the sealed one comes first. Of the newest and of a frozen one it is the active file: a
        // sealed one beside it may not have all of it.
        let newest = listing.segments.iter().map(|segment| segment.id).max();
        let order = |segment: &Segment| {
            let (id, is_sealed) = (segment.id, segment.kind == SegmentKind::Sealed);
            let is_active = newest == Some(id) || frozen.contains(&id);
            (id, is_sealed == is_active)
        };
        listing.segments.sort_by_key(order);
        for mut segment in std::mem::take(&mut listing.segments) {
            segment.is_frozen = frozen.contains(&segment.id);
            match listing.segments.last() {
                Some(last) if last.id == segment.id => listing.doubled.push(segment),
                _ => listing.segments.push(segment),
            }
        }
        Ok(listing)
    }

    /// The segments that have such a file beside them.
    fn having(&self, part: Part) -> HashSet<SegmentId> {
        let kept = self.kept.iter().filter(|(_, own, _)| *own == part);
        kept.map(|(id, ..)| *id).collect()
    }

    /// The segments that have two files.
    fn twice(&self) -> HashSet<SegmentId> {
        self.doubled.iter().map(|segment| segment.id).collect()
    }

    fn first(&self) -> Option<SegmentId> {
        self.segments.first().map(|first| first.id)
    }

    fn check(&self, folder: &Path, reached: u64) -> Result<()> {
        if self.is_foreign {
            return Err(Error::Format {
                path: Some(folder.to_path_buf()),
                next: Some("name the folder of a log, or an empty one to begin a log in"),
                message: "expected a log, found a folder without segments and with other files"
                    .to_owned(),
            });
        }
        let wrong = |fault, message| Err(Error::log(folder, fault, message));
        for pair in self.segments.windows(2) {
            let [before, after] = pair else { continue };
            let (before, after) = (before.id, after.id);
            if before.sequence == after.sequence {
                let message = format!(
                    "expected one segment {}, found two: {before} and {after}",
                    before.sequence
                );
                return wrong(LogFault::DoubledSegment, message);
            }
            if before.sequence + 1 != after.sequence {
                let message = format!(
                    "expected segment {} after {before}, found {after}: a segment is missing",
                    before.sequence + 1
                );
                return wrong(LogFault::MissingSegment, message);
            }
            if before.first >= after.first {
                let message = format!(
                    "expected a first UUID greater than that of {before}, found {after}: these are segments of different logs"
                );
                return wrong(LogFault::ForeignSegment, message);
            }
        }
        self.check_reaches(folder, reached)
    }

    /// Refuses a log whose newest segments are gone: the synced mark is in the segment of this place in the log.
    ///
    /// # Errors
    /// [`Error::Log`].
    pub(super) fn check_reaches(&self, folder: &Path, sequence: u64) -> Result<()> {
        let newest = match self.newest() {
            Some(newest) => newest.id.sequence,
            None => 0,
        };
        if newest >= sequence {
            return Ok(());
        }
        let message = format!(
            "expected the segments up to {sequence}, as the synced mark says, found those up to {newest}: the newest segments are missing"
        );
        Err(Error::log(folder, LogFault::MissingSegment, message))
    }

    /// Segments without a parity sidecar, in their order. That it is not sealed, or not yet, is not known of those that have two files.
    pub(super) fn unprotected(&self) -> Vec<SegmentId> {
        let twice = self.twice();
        let protected = self.having(Part::Sidecar(SegmentKind::Sealed));
        let may_be_sealed =
            |segment: &&Segment| segment.kind == SegmentKind::Sealed || twice.contains(&segment.id);
        let bare = self.segments.iter().filter(|segment| !segment.is_frozen);
        let bare = bare.filter(may_be_sealed).map(|segment| segment.id);
        bare.filter(|id| !protected.contains(id)).collect()
    }

    /// Removes what is beside the files of segments that were removed, and beside active files that were sealed: sidecars, where they end, and
    /// what repairs kept. Those of segments that are missing stay: these may be restored. An error here is ignored: names are never
    /// used again.
    pub(super) fn forget_beside(&self, disk: &DiskRef) {
        let Some(oldest) = self.segments.first() else {
            return;
        };
        let twice = self.twice();
        let sealed = self.segments.iter();
        let sealed = sealed.filter(|segment| segment.kind == SegmentKind::Sealed);
        let sealed: HashSet<_> = sealed.map(|segment| segment.id).collect();
        for (id, part, path) in &self.kept {
            let is_sealed = sealed.contains(id) && !twice.contains(id);
            let is_past = id.sequence < oldest.id.sequence;
            let is_over = match part {
                Part::End | Part::Sidecar(SegmentKind::Active) => is_sealed || is_past,
                Part::Sidecar(SegmentKind::Sealed) => is_past,
                Part::Damaged(SegmentKind::Active) => is_sealed,
                // What recovery kept stays, and damaged files that repairs kept: a segment may have been moved away, and may come back, from
                // a damaged file too. Retention knows what it removes.
                _ => false,
            };
            if is_over {
                let _ = disk.unlink(path);
            }
        }
    }

    /// What is kept beside the files of a segment.
    pub(super) fn kept_of(&self, id: SegmentId) -> impl Iterator<Item = &Path> {
        let kept = self.kept.iter().filter(move |(known, ..)| *known == id);
        kept.map(|(_, _, path)| &**path)
    }

    /// The last segment, to which records may be appended.
    pub(super) fn newest(&self) -> Option<&Segment> {
        self.segments.last()
    }
}

/// Whether any of these segments has a sound first record under this key, which therefore is the log's.
pub(super) fn is_key_of(folder: &LogFolder, segments: &[Segment]) -> bool {
    segments.iter().any(|segment| {
        let file = FileSource::open_on(&folder.disk, &segment.path);
        let first = file.and_then(|file| sound_first(&folder.options(), segment.kind, &file));
        matches!(first, Ok(Some(_)))
    })
}

/// Refuses a sound segment under the name of another: its records would come twice, and those of the other not at all. What is
/// wrong with a damaged one is left to those who read it.
///
/// # Errors
/// [`Error::Log`].
pub(super) fn check_identity(
    options: &Options,
    (id, kind): (SegmentId, SegmentKind),
    (path, file): (&Path, &FileSource),
) -> Result<()> {
    let mut first = [0; UUID_BYTES];
    let read = file.read_exact_at(0, &mut first);
    if read.is_err() || first == id.first.into_bytes() {
        return Ok(());
    }
    match sound_first(options, kind, file) {
        Ok(Some(found)) if found != id.first => Err(Error::log(
            path,
            LogFault::OtherSegment,
            format!(
                "expected the segment whose first record is {}, as its name says, found a sound one whose first record is {found}: it is another segment",
                id.first
            ),
        )),
        _ => Ok(()),
    }
}

/// The UUID of the first record, if that is sound under one of the keys.
fn sound_first(own: &Options, kind: SegmentKind, file: &FileSource) -> Result<Option<Uuid>> {
    let options = Options::default()
        .on_disk(own.on())
        .keys(own.keys.clone())
        .format(kind.format())
        .values(false);
    let mut walk = format::open(Arc::new(file.again()?), &options, Start::Beginning)?;
    while walk.step()? == Step::More {
        let rows = walk.rows();
        if !rows.is_empty() {
            return Ok(match rows.field(0, 0) {
                Value::Uuid(uuid) => Some(Uuid::from_bytes(uuid)),
                _ => None,
            });
        }
    }
    Ok(None)
}

/// Opens the file of a segment, of the kind that was listed or of the other by now, and returns which. What the disk cannot read of it is
/// damage to who reads past damage, and to all of a frozen one. Else reading it is an error of the disk.
///
/// # Errors
/// [`Error::SegmentGone`] if it was removed; [`Error::Log`] for another segment under its name; [`Error::Io`].
pub(super) fn open_file(
    folder: &Path,
    options: &Options,
    (id, listed): (SegmentId, SegmentKind),
) -> Result<(FileSource, SegmentKind)> {
    let disk = options.on();
    let is_frozen = || disk.is_taken(&folder.join(id.frozen_name()));
    let mut missing = None;
    for kind in [listed, SegmentKind::Sealed, SegmentKind::Active] {
        let path = folder.join(id.file_name(kind));
        match FileSource::open_on(disk, &path) {
            Ok(source) => {
                let is_around = !options.strict || kind == SegmentKind::Active && is_frozen();
                let source = match is_around {
                    true => source.around_unreadable(),
                    false => source,
                };
                check_identity(options, (id, kind), (&path, &source))?;
                return Ok((source, kind));
            }
            Err(error) if error.is_not_found() => missing = Some(path),
            Err(error) => return Err(error),
        }
    }
    let first = Listing::read(disk, folder, 0)?;
    let first = first.segments.first().map(|first| first.id.sequence);
    if first.is_some_and(|first| first > id.sequence) {
        return Err(Error::SegmentGone {
            path: folder.to_path_buf(),
            sequence: id.sequence,
        });
    }
    Err(Error::io(
        missing.as_deref(),
        "cannot open a segment of the log",
        ErrorKind::NotFound.into(),
    ))
}

/// The path of a log's folder wherever the process works later.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn absolute(folder: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(folder);
    path.map_err(|error| Error::io(Some(folder), "cannot find", error))
}

/// Whether a file of this name belongs to a segment of a log, whether or not that is still there: its parity sidecar, and what a repair or
/// a recovery of its file put aside.
#[must_use]
pub fn is_beside_segment(name: &str) -> bool {
    let quarantined = name
        .strip_suffix(".manifest.jsonl")
        .into_iter()
        .chain([name]);
    let mut files = quarantined
        .filter_map(|name| name.strip_suffix(".quarantine"))
        .map(|name| match name.rsplit_once('.') {
            Some((file, offset)) if is_quarantine_offset(offset) => file,
            _ => name,
        });
    let part = SegmentId::parse_part(name).map(|(_, part)| part);
    matches!(part, Some(Part::Sidecar(_) | Part::Damaged(_)))
        || files.any(|file| SegmentId::parse(file).is_some())
}

/// Whether a file of this name makes its folder that of a log: it is a synced mark, or a segment.
#[must_use]
pub fn is_log_name(name: &str) -> bool {
    name == MARK || SegmentId::parse(name).is_some()
}
