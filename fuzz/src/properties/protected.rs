//! Files with parity sidecars, for the properties of those.

use seglake::Error;
use seglake::checksum::{Key, hash};
use seglake::parity::{
    Change, Extended, FileKind, Files, Options, Parameters, Report, Set, extend, protect, repair,
};
use seglake::source::BytesSource;

use super::Draw;

const MAGIC: &[u8] = b"SLKPRTY1";
/// The bytes of a head before its checksum, and with it.
const HASHED_BYTES: usize = 48;
const HEAD_BYTES: usize = 56;

/// A file and its sidecar.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) file: Vec<u8>,
    pub(super) sidecar: Vec<u8>,
}

impl Pair {
    /// A file of these bytes, protected in one step or in several.
    pub(super) fn new(file: &[u8], draw: &mut Draw) -> Self {
        let number = |draw: &mut Draw, most| u8::try_from(1 + draw.below(most)).unwrap();
        let block = *draw.of_these(&[64, 128, 4096]);
        let parameters = Parameters::new(
            block,
            number(draw, 6),
            number(draw, 3),
            u16::from(number(draw, 4)),
        );
        let set = Set {
            id: draw.any().to_be_bytes(),
            parameters: parameters.unwrap(),
        };
        let mut ends = vec![file.len() as u64];
        while draw.below(3) == 0 && ends.len() < 4 {
            ends.push(draw.below(file.len() + 1) as u64);
        }
        ends.sort_unstable();
        let mut sidecar = Vec::new();
        protect(&BytesSource::new(file), ends[0], set, &mut |bytes| {
            sidecar.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
        let mut pair = Self {
            file: file.to_vec(),
            sidecar,
        };
        for end in &ends[1..] {
            if !pair.sidecar.is_empty() {
                pair.sidecar = pair.extended(*end).unwrap();
            }
        }
        pair
    }

    /// A file, and a sidecar that is whatever follows the first magic of a head in these bytes. Its heads have right checksums, so that
    /// their fields are believed. Without any magic, the sidecar is a sound one.
    pub(super) fn any(bytes: &[u8], draw: &mut Draw) -> Self {
        let Some(at) = bytes.windows(MAGIC.len()).position(|own| own == MAGIC) else {
            return Self::new(bytes, draw);
        };
        let mut sidecar = bytes[at..].to_vec();
        for at in 0..sidecar.len().saturating_sub(HEAD_BYTES - 1) {
            if sidecar[at..].starts_with(MAGIC) {
                let sum = hash(&Key::DEFAULT, &sidecar[at..at + HASHED_BYTES]);
                sidecar[at + HASHED_BYTES..at + HEAD_BYTES].copy_from_slice(&sum.to_be_bytes());
            }
        }
        Self {
            file: bytes[..at].to_vec(),
            sidecar,
        }
    }

    /// Damages both a few times.
    pub(super) fn damage(&mut self, draw: &mut Draw) {
        for _ in 0..draw.below(4) {
            damage(&mut self.file, draw);
        }
        for _ in 0..draw.below(3) {
            damage(&mut self.sidecar, draw);
        }
    }

    /// Both as a repair leaves them.
    pub(super) fn repaired(&self, force: bool) -> (Report, Self) {
        let (mut file, mut sidecar) = (self.file.clone(), Vec::new());
        let sources = (
            BytesSource::new(&self.file[..]),
            BytesSource::new(&self.sidecar[..]),
        );
        let options = Options::default().force(force);
        let report = repair(Files::new(&sources.0, &sources.1), options, &mut |change| {
            // A place far after the end is what a head claims.
            if !matches!(change, Change::File { offset, .. } if offset > 1 << 24) {
                apply(change, &mut file, &self.sidecar, &mut sidecar);
            }
            Ok(())
        })
        .unwrap();
        if report.refused.is_some() {
            assert!(sidecar.is_empty() && file == self.file);
            sidecar.clone_from(&self.sidecar);
        }
        (report, Self { file, sidecar })
    }

    /// The sidecar, extended to cover the first `end` bytes; repaired first if that is due. `None` if it is refused.
    pub(super) fn extended(&self, end: u64) -> Option<Vec<u8>> {
        let mut old = self.sidecar.clone();
        for _ in 0..2 {
            let mut new = Vec::new();
            let sources = (
                BytesSource::new(&self.file[..]),
                BytesSource::new(old.clone()),
            );
            let files = Files::new(&sources.0, &sources.1);
            let extended = extend(files, end, &mut |change| {
                assert!(
                    !matches!(change, Change::File { .. }),
                    "the file was written to"
                );
                apply(change, &mut Vec::new(), &old, &mut new);
                Ok(())
            });
            match extended {
                Ok(Extended::Done) => return Some(new),
                Ok(Extended::NoFrame) | Err(Error::Damage(_)) => {
                    assert!(new.is_empty());
                    return None;
                }
                Err(error) => panic!("{error}"),
                Ok(Extended::RepairFirst) => {
                    let now = Self {
                        file: self.file.clone(),
                        sidecar: old,
                    };
                    old = now.repaired(false).1.sidecar;
                }
            }
        }
        panic!("a sidecar is to be repaired again");
    }

    /// What a report on this pair says is true: `own` is the file as it was protected, and `after` as a repair left it. Bytes from
    /// `end` on are left aside.
    pub(super) fn is_told(&self, report: &Report, own: &[u8], after: &[u8], end: u64) {
        let mut at = 0;
        for span in &report.file {
            assert_eq!(span.start, at, "the ledger has a gap");
            at = span.end;
            let range = span.start..span.end.min(end);
            if !matches!(span.kind, FileKind::Sound | FileKind::Repaired) || range.is_empty() {
                continue;
            }
            let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
            assert!(
                after[range.clone()] == own[range.clone()],
                "wrongly {:?}",
                span.kind
            );
            assert!(
                span.kind != FileKind::Sound || self.file[range.clone()] == own[range],
                "silent"
            );
        }
    }
}

fn damage(bytes: &mut Vec<u8>, draw: &mut Draw) {
    if bytes.is_empty() {
        return;
    }
    let (at, other) = (draw.below(bytes.len()), draw.below(bytes.len()));
    let end = (at + 1 + draw.below(300)).min(bytes.len());
    match draw.below(8) {
        0..3 => bytes[at] ^= 1 << draw.below(8),
        3 => bytes[at..end].fill(0),
        4 => bytes.truncate(at),
        5 => drop(bytes.drain(at..end)),
        6 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(other..other, copy);
        }
        _ => {
            let copy = bytes[at..end].to_vec();
            let there = copy.len().min(bytes.len() - other);
            bytes[other..other + there].copy_from_slice(&copy[..there]);
        }
    }
}

/// Makes a change to a file in memory, or adds it to its new sidecar. `old` is the sidecar as it was.
pub fn apply(change: Change<'_>, file: &mut Vec<u8>, old: &[u8], sidecar: &mut Vec<u8>) {
    let place = |offset: u64| usize::try_from(offset).unwrap();
    match change {
        Change::File { offset, bytes } => {
            let end = place(offset) + bytes.len();
            file.resize(file.len().max(end), 0);
            file[place(offset)..end].copy_from_slice(bytes);
        }
        Change::Kept { start, end } => sidecar.extend_from_slice(&old[place(start)..place(end)]),
        Change::Head(bytes) | Change::New(bytes) => sidecar.extend_from_slice(bytes),
    }
}
