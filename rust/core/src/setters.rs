//! Makes structs of options with their setter methods, and enums of which each variant is a value of an option, with the name that
//! callers write.

/// Gives a struct a setter method for each of these fields, with the documentation of the option. It takes the field's type, or,
/// if the type is followed by `from`, any type that converts into it.
macro_rules! setters {
    ($options:ident { $($(#[$doc:meta])* $field:ident: $kind:ty $(, $from:ident)?;)* }) => {
        impl $options {
            $($crate::setters::setter!($(#[$doc])* $field: $kind $(, $from)?);)*
        }
    };
}

macro_rules! setter {
    ($(#[$doc:meta])* $field:ident: $kind:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }
    };
    ($(#[$doc:meta])* $field:ident: $kind:ty, from) => {
        $(#[$doc])*
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$kind>) -> Self {
            self.$field = $field.into();
            self
        }
    };
}

/// Gives a struct of options, with the fields `disk` and `settings`, the methods that all such structs have.
macro_rules! disk_and_settings {
    ($options:ident) => {
        impl $options {
            /// These options, for files on this disk.
            #[cfg(feature = "faults")]
            #[doc(hidden)]
            #[must_use]
            pub fn disk(mut self, disk: Arc<dyn Disk>) -> Self {
                self.disk = disk.into();
                self
            }

            /// The same, from other options.
            pub(crate) fn on_disk(mut self, disk: &DiskRef) -> Self {
                self.disk = disk.clone();
                self
            }

            /// The disk that files are on.
            pub(crate) const fn on(&self) -> &DiskRef {
                &self.disk
            }

            /// Sets an option that formats declare.
            #[must_use]
            pub fn set(
                mut self,
                name: impl Into<Cow<'static, str>>,
                value: impl Into<Setting>,
            ) -> Self {
                self.settings.set(name.into(), value.into());
                self
            }
        }
    };
}

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
                let found = Self::ALL.iter().find(|value| value.as_str() == name);
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

pub(crate) use {choices, disk_and_settings, setter, setters};
