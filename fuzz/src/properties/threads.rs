//! Several threads give the result of one thread: the same report, and batches with the same records, damage and
//! errors.

use seglake::Error;
use seglake::format::{Format, Options};
use seglake::verbs::{verify, verify_in_parts};

use super::alike::told;
use super::scan::{End, whole, windowed};
use super::{Draw, readings};

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for options in readings(format) {
        let source = match draw.below(2) {
            0 => whole(bytes),
            _ => windowed(bytes),
        };
        let options = options.window_bytes(*draw.of_these(&[20, 64, 1 << 20]));
        let one = report(verify(source.clone(), &options, |_| Ok(())));
        for threads in [2, 3] {
            let part_bytes = *draw.of_these(&[1, 50, 300]);
            let many = verify_in_parts(source.clone(), &options, threads, part_bytes, |_| Ok(()));
            assert_eq!(
                report(many),
                one,
                "{threads} threads, parts of {part_bytes} bytes"
            );
        }
        batches(&source, &options, &mut draw);
    }
}

fn report(result: Result<seglake::verbs::Report, Error>) -> Result<String, End> {
    result.map(|report| told(&report)).map_err(End::of)
}

fn batches(
    source: &std::sync::Arc<dyn seglake::source::Source>,
    options: &Options,
    draw: &mut Draw,
) {
    use super::columns::{Chosen, Read};
    use seglake::columns::Batches;

    let chosen = Chosen::new(options, draw);
    for strict in [false, true] {
        let options = options.clone().strict(strict);
        let selection = chosen.selection(&options);
        let read = |threads| {
            let (source, selection) = (source.clone(), selection.clone());
            Batches::threaded(source, &options, selection, chosen.limits, threads).unwrap()
        };
        let one = Read::of(read(1), &selection, &chosen).unwrap();
        for threads in [2, 3] {
            match Read::of(read(threads), &selection, &chosen) {
                Ok(many) => many.assert_is(&one),
                Err(why) => {
                    assert!(why.contains("cannot be read by itself"), "{why}");
                    assert!(one.is_damaged(), "a sound file that is refused in parts");
                }
            }
        }
        // The reader stops here.
        let _ = read(2).next_batch();
    }
}
