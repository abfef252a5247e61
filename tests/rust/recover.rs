//! Recovering: every golden vector and random damage of every format, and undoing it.

use crate::recovery;
use std::fs;

use crate::recovery::{Bench, Case, cases, listed, samples};
use proptest::prelude::*;
use seglake::ledger::Kind;
use seglake::verbs::{RecoverOptions, Recovered};

/// Recovers a file in every way, and compares the result with what reading the file gives.
fn check(case: &Case) -> Result<Option<Recovered>, TestCaseError> {
    let bench = Bench::new(case);
    let before = bench.read(&case.bytes);
    let mut recovery = RecoverOptions::default();
    let mut outcome = bench.recover("new", &recovery);
    if outcome.is_err() && case.is_oplog() {
        recovery.renumber = true;
        outcome = bench.recover("new", &recovery);
    }
    if let Err(error) = &outcome
        && error.to_string().contains("no record in it was verified")
    {
        prop_assert_eq!(before.records.len(), 0, "{}", case.name);
        recovery.force = true;
        outcome = bench.recover("new", &recovery);
    }
    let recovered = match outcome {
        Ok(recovered) => recovered,
        Err(error) => {
            // Of the rest only renumbering can be refused, and nothing is written then.
            prop_assert!(
                error.to_string().contains("renumbered"),
                "{}: {error}",
                case.name
            );
            prop_assert_eq!(bench.files(), vec!["old"]);
            return Ok(None);
        }
    };
    let new = fs::read(bench.path("new")).unwrap();
    let after = bench.read(&new);
    let damaged: Vec<_> = after
        .ledger
        .iter()
        .filter(|span| span.is_damage())
        .collect();
    prop_assert!(
        damaged.iter().all(|span| span.kind == Kind::Record),
        "{}: {damaged:?}",
        case.name
    );
    let is_renumbered = recovery.renumber;
    prop_assert_eq!(
        listed(&before.records, is_renumbered),
        listed(&after.records, is_renumbered),
        "{}",
        case.name
    );
    prop_assert_eq!(&before.checked, &after.checked, "{}", case.name);
    prop_assert_eq!(
        recovered.source.summary.records,
        before.records.len() as u64
    );
    prop_assert_eq!(
        recovered.carried + recovered.quarantined,
        case.bytes.len() as u64
    );
    let is_sound = before.ledger.iter().all(|span| !span.is_damage());
    prop_assert_eq!(recovered.is_lossy(), !is_sound);
    if is_sound {
        prop_assert_eq!(
            &new,
            &case.bytes,
            "{}: a sound file is copied as it is",
            case.name
        );
    }
    if new == case.bytes {
        prop_assert_eq!(&recovered.quarantine, &None);
        prop_assert_eq!(bench.files(), vec!["new", "old"]);
    } else {
        let quarantine = fs::read(bench.path("new.quarantine")).unwrap();
        prop_assert_eq!(quarantine.len() as u64, recovered.quarantined);
        prop_assert_eq!(
            bench.files(),
            vec![
                "new",
                "new.quarantine",
                "new.quarantine.manifest.jsonl",
                "old"
            ]
        );
        prop_assert_eq!(
            bench.undo("new", "undone").unwrap(),
            case.bytes.len() as u64
        );
        prop_assert!(
            fs::read(bench.path("undone")).unwrap() == case.bytes,
            "{}",
            case.name
        );
    }
    // Recovering twice gives the same, and recovering the result changes nothing.
    bench.recover("again", &recovery).unwrap();
    prop_assert!(
        fs::read(bench.path("again")).unwrap() == new,
        "{}",
        case.name
    );
    let second = Case {
        name: case.name.clone(),
        bytes: new.clone(),
        options: case.options.clone(),
    };
    let bench = Bench::new(&second);
    let once_more = bench.recover("new", &RecoverOptions::default()).unwrap();
    prop_assert_eq!(once_more.quarantined, 0);
    prop_assert!(fs::read(bench.path("new")).unwrap() == new, "{}", case.name);
    Ok(Some(recovered))
}

#[test]
fn every_golden_vector_is_recovered() {
    let (mut damaged, mut refused) = (0, 0);
    for case in cases() {
        match check(&case).unwrap() {
            Some(recovered) if recovered.is_lossy() => damaged += 1,
            Some(_) => {}
            None => refused += 1,
        }
    }
    assert!(damaged >= 150, "{damaged} damaged files were recovered");
    assert!(refused <= 5, "{refused} oplogs could not be renumbered");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_damaged_is_recovered_and_can_be_put_back(
        sample in 0..samples().len(),
        damage in proptest::collection::vec(recovery::damage(), 1..4),
    ) {
        let mut case = samples()[sample].clone();
        for one in &damage {
            one.apply(&mut case.bytes);
        }
        check(&case)?;
    }
}
