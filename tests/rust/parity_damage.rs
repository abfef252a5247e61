//! Parity sidecars under damage of all kinds: what is promised is repaired, and nothing else is believed.

use proptest::prelude::*;

use seglake::parity::{FileKind, Options, Outcome, Parameters, Report, Set, SidecarKind};

use crate::parity::{extended, of_two_frames, protected, repaired, verified};

/// Small parameters, so that files of a few kilobytes have several bands.
fn parameters() -> impl Strategy<Value = Parameters> {
    (0u32..3, 1u8..6, 1u8..4, 1u16..5).prop_map(|(size, data, parity, groups)| {
        Parameters::new(64 << size, data, parity, groups).unwrap()
    })
}

pub(crate) fn set() -> impl Strategy<Value = Set> {
    (any::<[u8; 8]>(), parameters()).prop_map(|(id, parameters)| Set { id, parameters })
}

pub(crate) fn file() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 1..5000)
}

/// What happens to bytes.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip(usize, u8),
    Burst(usize, Vec<u8>),
    Zeros(usize, usize),
    Swap(usize, usize, usize),
    Cut(usize),
    Delete(usize, usize),
    Insert(usize, Vec<u8>),
}

impl Damage {
    pub(crate) fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        let place = |at: usize| at % len.max(1);
        let end = |at: usize, size: usize| (place(at) + size).min(len);
        match self {
            _ if len == 0 => {}
            Self::Flip(at, bit) => bytes[place(*at)] ^= 1 << (bit % 8),
            Self::Burst(at, with) => {
                for (byte, with) in bytes[place(*at)..].iter_mut().zip(with) {
                    *byte = *with;
                }
            }
            Self::Zeros(at, size) => bytes[place(*at)..end(*at, *size)].fill(0),
            Self::Swap(a, b, size) => {
                let size = (*size).min(len / 2);
                let (a, b) = (place(*a) / 2, len / 2 + place(*b) / 2);
                for at in 0..size {
                    if b + at < len && a + at < b {
                        bytes.swap(a + at, b + at);
                    }
                }
            }
            Self::Cut(at) => bytes.truncate(place(*at)),
            Self::Delete(at, size) => {
                bytes.drain(place(*at)..end(*at, *size));
            }
            Self::Insert(at, new) => {
                bytes.splice(place(*at)..place(*at), new.iter().copied());
            }
        }
    }
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    let at = || any::<usize>();
    let bytes = || proptest::collection::vec(any::<u8>(), 1..200);
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => (at(), bytes()).prop_map(|(at, bytes)| Damage::Burst(at, bytes)),
        2 => (at(), 1usize..400).prop_map(|(at, size)| Damage::Zeros(at, size)),
        1 => (at(), at(), 1usize..300).prop_map(|(a, b, size)| Damage::Swap(a, b, size)),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), 1usize..100).prop_map(|(at, size)| Damage::Delete(at, size)),
        1 => (at(), bytes()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

/// Ledgers cover all bytes, and what they say agrees with the file as it was.
pub(crate) fn check(
    report: &Report,
    damaged: &[u8],
    original: &[u8],
    new: &[u8],
) -> Result<(), TestCaseError> {
    let mut end = 0;
    for span in &report.file {
        prop_assert_eq!(span.start, end);
        prop_assert!(span.end > span.start);
        end = span.end;
        let range = usize::try_from(span.start).unwrap()..usize::try_from(span.end).unwrap();
        match span.kind {
            // Nothing is proven that is not as it was, and nothing else is written.
            FileKind::Sound => {
                prop_assert_eq!(&damaged[range.clone()], &original[range.clone()]);
                prop_assert_eq!(&new[range.clone()], &original[range]);
            }
            FileKind::Repaired => prop_assert_eq!(&new[range.clone()], &original[range]),
            _ => {
                for at in range {
                    // Where the file grew to reach a repaired block, zeros are between.
                    prop_assert_eq!(
                        new.get(at).copied().unwrap_or(0),
                        damaged.get(at).copied().unwrap_or(0)
                    );
                }
            }
        }
    }
    prop_assert!(end >= u64::try_from(damaged.len()).unwrap());
    let lost = report
        .file
        .iter()
        .filter(|span| span.kind == FileKind::Lost);
    let lost: Vec<_> = lost.map(|span| (span.start, span.end)).collect();
    let ranges: Vec<_> = report.lost.iter().map(|own| (own.start, own.end)).collect();
    prop_assert_eq!(lost, ranges);
    for worst in report.lost.iter().filter_map(|own| own.worst) {
        prop_assert!(report.worst.is_some_and(|all| all.damaged >= worst.damaged));
    }
    let mut end = 0;
    for span in &report.sidecar {
        prop_assert_eq!(span.start, end);
        end = span.end;
    }
    Ok(())
}

fn blocks(report: &Report) -> Vec<(u64, u64, u64, usize)> {
    // Where the band begins follows from the frames before it, which are whole.
    let mut start = 0;
    let frames = report.frames.iter();
    frames
        .map(|frame| {
            let own = (
                start,
                frame.len,
                u64::try_from(frame.block_bytes).unwrap(),
                frame.groups,
            );
            start += frame.len;
            own
        })
        .collect()
}

proptest! {
    #[test]
    fn what_is_protected_is_sound(file in file(), set in set()) {
        let end = u64::try_from(file.len()).unwrap();
        let sidecar = protected(&file, end, set);
        let report = verified(&file, &sidecar, Options::default());
        prop_assert_eq!(report.outcome, Outcome::Sound);
        prop_assert_eq!(report.worst, None);
        prop_assert!(report.sidecar.iter().all(|span| span.kind == SidecarKind::Sound));
        let (_, same, sidecar_again) = repaired(&file, &sidecar, Options::default());
        prop_assert_eq!((&same, &sidecar_again), (&file, &sidecar));
        prop_assert_eq!(extended(&file, end, &sidecar), Some(sidecar));
    }

    /// Any m blocks of each group.
    #[test]
    fn as_many_blocks_as_there_are_of_parity(file in file(), set in set(), seed in any::<u64>()) {
        let sidecar = protected(&file, u64::try_from(file.len()).unwrap(), set);
        let sound = verified(&file, &sidecar, Options::default());
        let (mut damaged, mut random) = (file.clone(), seed | 1);
        let mut next = |end: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % end
        };
        for (start, len, block_bytes, groups) in blocks(&sound) {
            let mut budget = vec![set.parameters.parity(); groups];
            for block in 0..len.div_ceil(block_bytes) {
                let group = usize::try_from(block).unwrap() % groups;
                if budget[group] > 0 && next(2) == 0 {
                    budget[group] -= 1;
                    let at = block * block_bytes + next((len - block * block_bytes).min(block_bytes));
                    damaged[usize::try_from(start + at).unwrap()] ^= 1 << next(8);
                }
            }
        }
        let options = Options::default().force(true);
        let (report, new, new_sidecar) = repaired(&damaged, &sidecar, options);
        let expected = if damaged == file { Outcome::Sound } else { Outcome::Repaired };
        prop_assert_eq!(report.outcome, expected);
        prop_assert_eq!(new, file);
        prop_assert_eq!(new_sidecar, sidecar);
    }

    /// The longest run of damage that is promised, and a file that was cut off as much.
    #[test]
    fn the_longest_run_and_cut(file in file(), set in set(), at in any::<u64>()) {
        let sidecar = protected(&file, u64::try_from(file.len()).unwrap(), set);
        let frames = blocks(&verified(&file, &sidecar, Options::default()));
        let (start, len, block_bytes, groups) = frames[usize::try_from(at % frames.len() as u64).unwrap()];
        let most = |block_bytes, groups| {
            (u64::try_from(set.parameters.parity() * groups).unwrap() - 1) * block_bytes + 1
        };
        let run = most(block_bytes, groups).min(len);
        let begin = start + at % (len - run + 1);
        let mut damaged = file.clone();
        for byte in &mut damaged[usize::try_from(begin).unwrap()..usize::try_from(begin + run).unwrap()] {
            *byte ^= 0x5a;
        }
        let options = Options::default().force(true);
        let (report, new, _) = repaired(&damaged, &sidecar, options);
        prop_assert_eq!(report.outcome, Outcome::Repaired);
        prop_assert_eq!(&new, &file);

        let (start, len, block_bytes, groups) = frames[frames.len() - 1];
        damaged.clone_from(&file);
        damaged.truncate(usize::try_from(start + len - most(block_bytes, groups).min(len)).unwrap());
        let (report, new, _) = repaired(&damaged, &sidecar, options);
        prop_assert_eq!(report.outcome, Outcome::Repaired);
        prop_assert_eq!(&new, &file);
    }

    /// Any damage to either: what is said to be sound or repaired is as it was.
    #[test]
    fn nothing_is_forged(
        file in file(),
        set in set(),
        to_file in proptest::collection::vec(damage(), 0..5),
        to_sidecar in proptest::collection::vec(damage(), 0..4),
        ends in proptest::collection::vec(1u64..5000, 0..4),
        force in any::<bool>(),
    ) {
        let len = u64::try_from(file.len()).unwrap();
        let mut ends: Vec<_> = ends.into_iter().map(|end| end.min(len)).collect();
        ends.push(len);
        ends.sort_unstable();
        let mut sidecar = protected(&file, ends[0], set);
        for end in &ends[1..] {
            sidecar = extended(&file, *end, &sidecar).unwrap();
        }
        let whole = sidecar.clone();
        let mut damaged = file.clone();
        to_file.iter().for_each(|damage| damage.apply(&mut damaged));
        to_sidecar.iter().for_each(|damage| damage.apply(&mut sidecar));
        let options = Options::default().force(force);
        let (report, new, new_sidecar) = repaired(&damaged, &sidecar, options);
        prop_assert_eq!(report.outcome, verified(&damaged, &sidecar, options).outcome);
        check(&report, &damaged, &file, &new)?;
        match report.outcome {
            Outcome::Sound => prop_assert!(new == damaged && new_sidecar == sidecar),
            Outcome::Refused => prop_assert!(new == damaged && new_sidecar == sidecar),
            _ => {}
        }
        // A repair leaves nothing to repair. Where something was lost, zeros that the file grew by may be right.
        let (again, second, second_sidecar) = repaired(&new, &new_sidecar, options);
        if report.outcome == Outcome::Repaired {
            prop_assert_eq!(again.outcome, Outcome::Sound);
            prop_assert_eq!((second, second_sidecar), (new, new_sidecar));
        } else {
            check(&again, &new, &file, &second)?;
        }
        // A file of which nothing changed is sound, and its sidecar is as it was or tells less.
        if damaged == file && report.refused.is_none() {
            prop_assert!(report.file.iter().all(|span| span.kind != FileKind::Repaired));
        }
        // Nothing that is damaged is laundered by protecting it.
        if let Some(laundered) = extended(&damaged, u64::try_from(damaged.len()).unwrap(), &sidecar) {
            let report = verified(&damaged, &laundered, Options::default());
            prop_assert_eq!(report.outcome != Outcome::Refused, true);
            if whole == sidecar && damaged.len() == file.len() {
                // Bands before the last one are not encoded anew: their damage is still found.
                let (_, new, _) = repaired(&damaged, &laundered, Options::default());
                check(&report, &damaged, &file, &new)?;
            }
        }
    }

    /// Any bytes as a sidecar, with heads that say anything.
    #[test]
    fn any_bytes_are_judged(
        file in proptest::collection::vec(any::<u8>(), 0..600),
        pieces in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..90)), 0..12),
        numbers in proptest::collection::vec(any::<u64>(), 24),
    ) {
        let mut sidecar = Vec::new();
        for (kind, bytes) in &pieces {
            if *kind < 100 {
                sidecar.extend_from_slice(bytes);
            } else {
                let number = |at: usize| numbers[(usize::from(*kind) + at) % numbers.len()];
                sidecar.extend(head(&number));
            }
        }
        for force in [false, true] {
            let (report, new, new_sidecar) = repaired(&file, &sidecar, Options::default().force(force));
            let end = report.file.last().map_or(0, |span| span.end);
            prop_assert!(end >= u64::try_from(file.len()).unwrap());
            if report.outcome == Outcome::Sound {
                prop_assert_eq!((&new, &new_sidecar), (&file, &sidecar));
            }
        }
        extended(&file, u64::try_from(file.len()).unwrap(), &sidecar);
    }
}

