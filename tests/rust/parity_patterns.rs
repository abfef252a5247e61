//! Many patterns of damage to a file, to its sidecar or to both, each drawn by its number: within what is promised, every file is as it
//! was afterwards; beyond it, nothing is repaired wrongly, nothing is silent, and protecting again launders nothing.
//! `make parity` tries a million of each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, thread};

use seglake::parity::{FileKind, FrameSpan, Options, Outcome, Parameters, Report, Set};

use crate::parity::{extended, protected, repaired, verified};
use crate::parity_damage::{Damage, check};
use crate::simulated::Random;

/// How many patterns are tried, and the number of the first one.
const PATTERNS: &str = "SEGLAKE_PARITY_PATTERNS";
const FIRST: &str = "SEGLAKE_PARITY_FIRST";
/// Bytes of a head, and of an entry of a table.
const HEAD_BYTES: usize = 56;
const ENTRY_BYTES: usize = 8;

fn number(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |own| own.parse().unwrap())
}

/// Calls `work` for each number, in as many threads as there are processors.
fn each_pattern(work: impl Fn(&mut Random) + Sync) {
    let (first, count) = (number(FIRST, 0), number(PATTERNS, 3000));
    let next = AtomicU64::new(first);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let own = next.fetch_add(1, Ordering::Relaxed);
                    if own >= first + count {
                        return;
                    }
                    let told = Told(own);
                    work(&mut Random::new(own));
                    std::mem::forget(told);
                }
            });
        }
    });
}

/// Names the pattern of a test that fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!(
            "the pattern was number {}: repeat it with {FIRST} and {PATTERNS}=1",
            self.0
        );
    }
}

/// A file with a sidecar, which may have been extended.
struct Specimen {
    file: Vec<u8>,
    sidecar: Vec<u8>,
    parity: usize,
    band_bytes: usize,
    is_extended: bool,
    /// Zeros follow the end of a frame that was extended. Where a front of the longer frame is damaged as well, a computed block with such
    /// zeros may be that of the shorter one.
    has_zeros_after_ends: bool,
}

