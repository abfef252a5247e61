//! Fuzzing with coverage: each target tries one [property](properties) of one format, and makes its inputs by
//! [mutations](mutate) that know the format's checksums. docs/fuzzing.md says how to run them.

pub mod mutate;
pub mod properties;

#[doc(hidden)]
pub use {libfuzzer_sys, seglake};

/// Defines a fuzz target: a property by its name, and a format by its module's.
#[macro_export]
macro_rules! target {
    ($property:literal, $format:ident) => {
        static PROPERTY: std::sync::LazyLock<&$crate::properties::Property> =
            std::sync::LazyLock::new(|| $crate::properties::by_name($property));

        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
            (PROPERTY.check)(&$crate::seglake::format::$format::FORMAT, bytes);
        });

        $crate::libfuzzer_sys::fuzz_mutator!(|data: &mut [u8],
                                              size: usize,
                                              max: usize,
                                              seed: u32| {
            let format = &$crate::seglake::format::$format::FORMAT;
            let change = $crate::libfuzzer_sys::fuzzer_mutate;
            let is_index = PROPERTY.extension == "index";
            $crate::mutate::mutate(change, is_index, format, data, size, max, seed)
        });
    };
}
