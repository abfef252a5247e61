//! Whatever happens to a file and its sidecar: what is said to be sound or repaired is as it was protected, and a second repair
//! says nothing else.

use seglake::format::Format;
use seglake::parity::Outcome;

use super::Draw;
use super::protected::Pair;

pub(super) fn check(_: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    let sound = Pair::new(bytes, &mut draw);
    assert_eq!(sound.repaired(false).0.outcome, Outcome::Sound);
    let mut damaged = sound.clone();
    damaged.damage(&mut draw);
    let force = draw.below(2) == 0;
    let (report, new) = damaged.repaired(force);
    damaged.is_told(&report, &sound.file, &new.file, u64::MAX);
    let (again, second) = new.repaired(force);
    new.is_told(&again, &sound.file, &second.file, u64::MAX);
    if report.outcome == Outcome::Repaired {
        assert_eq!(again.outcome, Outcome::Sound);
        assert!(second.file == new.file && second.sidecar == new.sidecar);
    }
}
