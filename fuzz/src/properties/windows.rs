//! Windows of any size give the result of one window. So does a walk that resumes from its carry, also if the file has
//! grown in between.

use seglake::format::{Eof, Format, Options, Start, Step, active, open};

use super::scan::{End, Scan, begin, whole, windowed};
use super::{Draw, format_of, readings};

/// Windows of a few bytes, so that records, headers and runs of zeros are cut anywhere.
const WINDOWS: [usize; 10] = [1, 2, 3, 7, 16, 25, 64, 130, 276, 1000];

pub(super) fn check(format: &'static Format, bytes: &[u8]) {
    let mut draw = Draw::of(bytes);
    for options in readings(format) {
        let one = Scan::of(bytes, &options);
        for strict in [false, true] {
            let options = options
                .clone()
                .window_bytes(*draw.of_these(&WINDOWS))
                .strict(strict);
            let expected = if strict {
                Scan::of(bytes, &readings_of(&options).strict(strict))
            } else {
                one.clone()
            };
            let mut scan = Scan::new();
            scan.finish(&mut *begin(windowed(bytes), &options), &options);
            agree(&scan, &expected, &options, "at once");
            if format.is_appended_to() {
                let resumed = resumed(bytes, &options, &mut draw);
                agree(&resumed, &expected, &options, "resumed");
            }
        }
        if format.is_appended_to() {
            grows(bytes, &options, &one, &mut draw);
        }
    }
}

/// The same options, as for one window.
fn readings_of(options: &Options) -> Options {
    let own = readings(format_of(options));
    own.into_iter()
        .find(|own| own.dialect == options.dialect)
        .unwrap()
}

/// In strict mode the window decides how many records come before an error, but not which error.
fn agree(scan: &Scan, expected: &Scan, options: &Options, how: &str) {
    if scan.is_limited() || expected.is_limited() {
        return;
    }
    let how = format!("{how} in windows of {} bytes", options.window_bytes);
    assert_eq!(scan.end, expected.end, "{how}");
    if expected.end == End::Done {
        scan.assert_is(expected, &how);
    }
}

/// Walks in several walks of a few steps, each resuming from the last one.
fn resumed(bytes: &[u8], options: &Options, draw: &mut Draw) -> Scan {
    let mut scan = Scan::new();
    let mut walk = begin(windowed(bytes), options);
    for _ in 0..6 {
        for _ in 0..draw.below(4) {
            match walk.step() {
                Ok(Step::More) => scan.add(&*walk, options),
                Ok(_) => return scan,
                Err(error) => {
                    scan.end = End::of(error);
                    return scan;
                }
            }
        }
        let carry = walk.carry().unwrap();
        walk = match open(windowed(bytes), options, Start::Carry(&carry)) {
            Ok(walk) => walk,
            Err(error) => panic!("cannot go on from {}: {error}", carry.0),
        };
    }
    scan.finish(&mut *walk, options);
    scan
}

/// The file was shorter when it was first read, and is complete now.
fn grows(bytes: &[u8], options: &Options, expected: &Scan, draw: &mut Draw) {
    let early = options.clone().eof(Eof::Growing);
    let mut present = bytes[..draw.below(bytes.len() + 1)].to_vec();
    // A preallocated file. Only if it is sound: otherwise nonzero bytes may have been read as zeros.
    let sound = expected.spans.iter().all(|span| !span.is_damage());
    if *options.format.unwrap() == *active::FORMAT && sound && draw.below(2) == 0 {
        present.resize(bytes.len(), 0);
    }
    let mut scan = Scan::new();
    let mut walk = begin(whole(&present), &early);
    scan.finish(&mut *walk, &early);
    // Damage that a longer file shows to be something else was reported too early; so was a limit, and pending damage
    // that may still grow.
    let told = scan.spans.iter().any(|span| span.is_damage())
        || walk.offset() > scan.spans.last().map_or(0, |span| span.end);
    if scan.end != End::Wait || told || expected.end != End::Done {
        return;
    }
    let carry = walk.carry().unwrap();
    let mut walk = match open(whole(bytes), options, Start::Carry(&carry)) {
        Ok(walk) => walk,
        Err(error) => panic!("cannot go on from {}: {error}", carry.0),
    };
    scan.finish(&mut *walk, options);
    let how = format!("first read when it had {} bytes", present.len());
    scan.assert_is(expected, &how);
}
