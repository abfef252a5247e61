//! Makes builders of structs of options.

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

pub(crate) use {disk_and_settings, setter, setters};
