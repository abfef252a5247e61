//! Compares the crate with `seglake-before`, its state at an earlier commit: rows, ledgers, strict errors,
//! look-ups, parts, pruned reads, recovered and converted files, diagnoses, and what is read and how much memory is taken for
//! them. Inputs are the golden files of each format, the fuzzing corpus, and mutations of both.
//!
//! ```text
//! seglake-compare [--mutations N] [--seed N] [FORMAT ...]
//! seglake-compare FORMAT FILE        compares one file, and prints what differs
//! ```
//!
//! With `RUSTFLAGS="--cfg fuzzing"` both have tiny limits, so that small inputs reach the code for large ones. Reads and memory
//! are compared without it alone: with tiny limits they say nothing. There may be fewer reads, in the same order, but no others.

mod memory;
#[path = "../../fuzz/src/mutate/mod.rs"]
mod mutate;
mod properties;

/// Looks at a file through one of the two crates.
macro_rules! observer {
    ($name:ident, $library:ident) => {
        mod $name {
            use $library as library;
            include!("observe.rs");
        }
    };
}

observer!(before, seglake_before);
observer!(now, seglake);

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use properties::Draw;
use seglake::format::{FORMATS, Format, by_name};

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting;

/// How many differences of a section are shown and kept.
const SHOWN: u64 = 3;
/// The largest mutated input, in bytes.
const MAX_BYTES: usize = 4096;
/// How much peak memory may grow: by one in so many bytes of what it was, and by so many bytes.
const MEMORY_SHARE: usize = 20;
const MEMORY_BYTES: usize = 4 << 10;

/// A section of what was seen: its name, what was seen in words, and the most memory that was taken at once, in bytes.
pub struct Section {
    name: String,
    seen: String,
    peak: usize,
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Gives how many inputs differ, or what is wrong with the arguments.
fn run(mut args: Vec<String>) -> Result<u64, String> {
    let mut number = |name: &str, usual: u64| match args.iter().position(|arg| arg == name) {
        None => Ok(usual),
        Some(place) if place + 1 < args.len() => {
            args.remove(place);
            let text = args.remove(place);
            text.parse()
                .map_err(|_| format!("{name} {text}: not a number"))
        }
        Some(_) => Err(format!("{name}: the number is missing")),
    };
    let (mutations, seed) = (number("--mutations", 1000)?, number("--seed", 1)?);
    let formats: Vec<_> = args.iter().map_while(|name| by_name(name).ok()).collect();
    let rest = args.get(formats.len()..).unwrap_or_default();
    // Panics are compared like everything else, and not printed each time.
    std::panic::set_hook(Box::new(|_| {}));
    match (formats.as_slice(), rest) {
        ([format], [file]) => {
            let bytes = fs::read(file).map_err(|error| format!("{file}: {error}"))?;
            let differs = compare(format, &bytes);
            for (section, difference) in &differs {
                println!("{section} {difference}");
            }
            if differs.is_empty() {
                println!("alike");
            }
            Ok(differs.len() as u64)
        }
        (_, [other, ..]) => {
            let names: Vec<_> = FORMATS.iter().map(|format| format.name).collect();
            Err(format!("{other}: not a format: {}", names.join(", ")))
        }
        (chosen, []) => {
            let formats = if chosen.is_empty() { FORMATS } else { chosen };
            let differing = formats
                .iter()
                .map(|format| compare_format(format, mutations, seed));
            Ok(differing.sum())
        }
    }
}

/// Compares the golden files and the corpus of a format, and mutations of them. Gives how many inputs differ, having written
/// the first of them to files.
fn compare_format(format: &'static Format, mutations: u64, seed: u64) -> u64 {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut inputs = Vec::new();
    for folder in ["tests/vectors", "fuzz/corpus"] {
        let mut paths: Vec<PathBuf> = fs::read_dir(root.join(folder).join(format.name))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| {
                folder != "tests/vectors" || path.extension().is_some_and(|own| own == "bin")
            })
            .collect();
        paths.sort();
        inputs.extend(paths.iter().map(|path| fs::read(path).expect("a file")));
    }
    let mut differing = 0;
    let mut sections = BTreeMap::new();
    let mut tell = |bytes: &[u8], which: &str| {
        let differences = compare(format, bytes);
        differing += u64::from(!differences.is_empty());
        for (section, difference) in differences {
            let seen = sections.entry(section.clone()).or_insert(0_u64);
            *seen += 1;
            if *seen <= SHOWN {
                let path =
                    std::env::temp_dir().join(format!("seglake-differs-{}-{which}", format.name));
                fs::write(&path, bytes).expect("room for a file");
                println!(
                    "{} {which}: {section} {difference}\n  {}",
                    format.name,
                    path.display()
                );
            }
        }
    };
    for (number, bytes) in inputs.iter().enumerate() {
        tell(bytes, &format!("input-{number}"));
    }
    let mut draw = Draw::new(seed);
    for number in 0..mutations {
        let mut bytes = draw.of_these(&inputs).clone();
        bytes.truncate(MAX_BYTES);
        let mut size = bytes.len();
        bytes.resize(MAX_BYTES, 0);
        for _ in 0..=draw.below(3) {
            let own = u32::try_from(draw.any() >> 32).expect("32 bits");
            size = mutate::mutate(change, false, format, &mut bytes, size, MAX_BYTES, own);
        }
        tell(&bytes[..size], &format!("seed-{seed}-number-{number}"));
    }
    println!(
        "{}: {} files and {mutations} mutations, {differing} differ {sections:?}",
        format.name,
        inputs.len()
    );
    differing
}

