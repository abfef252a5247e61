//! What proves bytes that are read by a sidecar that is damaged itself.

use std::sync::Arc;

use crate::parity::{extended, one_group, protected, verified};
use seglake::parity::{self, Outcome, ProtectedSource, SidecarKind};
use seglake::source::{BytesSource, Source as _};
use seglake::{Options, verbs};

/// The bytes of a frame's head, and of an entry of its tables.
const HEAD: usize = 56;
const ENTRY: usize = 8;

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| at.to_le_bytes()[0] | 1).collect()
}

/// Reads a file by a sidecar, twice.
fn read(file: &[u8], sidecar: &[u8]) -> Vec<u8> {
    let file = Arc::new(BytesSource::new(file.to_vec()));
    let sidecar = Arc::new(BytesSource::new(sidecar.to_vec()));
    let source = ProtectedSource::open(file, sidecar).unwrap();
    let mut bytes = vec![0; usize::try_from(source.len()).unwrap()];
    for _ in 0..2 {
        source.read_exact_at(0, &mut bytes).unwrap();
    }
    bytes
}

/// A sidecar that was cut off while it was extended: the new frame of the last band has some of its entries, or none, and the one before
/// proves the other blocks.
#[test]
fn blocks_without_an_entry_are_read_if_an_older_frame_proves_them() {
    let file = some_bytes(250);
    let first = protected(&file, 200, one_group());
    let whole = extended(&file, 250, &first).unwrap();
    for len in first.len()..=whole.len() {
        assert!(read(&file, &whole[..len]) == file, "{len}");
    }
}

/// Parity proves a block of which both entries are damaged.
#[test]
fn a_block_whose_entries_are_damaged_is_read() {
    let file = some_bytes(250);
    let mut sidecar = protected(&file, 250, one_group());
    let second = sidecar.len() - HEAD - 6 * ENTRY;
    let entry = HEAD + ENTRY;
    for at in [entry, second + entry] {
        sidecar[at] ^= 1;
    }
    assert!(read(&file, &sidecar) == file);
    let report = verified(&file, &sidecar, parity::Options::default());
    assert_eq!(report.outcome, Outcome::Repaired);
    let mut damaged = file.clone();
    damaged[10] ^= 1;
    assert!(read(&damaged, &sidecar) == file);
}

/// The entries of a block and all parity are damaged. The frame before proves the block.
#[test]
fn a_block_that_an_older_frame_proves_is_read() {
    let file = some_bytes(250);
    let first = protected(&file, 200, one_group());
    let mut sidecar = extended(&file, 250, &first).unwrap();
    let second = sidecar.len() - HEAD - 6 * ENTRY;
    for front in [first.len(), second] {
        sidecar[front + HEAD + ENTRY] ^= 1;
    }
    let parity = first.len() + HEAD + 6 * ENTRY;
    sidecar[parity..second]
        .iter_mut()
        .for_each(|byte| *byte ^= 1);
    assert!(read(&file, &sidecar) == file);
}

/// All blocks of the file are proven, so its band is not judged. Its frame is.
#[test]
fn damage_of_a_sidecar_is_reported_of_a_sound_file() {
    let file = some_bytes(1000);
    let sound = protected(&file, 1000, one_group());
    let mut repaired = 0;
    for at in (0..sound.len()).step_by(5) {
        let mut sidecar = sound.clone();
        sidecar[at] ^= 1;
        let expected = verified(&file, &sidecar, parity::Options::default());
        let source = Arc::new(BytesSource::new(file.clone()));
        let sidecar = Arc::new(BytesSource::new(sidecar));
        let report = verbs::verify_parity(source, sidecar, &Options::default(), |_| Ok(()));
        let report = report.unwrap().report;
        assert_eq!(format!("{report:?}"), format!("{expected:?}"), "{at}");
        let is_repaired = |kind| kind == SidecarKind::Repaired;
        repaired += usize::from(report.sidecar.iter().any(|span| is_repaired(span.kind)));
    }
    assert!(repaired > 100, "{repaired}");
}
