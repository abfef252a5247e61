//! Runs one hot path for a number of rounds, so that valgrind can count instructions. The difference of two runs is the
//! cost of the additional rounds, without start-up and making the data. `make bench-guard` compares it with the budget.
//! It is also for profiling one path with perf, with more data than fits into the caches.
//!
//! ```text
//! seglake-guard                      lists the paths as JSON: name, unit, kernels
//! seglake-guard NAME ROUNDS [MIB]    runs one on this much data, and prints how many units one round has
//! ```
mod paths;
// Messages with the lengths and bytes of those of the ratios.
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
