//! Protecting a damaged file again launders nothing: no byte that was covered, and is damaged, is sound or repaired afterwards.

use seglake::format::Format;
use seglake::parity::FileKind;

use super::Draw;
use super::protected::Pair;

pub(super) fn check(_: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    let sound = Pair::new(bytes, &mut draw);
    let mut damaged = sound.clone();
    damaged.damage(&mut draw);
    if damaged.sidecar.is_empty() {
        return; // then a new one is begun
    }
    let (before, _) = damaged.repaired(true);
    // Where the sidecar lost frames without a trace, nothing knows what they covered.
    let covered = before
        .file
        .iter()
        .filter(|span| span.kind != FileKind::Uncovered);
    let covered = covered.map(|span| span.end).max().unwrap_or(0);
    let covered = covered.min(sound.file.len() as u64);
    if let Some(sidecar) = damaged.extended(damaged.file.len() as u64) {
        let after = Pair {
            file: damaged.file,
            sidecar,
        };
        let (report, repaired) = after.repaired(false);
        after.is_told(&report, &sound.file, &repaired.file, covered);
    }
}
