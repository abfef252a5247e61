//! Properties that are true for any bytes and every format: one property a file. The fuzz targets search for bytes that
//! break one. `tests/rust/corpus.rs` checks the properties with the inputs in the corpus, without a fuzzer.
//!
//! An input is just a file of the format. So golden files are inputs, and `seglake` can read inputs. Other parameters
//! of a property, such as the size of a window, come from a [`Draw`] seeded with the bytes.

mod again;
mod ahead;
mod alike;
mod columns;
mod convert;
mod diagnose;
mod draw;
mod filter;
mod index;
mod lookup;
mod mark;
mod parts;
mod protected;
mod recover;
mod repair;
mod scan;
mod seal;
mod sidecar;
mod strict;
mod threads;
mod walk;
mod windows;
mod write;

use std::env;

use seglake::format::{
    self, Dialect, FORMATS, Format, IndexSource, Options, active, chunked, oplog, sealed, tenant,
};
use tempfile::{TempDir, tempdir, tempdir_in};

pub use draw::Draw;
pub use protected::apply;

/// Checks a property: panics if these bytes, read as a file of this format, break it.
pub type Check = fn(&'static Format, &[u8]);

/// A property and its formats.
pub struct Property {
    /// Its name, the first word of the fuzz targets' names.
    pub name: &'static str,
    /// Tries it.
    pub check: Check,
    /// The formats, the second word of the fuzz targets' names.
    pub formats: &'static [&'static Format],
    /// The extension of the golden files that are its inputs.
    pub extension: &'static str,
}

/// All properties. Properties with the same extension and format share their inputs and corpus.
pub static PROPERTIES: &[Property] = &[
    Property {
        name: "walk",
        check: walk::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "strict",
        check: strict::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "windows",
        check: windows::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "lookup",
        check: lookup::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "parts",
        check: parts::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "write",
        check: write::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "recover",
        check: recover::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "convert",
        check: convert::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "seal",
        check: seal::check,
        formats: &[&active::FORMAT],
        extension: "bin",
    },
    Property {
        name: "diagnose",
        check: diagnose::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "columns",
        check: columns::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "threads",
        check: threads::check,
        formats: &[&sealed::FORMAT, &tenant::FORMAT, &chunked::FORMAT],
        extension: "bin",
    },
    Property {
        name: "ahead",
        check: ahead::check,
        formats: FORMATS,
        extension: "bin",
    },
    Property {
        name: "sidecar",
        check: sidecar::check,
        formats: FORMATS,
        extension: "bin",
    },
    // Of these two, all bytes are files of any format.
    Property {
        name: "repair",
        check: repair::check,
        formats: &[&active::FORMAT],
        extension: "bin",
    },
    Property {
        name: "again",
        check: again::check,
        formats: &[&active::FORMAT],
        extension: "bin",
    },
    // The bytes are those of a mark, beside the same log.
    Property {
        name: "mark",
        check: mark::check,
        formats: &[&active::FORMAT],
        extension: "bin",
    },
    Property {
        name: "index",
        check: index::check,
        formats: &[&chunked::FORMAT],
        extension: "index",
    },
];

/// The folder in `fuzz/corpus` of a property's inputs of this format.
#[must_use]
pub fn corpus(property: &Property, format: &Format) -> String {
    match property.extension {
        "bin" => format.name.to_owned(),
        other => format!("{}_{other}", format.name),
    }
}

/// The property of this name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn by_name(name: &str) -> &'static Property {
    let found = PROPERTIES.iter().find(|property| property.name == name);
    found.unwrap_or_else(|| panic!("there is no property {name}"))
}

/// The format that the options name.
fn format_of(options: &Options) -> &'static Format {
    format::by_name(options.format.unwrap().name).unwrap()
}

/// A folder for the files of a property. It is in memory if the system has such a folder and TMPDIR names no other, because syncs to a
/// disk would take most of the time.
fn folder() -> TempDir {
    let in_memory = match env::var_os("TMPDIR") {
        None => tempdir_in("/dev/shm").ok(),
        Some(_) => None,
    };
    in_memory.unwrap_or_else(|| tempdir().unwrap())
}

/// The ways to read a file: an oplog in each dialect, others in one way. Damage is skipped.
///
/// The content of a chunk is bounded, because nothing in its file bounds it: a fuzzer that finds a way to a gigabyte of
/// zeros finds nothing else.
fn readings(format: &'static Format) -> Vec<Options> {
    let dialects = if *format == oplog::FORMAT {
        Dialect::ALL
    } else {
        &[Dialect::Draft]
    };
    let reading = |dialect: &Dialect| {
        Options::default()
            .format(format)
            .dialect(*dialect)
            .index(IndexSource::None)
            .strict(false)
            .set("chunk_bytes", 1 << 20)
    };
    dialects.iter().map(reading).collect()
}
