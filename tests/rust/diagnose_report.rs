//! What a reason reports: the records around, and what proposals repair. Also what is never reported, and how much
//! it may cost.

use std::sync::Arc;

use crate::common::chunked::noise;
use crate::common::counting::Counting;
use crate::common::{source, uuid};
use crate::diagnoses::{
    active, assert_reason, checksummed, chunked, positions, repairs, sealed, shown, tenant,
};
use proptest::prelude::*;
use seglake::format::RecordId;
use seglake::source::Source;
use seglake::verbs::{Certainty, DiagnoseOptions, Diagnosis, Reason, diagnose, verify};

#[test]
fn formats_without_checksums_are_never_guessed_at() {
    for sound in [sealed(6, 40, false), tenant(1, 6, 40)] {
        let mut explained = 0;
        for at in 0..sound.bytes.len() {
            let bytes = sound.damaged(|bytes| bytes[at] ^= 0x10);
            let (_, found) = sound.explained(&bytes);
            assert!(repairs(&found).is_empty(), "{}", shown(&found));
            let proven = |own: &Diagnosis| own.certainty == Some(Certainty::Proven);
            assert!(!found.iter().any(proven), "{}", shown(&found));
            explained += found.len();
        }
        assert!(explained > 100, "{}: {explained}", sound.format.name);
    }
}

#[test]
fn the_records_around() {
    let sound = active(10, 100, 0);
    let at = positions(&sound);
    let bytes = sound.damaged(|bytes| bytes[at[4] + 60] ^= 1);
    let found = assert_reason(&sound, &bytes, Reason::FlippedBit);
    let (before, after) = (
        found[0].before.as_ref().unwrap(),
        found[0].after.as_ref().unwrap(),
    );
    assert_eq!(
        (before.position, &before.id),
        (at[3] as u64, &Some(RecordId::from(uuid(1003))))
    );
    assert_eq!(
        (after.position, &after.id),
        (at[5] as u64, &Some(RecordId::from(uuid(1005))))
    );
    assert!(before.timestamp <= after.timestamp && before.timestamp.is_some());
    for (sound, before, after) in [
        (
            tenant(2, 9, 100),
            RecordId::new([1.into(), "tenant-0003".into(), 0.into()]),
            RecordId::new([1.into(), "tenant-0005".into(), 0.into()]),
        ),
        (chunked(9, 100), RecordId::from(7), RecordId::from(10)),
        (
            sealed(9, 100, true),
            RecordId::from(uuid(1003)),
            RecordId::from(uuid(1005)),
        ),
    ] {
        let at = positions(&sound)[4] + 50;
        let bytes = sound.damaged(|bytes| bytes[at] ^= 1);
        let found = assert_reason(&sound, &bytes, Reason::FlippedBit);
        assert_eq!(found[0].before.as_ref().unwrap().id, Some(before));
        assert_eq!(found[0].after.as_ref().unwrap().id, Some(after));
    }
}

