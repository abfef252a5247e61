//! Runs one hot path in so many rounds, for valgrind to count instructions: what two runs differ by is what the rounds between
//! them cost, whatever starting and making the data took. `make bench-guard` compares that with what is allowed.
//!
//! ```text
//! seglake-guard                lists the paths as JSON: name, unit, kernels
//! seglake-guard NAME ROUNDS    runs one, and prints how many units one round has
//! ```
mod paths;
// Messages of the same lengths and bytes as the ratios are measured on.
#[allow(dead_code, reason = "it serves the ratios too")]
#[path = "../../ratios/src/messages.rs"]
mod messages;

use paths::PATHS;

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
        [name, rounds] => {
            let path = PATHS.iter().find(|path| path.name == name);
            let (Some(path), Ok(rounds)) = (path, rounds.parse::<u32>()) else {
                fail(&format!(
                    "there is no path {name:?} that runs {rounds} times"
                ))
            };
            let mut prepared = (path.prepare)();
            for _ in 0..rounds {
                (prepared.round)();
            }
            println!("{}", prepared.units);
        }
        _ => fail("either no arguments, or the name of a path and the number of rounds"),
    }
}

fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}