impl Specimen {
    fn draw(random: &mut Random) -> Self {
        let small = |random: &mut Random, end| u8::try_from(1 + random.below(end)).unwrap();
        let data = small(random, 6);
        let parity = small(random, 3);
        let (block, groups) = (64u16 << random.below(2), u16::from(small(random, 4)));
        let parameters = Parameters::new(block, data, parity, groups);
        let set = Set {
            id: random.next().to_be_bytes(),
            parameters: parameters.unwrap(),
        };
        let most = if random.percent(50) { 300 } else { 3000 };
        let len = 1 + random.below(most);
        let kind = random.below(3);
        let file: Vec<u8> = (0..len)
            .map(|at| match kind {
                0 => random.next().to_be_bytes()[0],
                1 => b"the same line again\n"[at % 20],
                // Zeros and a few others.
                _ if random.percent(5) => 1,
                _ => 0,
            })
            .collect();
        let mut ends = vec![file.len() as u64];
        while random.percent(30) && ends.len() < 4 {
            ends.push(1 + random.below(file.len()) as u64);
        }
        ends.sort_unstable();
        let mut sidecar = protected(&file, ends[0], set);
        for end in &ends[1..] {
            sidecar = extended(&file, *end, &sidecar).unwrap();
        }
        let has_zeros_after_ends = ends.iter().any(|end| file.get(size(*end)) == Some(&0));
        Self {
            file,
            sidecar,
            parity: usize::from(parity),
            band_bytes: usize::from(block) * usize::from(data) * usize::from(groups),
            is_extended: ends.len() > 1,
            has_zeros_after_ends,
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

/// Damages a block so that it is another one.
fn strike(random: &mut Random, bytes: &mut [u8], others: &[u8]) {
    let before = bytes.to_vec();
    let place = random.below(bytes.len());
    match random.below(5) {
        0 => bytes[place] ^= 1 << random.below(8),
        1 => bytes.fill(0),
        2 => bytes.fill_with(|| random.next().to_be_bytes()[0]),
        3 => {
            let end = place + 1 + random.below(bytes.len() - place);
            bytes[place..end].fill_with(|| random.next().to_be_bytes()[0]);
        }
        // The bytes of another place: a block that was swapped or written to the wrong one.
        _ => {
            let from = random.below(others.len());
            for (own, other) in bytes.iter_mut().zip(&others[from..]) {
                *own = *other;
            }
        }
    }
    if bytes == before {
        bytes[place] ^= 0x80;
    }
}

/// Strikes at most as many blocks of each group of a frame as it has parity, data and parity blocks together, and one of its fronts.
/// A block at the end of the last band may be missing instead.
fn strike_frame(
    random: &mut Random,
    of: &Specimen,
    frame: &FrameSpan,
    file: &mut Vec<u8>,
    sidecar: &mut [u8],
) {
    let (block, len) = (frame.block_bytes, size(frame.len));
    let band_start = size(frame.band) * of.band_bytes;
    let blocks = len.div_ceil(block);
    let all_parity = of.parity * frame.groups;
    let front = HEAD_BYTES + ENTRY_BYTES * (blocks + all_parity);
    let (start, end) = (size(frame.start), size(frame.end));
    assert_eq!(end - start, 2 * front + all_parity * block);
    let mut left = vec![of.parity; frame.groups];
    let mut is_cutting = band_start + len == file.len() && random.percent(30);
    for index in (0..blocks).rev() {
        let own = &mut left[index % frame.groups];
        let range = index * block..((index + 1) * block).min(len);
        let range = band_start + range.start..band_start + range.end;
        if is_cutting && *own > 0 && random.percent(70) {
            *own -= 1;
            file.truncate(range.start + random.below(range.len()));
            continue;
        }
        is_cutting = false;
        if *own > 0 && range.end <= file.len() && random.percent(40) {
            *own -= 1;
            strike(random, &mut file[range], &of.file);
        }
    }
    // No head is where none was: whoever can write one can forge.
    let (first, last) = (start + front, end - front);
    for index in 0..all_parity {
        let own = &mut left[index % frame.groups];
        if *own > 0 && random.percent(30) {
            *own -= 1;
            let at = first + index * block;
            let others = &of.sidecar[first..last];
            strike(random, &mut sidecar[at..at + block], others);
        }
    }
    if random.percent(30) && !of.has_zeros_after_ends {
        let at = if random.percent(50) { start } else { last };
        strike(
            random,
            &mut sidecar[at..at + front],
            &of.sidecar[first..last],
        );
    }
}

/// The current frames.
fn current(report: &Report) -> Vec<FrameSpan> {
    let mut found: Vec<FrameSpan> = Vec::new();
    for frame in &report.frames {
        match found.iter_mut().find(|own| own.band == frame.band) {
            Some(own) if own.len < frame.len => *own = *frame,
            Some(_) => {}
            None => found.push(*frame),
        }
    }
    found
}

#[test]
fn within_the_guarantee_every_file_is_as_it_was() {
    each_pattern(|random| {
        let of = Specimen::draw(random);
        let sound = verified(&of.file, &of.sidecar, Options::default());
        assert_eq!(sound.outcome, Outcome::Sound);
        let (mut file, mut sidecar) = (of.file.clone(), of.sidecar.clone());
        for frame in current(&sound) {
            if random.percent(70) {
                strike_frame(random, &of, &frame, &mut file, &mut sidecar);
            }
        }
        let options = Options::default().force(true);
        let (report, new, new_sidecar) = repaired(&file, &sidecar, options);
        let is_same = file == of.file && sidecar == of.sidecar;
        let expected = if is_same {
            Outcome::Sound
        } else {
            Outcome::Repaired
        };
        assert_eq!(report.outcome, expected);
        assert!(report.lost.is_empty());
        assert!(new == of.file);
        assert!(of.is_extended || new_sidecar == of.sidecar);
        let after = verified(&new, &new_sidecar, Options::default());
        assert_eq!(after.outcome, Outcome::Sound);
    });
}

#[test]
fn beyond_the_guarantee_nothing_is_wrong_and_nothing_silent() {
    each_pattern(|random| {
        let of = Specimen::draw(random);
        let (mut file, mut sidecar) = (of.file.clone(), of.sidecar.clone());
        let (to_file, to_sidecar) = (random.below(5), random.below(4));
        for _ in 0..to_file {
            damage(random).apply(&mut file);
        }
        for _ in 0..to_sidecar {
            damage(random).apply(&mut sidecar);
        }
        let options = Options::default().force(random.percent(50));
        let (report, new, new_sidecar) = repaired(&file, &sidecar, options);
        check(&report, &file, &of.file, &new).unwrap();
        // Silent is damage of which no range tells. Where frames are gone without a trace, what they covered is never known.
        if report.outcome == Outcome::Sound && !new.starts_with(&of.file) {
            assert!(sidecar.len() < of.sidecar.len(), "silent");
            let known = report
                .file
                .iter()
                .filter(|span| span.kind == FileKind::Sound);
            for span in known {
                let range = size(span.start)..size(span.end);
                assert!(file[range.clone()] == of.file[range]);
            }
        }
        let (again, second, _) = repaired(&new, &new_sidecar, options);
        check(&again, &new, &of.file, &second).unwrap();
        // Protecting again: no byte that was covered, and is damaged, is sound afterwards.
        let before = report.file.last().map_or(0, |span| span.end);
        let known = before.min(of.file.len() as u64);
        if let Some(more) = extended(&file, file.len() as u64, &sidecar) {
            let is_covered = report
                .file
                .iter()
                .filter(|span| span.kind != FileKind::Uncovered);
            let is_covered = is_covered
                .map(|span| span.end)
                .max()
                .unwrap_or(0)
                .min(known);
            let (after, repaired, _) = repaired(&file, &more, Options::default());
            for span in &after.file {
                let end = span.end.min(is_covered);
                if matches!(span.kind, FileKind::Sound | FileKind::Repaired) && span.start < end {
                    let range = size(span.start)..size(end);
                    assert!(repaired[range.clone()] == of.file[range], "laundered");
                }
            }
        }
    });
}

fn damage(random: &mut Random) -> Damage {
    let at = random.below(10_000);
    let some = |random: &mut Random, most| -> Vec<u8> {
        let len = 1 + random.below(most);
        (0..len).map(|_| random.next().to_be_bytes()[0]).collect()
    };
    match random.below(12) {
        0..4 => Damage::Flip(at, random.next().to_be_bytes()[0]),
        4..6 => Damage::Burst(at, some(random, 200)),
        6..8 => Damage::Zeros(at, 1 + random.below(400)),
        8 => Damage::Swap(at, random.below(10_000), 1 + random.below(300)),
        9 => Damage::Cut(at),
        10 => Damage::Delete(at, 1 + random.below(100)),
        _ => Damage::Insert(at, some(random, 200)),
    }
}