/// Changes, inserts or removes a few bytes.
fn change(bytes: &mut [u8], size: usize, max: usize) -> usize {
    let mut draw = Draw::of(&bytes[..size]);
    let at = draw.below(size + 1);
    let some = 1 + draw.below(40);
    match draw.below(5) {
        0 if size > 0 => {
            bytes[draw.below(size)] ^= 1 << draw.below(8);
            size
        }
        1 if size > 0 => {
            let end = (at + some).min(size);
            bytes[at..end].fill(if draw.below(2) == 0 { 0 } else { 0xff });
            size
        }
        2 => {
            let some = some.min(max - size);
            bytes.copy_within(at..size, at + some);
            size + some
        }
        3 => {
            let some = some.min(size - at);
            bytes.copy_within(at + some..size, at);
            size - some
        }
        _ => at,
    }
}

/// Whether what is read is some of what was, in the same order: what is not read any more is no difference.
fn reads_no_more(old: &str, new: &str) -> bool {
    let mut old = old.lines();
    new.lines().all(|read| old.any(|own| own == read))
}

/// The sections that differ, and where each first does, in words.
fn compare(format: &'static Format, bytes: &[u8]) -> Vec<(String, String)> {
    // In memory, if the system has such a folder: syncs would take most of the time.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("a folder");
    let (old, new) = (
        before::observe(format.name, bytes, folder.path()),
        now::observe(format.name, bytes, folder.path()),
    );
    let mut differences = Vec::new();
    for (old, new) in old.iter().zip(&new) {
        if (&old.name, &old.seen) != (&new.name, &new.seen) {
            if old.name.contains(" reads") && (cfg!(fuzzing) || reads_no_more(&old.seen, &new.seen))
            {
                continue;
            }
            let line = old
                .seen
                .lines()
                .zip(new.seen.lines())
                .position(|(old, new)| old != new);
            let line =
                line.unwrap_or_else(|| old.seen.lines().count().min(new.seen.lines().count()));
            let at = |text: &str| {
                text.lines()
                    .nth(line)
                    .unwrap_or("(nothing)")
                    .chars()
                    .take(600)
                    .collect::<String>()
            };
            let difference = format!(
                "differs at line {}\n  before: {}\n  now:    {}",
                line + 1,
                at(&old.seen),
                at(&new.seen)
            );
            differences.push((new.name.clone(), difference));
        } else if !cfg!(fuzzing) && new.peak > old.peak + old.peak / MEMORY_SHARE + MEMORY_BYTES {
            let difference = format!("takes {} bytes of memory, not {}", new.peak, old.peak);
            differences.push((new.name.clone(), difference));
        }
    }
    if old.len() != new.len() {
        differences.push(("all".to_owned(), "one ends earlier".to_owned()));
    }
    differences
}
