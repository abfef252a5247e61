//! What a look-up does not find is proven not to be there, or said not to be.

use std::fs;
use std::sync::Arc;

use crate::common::{Windowed, source};
use crate::fault_samples::{folder, id, sample};
use seglake::format::{Checked, FORMATS, Format, Options, RecordId, Start, Unproven, lookup, open};
use seglake::source::Source;

const RECORDS: u64 = 12;

fn file(format: &'static Format) -> Vec<u8> {
    let folder = folder();
    let path = folder.path().join("log").with_extension(format.extension);
    sample(&path, format, RECORDS);
    fs::read(path).unwrap()
}

fn lenient(format: &'static Format) -> Options {
    Options::default().format(format).strict(false)
}

/// Which of these are found, and whether the misses are unproven.
fn look_up(
    source: Arc<dyn Source>,
    options: &Options,
    ids: &[RecordId],
) -> (Vec<bool>, Option<Unproven>) {
    let hits = lookup(source, options).unwrap().get(ids).unwrap();
    let found = hits.places.iter().map(Option::is_some).collect();
    (found, hits.unproven)
}

#[test]
fn misses_in_sound_files_are_proven_where_checksums_prove_them() {
    for &format in FORMATS {
        let (bytes, options) = (file(format), lenient(format));
        let ids =
            |numbers: &[u64]| -> Vec<_> { numbers.iter().map(|own| id(format, *own)).collect() };
        let walk = open(source(&bytes), &options, Start::Beginning).unwrap();
        let is_proven = walk.checked() == Checked::Checksum;
        for source in [source(&bytes), Arc::new(Windowed(bytes.clone()))] {
            let all = look_up(source.clone(), &options, &ids(&[3, 0, 11]));
            assert_eq!(all, (vec![true; 3], None), "{format:?}");
            for missing in [RECORDS, RECORDS + 100] {
                let (found, unproven) = look_up(source.clone(), &options, &ids(&[3, missing]));
                assert_eq!(found, [true, false], "{format:?}");
                let expected = (!is_proven).then_some(Unproven::Unchecked);
                assert_eq!(unproven, expected, "{format:?}");
            }
        }
    }
}

/// Whatever bit is flipped, a record that it hides is not said to be proven absent.
#[test]
fn misses_after_damage_are_unproven() {
    for &format in FORMATS {
        let (bytes, options) = (file(format), lenient(format));
        let ids: Vec<_> = (0..RECORDS).map(|own| id(format, own)).collect();
        let mut hidden = 0;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            for source in [source(&damaged), Arc::new(Windowed(damaged.clone()))] {
                let (found, unproven) = look_up(source.clone(), &options, &ids);
                let misses = found.iter().filter(|found| !**found).count();
                assert!(
                    misses == 0 || unproven.is_some(),
                    "{format:?}, byte {at}: {misses}"
                );
                hidden += misses;
                for (id, found) in ids.iter().zip(found) {
                    let alone = look_up(source.clone(), &options, std::slice::from_ref(id));
                    assert_eq!(alone.0, [found], "{format:?}, byte {at}, {id:?}");
                    assert!(found || alone.1.is_some(), "{format:?}, byte {at}, {id:?}");
                }
            }
        }
        assert!(hidden > 100, "{format:?}");
    }
}