/// A head with a right checksum and any numbers, mostly within their limits.
fn head(number: &dyn Fn(usize) -> u64) -> Vec<u8> {
    let small = |at: usize, end: u64| u16::try_from(number(at) % end).unwrap();
    let mut head = b"SLKPRTY1setsets".to_vec();
    head.push(u8::try_from(small(0, 2)).unwrap());
    head.extend((64u16 << small(1, 7)).to_be_bytes());
    let data = 1 + small(2, 254);
    head.push(u8::try_from(data).unwrap());
    head.push(u8::try_from(1 + small(3, u64::from(256 - data))).unwrap());
    head.extend((1 + small(4, 256)).to_be_bytes());
    head.extend(small(5, 2).to_be_bytes());
    head.extend(((number(6) % 3) << (number(6) % 3 * 20)).to_be_bytes());
    head.extend((1 + number(7) % (1 << (6 + number(8) % 22))).to_be_bytes());
    head.extend((number(9) >> (1 + number(10) % 30)).to_be_bytes());
    let checksum = seglake::checksum::hash(&seglake::checksum::Key::DEFAULT, &head);
    head.extend(checksum.to_be_bytes());
    head
}

/// Sidecars of many heads take time by their bytes alone. A search that began anew for each head would take hours.
#[test]
fn hostile_sidecars_take_linear_time() {
    let numbers = |kind: u64, band: u64| {
        move |at: usize| match at {
            // Blocks of 64 bytes, one of data and 255 of parity in each of 256 groups: claims of megabytes.
            2 => 0,
            3 => 254,
            4 => 255,
            5 => kind,
            6 => band,
            8 => 0,
            9 => u64::MAX,
            10 => 0,
            _ => 0,
        }
    };
    // Second copies whose frames would begin before the file; first ones without a pair; and other sets.
    for kind in 0..2 {
        for foreign in [false, true] {
            let mut sidecar = Vec::new();
            for index in 0..20_000u64 {
                let other = numbers(kind, index % 2);
                let own = |at: usize| {
                    if at == 0 && foreign {
                        index % 2
                    } else {
                        other(at)
                    }
                };
                sidecar.extend(head(&own));
                sidecar.push(1);
            }
            let report = verified(&[1; 1000], &sidecar, Options::default().force(true));
            assert_ne!(report.outcome, Outcome::Sound);
        }
    }
}

