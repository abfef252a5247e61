//! Compares the crate with `seglake-before`, the copy that was made before its engine was rebuilt: rows, ledgers, strict
//! errors, look-ups, parts, pruned reads, recovered and converted files, diagnoses, and what is read and how much memory is
//! taken for them. Inputs are the golden files, the fuzzing corpus, and mutations of both.
//!
//! ```text
//! seglake-compare [--mutations N] [--seed N] [FORMAT ...]
//! seglake-compare FORMAT FILE        compares one file, and prints what differs
//! ```
//!
//! With `RUSTFLAGS="--cfg fuzzing"` both have tiny limits, so that small inputs reach the code behind them. Reads and memory
//! are compared without it alone: with tiny limits they say nothing.

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

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use properties::Draw;
use seglake::format::{FORMATS, Format, by_name};

#[global_allocator]
static MEMORY: memory::Counting = memory::Counting;

/// The largest mutated input, in bytes.
const MAX_BYTES: usize = 4096;
/// What memory may differ by: a share of what it was, and some bytes beside.
const MEMORY_SHARE: usize = 20;
const MEMORY_BYTES: usize = 4 << 10;

/// A section of what was seen: its name, what was seen in words, and the most memory that was taken at once, in bytes.
pub struct Section {
    name: String,
    seen: String,
    peak: usize,
}

fn main() -> ExitCode {
    // What panics is seen as such, and need not be printed each time.
    std::panic::set_hook(Box::new(|_| {}));
    let mut args = std::env::args().skip(1).collect::<Vec<_>>();
    let mut number = |name: &str, usual: u64| {
        let place = args.iter().position(|arg| arg == name);
        place.map_or(usual, |place| {
            args.remove(place);
            args.remove(place).parse().expect("a number")
        })
    };
    let (mutations, seed) = (number("--mutations", 1000), number("--seed", 1));
    if let [format, file] = args.as_slice()
        && Path::new(file).is_file()
    {
        let bytes = fs::read(file).expect("a file that can be read");
        let differs = compare(by_name(format).expect("a format"), &bytes);
        println!("{}", differs.as_deref().unwrap_or("alike"));
        return ExitCode::from(u8::from(differs.is_some()));
    }
    let formats: Vec<_> = match args.as_slice() {
        [] => FORMATS.to_vec(),
        names => names
            .iter()
            .map(|name| by_name(name).expect("a format"))
            .collect(),
    };
    let mut differing = 0;
    for format in formats {
        differing += all(format, mutations, seed);
    }
    ExitCode::from(u8::from(differing > 0))
}

/// Compares the golden files and the corpus of a format, and mutations of them. Gives how many inputs differ, having written
/// the first of them to files.
fn all(format: &'static Format, mutations: u64, seed: u64) -> u64 {
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
    let mut tell = |bytes: &[u8], which: &str| {
        if let Some(difference) = compare(format, bytes) {
            differing += 1;
            if differing <= 5 {
                let path =
                    std::env::temp_dir().join(format!("seglake-differs-{}-{which}", format.name));
                fs::write(&path, bytes).expect("room for a file");
                println!(
                    "{} {which}: {difference}\n  {}",
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
        "{}: {} files and {mutations} mutations, {differing} differ",
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

/// What differs, in words.
fn compare(format: &'static Format, bytes: &[u8]) -> Option<String> {
    let folder = tempfile::tempdir_in(if Path::new("/dev/shm").is_dir() {
        "/dev/shm"
    } else {
        "."
    });
    let folder = folder.expect("a folder");
    let (old, new) = (
        before::observe(format.name, bytes, folder.path()),
        now::observe(format.name, bytes, folder.path()),
    );
    for (old, new) in old.iter().zip(&new) {
        if (&old.name, &old.seen) != (&new.name, &new.seen) {
            if cfg!(fuzzing) && old.name.ends_with(" reads") {
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
            return Some(format!(
                "{} differs in line {line}\n  before: {}\n  now:    {}",
                new.name,
                at(&old.seen),
                at(&new.seen)
            ));
        }
        if !cfg!(fuzzing) && new.peak > old.peak + old.peak / MEMORY_SHARE + MEMORY_BYTES {
            return Some(format!(
                "{} takes {} bytes of memory, not {}",
                new.name, new.peak, old.peak
            ));
        }
    }
    (old.len() != new.len()).then(|| "one ends earlier".to_owned())
}
