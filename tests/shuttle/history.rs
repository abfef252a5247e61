//! What was asked of a log, and what came of it: with the calls of the disk as the time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use seglake::Error;
use uuid::Uuid;

use crate::simulated::{Call, Moment, Simulated};

/// What a writer was told of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is in the log.
    Acknowledged,
    /// It is not in the log.
    Refused,
    /// It may be.
    Unknown,
}

impl Fate {
    /// What an error says of the records that were written together.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Io { .. } | Error::Usage(_) => Self::Refused,
            Error::OutcomeUnknown { .. } => Self::Unknown,
            other => panic!("not an error of writing: {other}"),
        }
    }
}

/// A record that was to be written.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    /// Where a writer was told.
    pub(crate) uuid: Option<Uuid>,
    /// After so many calls of the disk the write began.
    pub(crate) began: usize,
    /// After so many it returned, and with this.
    pub(crate) ended: Option<(usize, Fate)>,
}

impl Entry {
    /// What was known of it after so many calls.
    pub(crate) fn fate(&self, at: usize) -> Option<Fate> {
        let ended = self.ended.filter(|(ended, _)| *ended <= at);
        ended.map(|(_, fate)| fate)
    }
}

#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) entries: Vec<Entry>,
    /// The place of each value among the entries.
    pub(crate) places: HashMap<Vec<u8>, usize>,
    /// Records that a reader saw, and after how many calls.
    pub(crate) seen: Vec<(usize, usize)>,
}

impl History {
    /// Adds a record that a writer is about to write. No two have the same value.
    pub(crate) fn begin(&mut self, value: Vec<u8>, at: usize) -> usize {
        let place = self.entries.len();
        assert_eq!(self.places.insert(value.clone(), place), None);
        self.entries.push(Entry {
            value,
            uuid: None,
            began: at,
            ended: None,
        });
        place
    }

    /// Notes what came of records that were written together.
    pub(crate) fn end(&mut self, places: &[usize], told: &seglake::Result<Vec<Uuid>>, at: usize) {
        // An error names those that are in the log, and after them those that may be. No others are.
        let (written, unknown) = match told {
            Ok(uuids) => (&uuids[..], &[][..]),
            Err(Error::OutcomeUnknown { uuids, written, .. }) => (&written[..], &uuids[..]),
            Err(Error::Partial { written, .. }) => (&written[..], &[][..]),
            Err(error) => {
                assert_eq!(Fate::of(error), Fate::Refused);
                (&[][..], &[][..])
            }
        };
        assert!(written.len() + unknown.len() <= places.len());
        let written = written.iter().map(|own| (Some(*own), Fate::Acknowledged));
        let unknown = unknown.iter().map(|own| (Some(*own), Fate::Unknown));
        let refused = std::iter::repeat((None, Fate::Refused));
        for (place, (uuid, fate)) in places.iter().zip(written.chain(unknown).chain(refused)) {
            let entry = &mut self.entries[*place];
            entry.uuid = uuid;
            entry.ended = Some((at, fate));
        }
    }
}

/// A history that threads share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Simulated,
    history: Arc<Mutex<History>>,
}

impl Shared {
    pub(crate) fn new(disk: &Simulated) -> Self {
        Self {
            disk: disk.clone(),
            history: Arc::default(),
        }
    }

    /// Of a log that has these records.
    pub(crate) fn knowing(disk: &Simulated, before: &[Vec<u8>]) -> Self {
        let own = Self::new(disk);
        for value in before {
            let mut history = own.lock();
            let place = history.begin(value.clone(), 0);
            history.entries[place].ended = Some((0, Fate::Acknowledged));
        }
        own
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }

    /// Writes records together, and notes what comes of it.
    pub(crate) fn write(
        &self,
        values: Vec<Vec<u8>>,
        write: impl FnOnce(&[Vec<u8>]) -> seglake::Result<Vec<Uuid>>,
    ) -> seglake::Result<Vec<Uuid>> {
        let began = self.disk.count();
        let begin = |value: &Vec<u8>| self.lock().begin(value.clone(), began);
        let places: Vec<_> = values.iter().map(begin).collect();
        let told = write(&values);
        self.lock().end(&places, &told, self.disk.count());
        told
    }

    /// Notes that a reader saw a record.
    pub(crate) fn see(&self, value: &[u8]) {
        let mut history = self.lock();
        let place = history.places.get(value).copied();
        let place = place.unwrap_or_else(|| panic!("nobody wrote {}", shown(value)));
        let at = self.disk.count();
        history.seen.push((at, place));
    }

    /// The history, when all threads have ended.
    pub(crate) fn take(&self) -> History {
        std::mem::take(&mut self.lock())
    }
}

/// A value, for messages.
pub(crate) fn shown(value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value);
    text.chars().take(20).collect()
}

/// When the bytes of a record were handed to the disk, and when they were synced: before the calls of these numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    written: usize,
    synced: usize,
}

/// For each record that came into a file, when it did.
pub(crate) fn ways(history: &History, tape: &[Moment]) -> Vec<Option<Way>> {
    let calls: Vec<_> = tape.iter().filter_map(|own| own.call.as_ref()).collect();
    let way = |entry: &Entry| {
        let uuid = entry.uuid?;
        let has = |bytes: &[u8]| bytes.windows(16).any(|own| own == uuid.as_bytes());
        let of_segment =
            |path: &std::path::Path| path.extension().is_some_and(|own| own == "active");
        let is_it = |own: &&crate::simulated::Done| {
            own.call == Call::Write && of_segment(&own.path) && has(&own.bytes)
        };
        let written = calls.iter().position(is_it)?;
        let path = &calls[written].path;
        let syncs = calls[written..].iter();
        let synced = syncs
            .clone()
            .position(|own| own.call == Call::Sync && own.path == *path);
        let synced = synced.map_or(usize::MAX, |own| written + own);
        Some(Way { written, synced })
    };
    history.entries.iter().map(way).collect()
}

/// Groups of records that writers wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    /// So many at a time.
    pub(crate) pending: usize,
    /// One is being synced, and another one is not written yet.
    pub(crate) overlap: bool,
}

/// What is pending before the call of this number.
pub(crate) fn groups(
    history: &History,
    ways: &[Option<Way>],
    tape: &[Moment],
    at: usize,
) -> Groups {
    let Some(call) = &tape[at].call else {
        return Groups {
            pending: 0,
            overlap: false,
        };
    };
    let time = |uuid: &Uuid| u64::from_be_bytes(uuid.as_bytes()[..8].try_into().unwrap());
    let mut groups = Vec::new();
    let (mut is_syncing, mut is_waiting) = (false, false);
    for (entry, way) in history.entries.iter().zip(ways) {
        let (Some(uuid), Some(way)) = (&entry.uuid, way) else {
            continue;
        };
        if entry.fate(at).is_some() || time(uuid) >= call.time {
            continue;
        }
        let is_written = way.written < at;
        is_syncing |= is_written && at <= way.synced;
        is_waiting |= !is_written;
        let group = if is_written { way.written } else { usize::MAX };
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Groups {
        pending: groups.len(),
        overlap: is_syncing && is_waiting,
    }
}