#[test]
fn the_work_is_bounded() {
    // Damage everywhere: every other record, and one range that is giant.
    let mut sound = active(4000, 100, 0);
    let step = sound.bytes.len() / 4000;
    for record in (0..2000).step_by(2) {
        sound.bytes[record * step + 50..][..9].fill(0x5a);
    }
    sound.bytes[3000 * step..].copy_from_slice(&noise(5, 1000 * step));
    let len = sound.bytes.len() as u64;
    let counting = Counting::new(sound.bytes.clone());
    let file: Arc<dyn Source> = counting.clone();
    let options = sound.options();
    let report = verify(file.clone(), &options, |_| Ok(())).unwrap();
    assert!(report.summary.damage.len() > 1000);
    for ranges in [0, 1, 10] {
        counting.take();
        let how = DiagnoseOptions::default().ranges(ranges);
        let found = diagnose(&file, &options, &report, &how, |_| Ok(())).unwrap();
        assert_eq!(found.len(), ranges);
        let read = counting.take().0;
        assert!(
            read <= 2 * len + ranges as u64 * (2 << 20),
            "{ranges} ranges read {read} of {len}"
        );
    }
    let how = DiagnoseOptions::default().work_bytes(0);
    let found = diagnose(&file, &options, &report, &how, |_| Ok(())).unwrap();
    assert_eq!(found.len(), 100);
    assert!(
        found
            .iter()
            .all(|own| own.certainty != Some(Certainty::Proven))
    );
    // A cause that only trials can prove is not proven without a budget for them.
    let sound = active(10, 100, 0);
    let file = source(&sound.damaged(|bytes| bytes[positions(&sound)[4] + 60] ^= 1));
    let report = verify(file.clone(), &options, |_| Ok(())).unwrap();
    for (how, is_proven) in [(DiagnoseOptions::default(), true), (how, false)] {
        let found = diagnose(&file, &options, &report, &how, |_| Ok(())).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].certainty == Some(Certainty::Proven), is_proven);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(16) })]

    #[test]
    fn random_bytes_in_a_message_are_no_reason(seed: u64, skip in 60_usize..700, len in 9_usize..700) {
        for sound in checksummed(8, 1500) {
            let at = positions(&sound)[3] + skip;
            let bytes = sound.damaged(|bytes| bytes[at..at + len].copy_from_slice(&noise(seed, len)));
            let (_, found) = sound.explained(&bytes);
            prop_assert!(!found.is_empty());
            for own in &found {
                prop_assert!(
                    matches!(own.reason, Reason::ChangedBytes | Reason::Unknown | Reason::InterruptedWrite),
                    "{}: {}", sound.format.name, shown(&found)
                );
            }
        }
    }

    #[test]
    fn random_bytes_anywhere_prove_nothing_but_a_flip(seed: u64, share in 0.0..0.8_f64, len in 9_usize..700) {
        for sound in checksummed(8, 1500) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let at = (sound.bytes.len() as f64 * share) as usize;
            let bytes = sound.damaged(|bytes| bytes[at..at + len].copy_from_slice(&noise(seed, len)));
            let (_, found) = sound.explained(&bytes);
            prop_assert!(!found.is_empty());
            for own in &found {
                // Of a header that only their edge reaches, one bit may be all that differs.
                let no_more = own.certainty != Some(Certainty::Proven) || own.reason == Reason::FlippedBit;
                prop_assert!(no_more, "{}: {}", sound.format.name, shown(&found));
            }
        }
    }
}

#[test]
fn what_the_proposals_mend_is_said() {
    let sound = active(8, 60, 0);
    let at = positions(&sound);
    let one = sound.damaged(|bytes| bytes[at[2] + 40] ^= 1);
    let two = sound.damaged(|bytes| {
        bytes[at[2] + 40] ^= 1;
        bytes[at[3] + 40] ^= 1;
    });
    let part = sound.damaged(|bytes| {
        bytes[at[2] + 40] ^= 1;
        bytes[at[3] + 40] ^= 0x55;
    });
    let said = |bytes: &[u8]| sound.explained(bytes).1[0].evidence.clone();
    assert!(said(&one).ends_with("; the whole file is sound then"));
    assert!(said(&two).ends_with("; the whole file is sound with all proposals"));
    assert!(said(&part).ends_with(&format!("; from {} on it stays damaged", at[3])));
}

/// The beginning of the file no longer shows its format.
#[test]
fn a_file_is_read_as_what_the_report_is_of() {
    let sound = active(10, 100, 0);
    let bytes = sound.damaged(|bytes| bytes[..300].fill(0xff));
    let (report, found) = sound.explained(&bytes);
    let options = sound.options().format(None);
    let how = DiagnoseOptions::default();
    let again = diagnose(&source(&bytes), &options, &report, &how, |_| Ok(())).unwrap();
    assert_eq!(shown(&again), shown(&found));
}
