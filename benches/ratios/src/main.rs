//! Compares each hot path with its peer or limit, as ratios of one run. `make bench` prints them as one table.
//!
//! Arguments are suites by name; without any, all run; `--list` prints their names. Results go to the folder
//! `SEGLAKE_RATIOS`, one JSON file for each suite.
mod append;
mod arrow;
mod chunked;
mod compare;
mod hash;
mod log;
mod logs;
mod lookup;
mod messages;
mod parity;
mod scale;
mod scan;
mod segments;
mod threads;
mod walks;

use compare::Comparison;

/// A suite's name, and what measures it.
type Suite = (&'static str, fn(&mut Comparison));

const SUITES: &[Suite] = &[
    ("append", append::run),
    ("arrow", arrow::run),
    ("chunked", chunked::run),
    ("hash", hash::run),
    ("log", log::run),
    ("lookup", lookup::run),
    ("parity", parity::run),
    ("scale", scale::run),
    ("scan", scan::run),
    ("threads", threads::run),
    ("walks", walks::run),
];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, rest @ ..] = wanted.as_slice()
        && flag == scale::PEAK
    {
        return scale::print_peak(rest);
    }
    if let [flag, rest @ ..] = wanted.as_slice()
        && flag == log::FOLLOW
    {
        return log::print_arrivals(rest);
    }
    if let [flag, rest @ ..] = wanted.as_slice()
        && flag == log::BATCHES
    {
        return log::print_rate(rest);
    }
    if wanted == ["--list"] {
        SUITES.iter().for_each(|(name, _)| println!("{name}"));
        return;
    }
    if let Some(unknown) = wanted
        .iter()
        .find(|name| SUITES.iter().all(|(suite, _)| suite != name))
    {
        let names: Vec<_> = SUITES.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "there is no suite {unknown:?}: there are {}",
            names.join(", ")
        );
        std::process::exit(2);
    }
    for (name, run) in SUITES {
        if wanted.is_empty() || wanted.iter().any(|own| own == name) {
            let mut comparison = Comparison::new(name);
            run(&mut comparison);
            comparison.finish();
        }
    }
}
