//! Functions with many keyword arguments, each of which is listed once.

/// Declares a function, and a struct of its keyword arguments that has a method of the function's name.
///
/// A default is one token, which Python shows where it is a literal: a function with others has a `text_signature`. An attribute before a name is that of the function's argument. With `[keywords]` behind its name the struct has a method
/// that gives its fields as a dict of keyword arguments.
macro_rules! with_keywords {
    (
        $(#[$about:meta])*
        fn $function:ident($($given:ident: $kind:ty),+; $arguments:ident<$life:lifetime> [keywords] {
            $($(#[$from:meta])? $name:ident: $type:ty $(= $default:tt)?,)+
        }) -> $result:ty;
    ) => {
        with_keywords! {
            $(#[$about])*
            fn $function($($given: $kind),+; $arguments<$life> { $($(#[$from])? $name: $type $(= $default)?,)+ }) -> $result;
        }

        impl<$life> $arguments<$life> {
            fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let keywords = PyDict::new(py);
                $(keywords.set_item(stringify!($name).trim_start_matches("r#"), &self.$name)?;)+
                Ok(keywords)
            }
        }
    };
    (
        $(#[$about:meta])*
        fn $function:ident($($given:ident: $kind:ty),+; $arguments:ident<$life:lifetime> {
            $($(#[$from:meta])? $name:ident: $type:ty $(= $default:tt)?,)+
        }) -> $result:ty;
    ) => {
        struct $arguments<$life> {
            $($name: $type,)+
        }

        #[pyfunction]
        $(#[$about])*
        #[pyo3(signature = ($($given,)+ *, $($name $(= $default)?),+))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments")]
        pub(crate) fn $function<$life>($($given: $kind,)+ $($(#[$from])? $name: $type,)+) -> PyResult<$result> {
            $arguments { $($name,)+ }.$function($($given),+)
        }
    };
}
pub(crate) use with_keywords;
