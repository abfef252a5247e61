//! Makes builders of structs of options.

/// Gives a struct a setter method for each of these fields. It takes the field's type, or, if the type is followed by
/// `from`, any type that converts into it.
macro_rules! setters {
    ($options:ident { $($field:ident: $kind:ty $(, $from:ident)?;)* }) => {
        impl $options {
            $($crate::setters::setter!($field: $kind $(, $from)?);)*
        }
    };
}

macro_rules! setter {
    ($field:ident: $kind:ty) => {
        #[doc = concat!("Returns these options with this `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }
    };
    ($field:ident: $kind:ty, from) => {
        #[doc = concat!("Returns these options with this `", stringify!($field), "`.")]
        #[must_use]
        pub fn $field(mut self, $field: impl Into<$kind>) -> Self {
            self.$field = $field.into();
            self
        }
    };
}

pub(crate) use {setter, setters};
