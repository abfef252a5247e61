//! What makes a struct of options a builder.

/// Gives a struct a method for each of these fields, which sets it: of the field's type, or of what converts into it where the
/// type is followed by `from`.
macro_rules! setters {
    ($options:ident { $($field:ident: $kind:ty $(, $from:ident)?;)* }) => {
        impl $options {
            $($crate::setters::setter!($field: $kind $(, $from)?);)*
        }
    };
}

macro_rules! setter {
    ($field:ident: $kind:ty) => {
        #[doc = concat!("These options, with this `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }
    };
    ($field:ident: $kind:ty, from) => {
        #[doc = concat!("These options, with this `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$kind>) -> Self {
            self.$field = $field.into();
            self
        }
    };
}

pub(crate) use {setter, setters};
