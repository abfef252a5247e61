//! Fuzzing with coverage: each target tries one [property](properties) of one format, and makes its inputs by
//! [mutations](mutate) that know the format's checksums. docs/fuzzing.md describes how to run them.
//!
//! All targets are one program. The name of its file selects the target. So it is linked once, and copied or linked to
//! names such as `walk_active`: the property `walk` of the format `active`.

pub mod mutate;
pub mod properties;

#[doc(hidden)]
pub use {libfuzzer_sys, seglake};

use std::env;
use std::path::Path;

use properties::Property;
use seglake::format::Format;

/// A fuzz target.
pub struct Target {
    /// The property.
    pub property: &'static Property,
    /// The format.
    pub format: &'static Format,
}

impl Target {
    /// The target that this program's file is named after.
    ///
    /// # Panics
    /// If there is none of that name.
    #[must_use]
    pub fn of_program() -> Self {
        let program = env::args().next().unwrap_or_default();
        let name = Path::new(&program).file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        let (property, format) = name.split_once('_').unwrap_or_else(|| {
            panic!("{name} names no target: call the program PROPERTY_FORMAT, such as walk_active")
        });
        let property = properties::by_name(property);
        let format = property.formats.iter().find(|own| own.name == format);
        let format = format.unwrap_or_else(|| panic!("{name}: the property is not of this format"));
        Self { property, format }
    }
}

/// Defines the program of all targets.
#[macro_export]
macro_rules! targets {
    () => {
        static TARGET: std::sync::LazyLock<$crate::Target> =
            std::sync::LazyLock::new($crate::Target::of_program);

        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            (TARGET.property.check)(TARGET.format, bytes);
        });

        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                              size: usize,
                                              max: usize,
                                              seed: u32| {
            let change = $crate::libfuzzer_sys::fuzzer_mutate;
            let is_index = TARGET.property.extension == "index";
            $crate::mutate::mutate(change, is_index, TARGET.format, data, size, max, seed)
        });
    };
}