/// What was written over a part of another frame of the same band has entries that reach less far than the frame.
/// Zeros after what they cover, which they prove, are not the bytes of the file.
#[test]
fn parts_of_another_frame_of_the_band_let_nothing_be_filled_with_zeros() {
    let (file, sidecar, first) = of_two_frames();
    // Swapped are heads, or the tables and the parity between them, with a damaged head or without.
    let second = first - (56 + 8 * 4);
    let places = [
        0..56,
        second..second + 56,
        56..second,
        40..second,
        56..first,
        56..second + 50,
    ];
    for range in places {
        for head in [None, Some(10), Some(second + 10)] {
            let mut swapped = sidecar.clone();
            let (left, right) = swapped.split_at_mut(first);
            left[range.clone()].swap_with_slice(&mut right[range.clone()]);
            if let Some(own) = head {
                right[own] ^= 1;
            }
            for options in [Options::default(), Options::default().force(true)] {
                for damage in [None, Some(3), Some(80), Some(100)] {
                    let mut damaged = file.clone();
                    if let Some(at) = damage {
                        damaged[at] ^= 2;
                    }
                    let (report, new, _) = repaired(&damaged, &swapped, options);
                    check(&report, &damaged, &file, &new).unwrap();
                    assert!(report.outcome != Outcome::Sound || damaged == file);
                }
            }
        }
    }
}

