//! Runs one hot path in so many rounds, for valgrind to count instructions: what two runs differ by is what the rounds between
//! them cost, whatever starting and making the data took. `make bench-guard` compares that with what is allowed. For looking
//! at one path alone with perf, too: with more data than the caches hold.
//!
//! ```text
//! seglake-guard                      lists the paths as JSON: name, unit, kernels
//! seglake-guard NAME ROUNDS [MIB]    runs one on so much data, and prints how many units one round has
//! ```
mod paths;
// Messages of the same lengths and bytes as the ratios are measured on.
#[allow(dead_code, reason = "it serves the ratios too")]
#[path = "../../ratios/src/messages.rs"]
mod messages;
#[allow(dead_code, reason = "it serves the ratios too")]
#[path = "../../ratios/src/segments.rs"]
mod segments;

use paths::{MIB, PATHS};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => {
            let list: Vec<_> = PATHS
                .iter()
                .map(|path| serde_json::json!({"name": path.name, "unit": path.unit, "kernels": path.kernels}))
                .collect();
            println!("{}", serde_json::Value::from(list));
        }
        [name, rounds, rest @ ..] => {
            let path = PATHS.iter().find(|path| path.name == name);
            let mib = rest.first().map_or(Ok(MIB), |mib| mib.parse());
            let (Some(path), Ok(rounds), Ok(mib)) = (path, rounds.parse::<u32>(), mib) else {
                fail("there is no such path, or no such number")
            };
            let mut prepared = (path.prepare)(mib << 20);
            for _ in 0..rounds {
                (prepared.round)();
            }
            println!("{}", prepared.units);
        }
        [_] => fail("the number of rounds is missing"),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}
