//! Enums of which each variant is a word in ledgers, reports and errors.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        $crate::words::names! { $name { $($variant = $word,)* } }
    };
}

/// What an enum has of which each variant is a word.
macro_rules! names {
    ($name:ident { $($variant:ident = $word:literal,)* }) => {
        impl $name {
            /// All of them.
            #[doc(hidden)] // public for the Python extension and tests
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word that callers, ledgers, reports and errors use: what [`AsRef`] and `Display` give.
            #[doc(hidden)] // public for the Python extension
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use {names, words};
