//! Enums of which each variant is a value of an option, with the name that callers write.

/// An enum of choices. After a word come those that other tools have for it: an error names the right one.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident of $option:literal { $($(#[$variant_doc:meta])* $variant:ident = $word:literal $(not $other:literal)*,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        $crate::words::names! { $name { $($variant = $word,)* } }

        impl $name {
            /// Their names.
            #[doc(hidden)] // public for the Python extension
            pub const NAMES: &[&str] = &[$($word,)*];
        }

        impl std::str::FromStr for $name {
            type Err = $crate::error::Error;

            /// The value of this name. Another name is [`Error::Usage`](crate::Error::Usage).
            fn from_str(name: &str) -> $crate::error::Result<Self> {
                const OTHERS: &[(&str, &str)] = &[$($(($other, $word),)*)*];
                let found = Self::ALL.iter().find(|own| own.as_str() == name);
                found.copied().ok_or_else(|| {
                    let names = Self::NAMES.join(", ");
                    let meant = match OTHERS.iter().find(|(other, _)| *other == name) {
                        Some((_, word)) => format!("; did you mean {word:?}?"),
                        None => String::new(),
                    };
                    let said = format!(concat!($option, " is {:?}: expected one of {}{}"), name, names, meant);
                    $crate::error::Error::Usage(said)
                })
            }
        }
    };
}

pub(crate) use choices;