/// Each lost range has the worst group of its own, and what no frame has blocks of has none.
#[test]
fn lost_ranges_have_the_worst_of_their_groups() {
    let set = Set {
        id: [5; 8],
        parameters: Parameters::new(64, 4, 2, 2).unwrap(),
    };
    let file: Vec<u8> = (0..1500u32).map(|at| at.to_le_bytes()[0] | 1).collect();
    let sidecar = protected(&file, 1500, set);
    let mut damaged = file;
    // In the first band of 512 bytes three blocks of group 1; in the second one three of group 0 and four of group 1.
    for block in [1, 3, 5, 8, 10, 12, 9, 11, 13, 15] {
        damaged[block * 64] ^= 1;
    }
    damaged.truncate(1400);
    let report = verified(&damaged, &sidecar, Options::default());
    let found: Vec<_> = report
        .lost
        .iter()
        .map(|range| {
            let worst = range
                .worst
                .map(|worst| (worst.band, worst.group, worst.damaged, worst.parity));
            (range.start, range.end, worst)
        })
        .collect();
    let (first, second) = (Some((0, 1, 3, 2)), Some((1, 1, 4, 2)));
    assert_eq!(
        found,
        [
            (64, 128, first),
            (192, 256, first),
            (320, 384, first),
            (512, 896, second),
            (960, 1024, second),
        ]
    );
    assert_eq!(
        report.worst.map(|worst| (worst.band, worst.damaged)),
        Some((1, 4))
    );
    // Of a range of one group alone, that one.
    let mut damaged = damaged[..1400].to_vec();
    damaged[9 * 64] ^= 1;
    damaged[11 * 64] ^= 1;
    let report = verified(&damaged, &sidecar, Options::default());
    let range = report.lost.iter().find(|range| range.start == 512).unwrap();
    assert_eq!(range.end, 576);
    assert_eq!(
        range.worst.map(|worst| (worst.group, worst.damaged)),
        Some((0, 3))
    );
    // What a frame that is gone covered: here the last one, whose C the others do not have.
    let report = verified(&damaged[..600], &sidecar, Options::default());
    assert_eq!(report.lost.last().map(|range| range.end), Some(1500));
}

/// Each superseded frame costs what its own bytes do, though all are judged for one damaged block.
#[test]
fn many_superseded_frames_take_linear_time() {
    let set = Set {
        id: [5; 8],
        parameters: Parameters::new(64, 1, 1, 1).unwrap(),
    };
    let file = vec![7; 64];
    let frame = protected(&file, 64, set);
    let mut sidecar = frame.repeat(20_000);
    sidecar[80] ^= 1; // of the parity of the current frame, which is the first
    let mut damaged = file.clone();
    damaged[3] ^= 1;
    let options = Options::default().force(true);
    let (report, new, new_sidecar) = repaired(&damaged, &sidecar, options);
    assert_eq!((report.outcome, new), (Outcome::Repaired, file));
    assert_eq!(new_sidecar, frame.repeat(20_000));
    assert_eq!(report.frames.len(), 20_000);
}
