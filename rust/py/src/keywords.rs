//! Functions with many keyword arguments, each of which is listed once.

/// Declares a function, and a struct of its keyword arguments that has a method of the function's name.
///
/// The signature that Python shows is made of the same list, and so is that of the stub: `scripts/stub_docs.py` reads the
/// types here. An attribute before a name is that of the function's argument. With `[keywords]` after its name the struct
/// has a method that gives its fields as a dict of keyword arguments.
macro_rules! with_keywords {
    (
        $(#[$about:meta])*
        fn $function:ident($($given:ident: $kind:ty $(= $none:tt)?),+; $arguments:ident<$life:lifetime> [keywords] {
            $($(#[$from:meta])? $name:ident: $type:ty = $default:tt,)+
        }) -> $result:ty;
    ) => {
        with_keywords! {
            $(#[$about])*
            fn $function($($given: $kind $(= $none)?),+; $arguments<$life> { $($(#[$from])? $name: $type = $default,)+ }) -> $result;
        }

        impl<$life> $arguments<$life> {
            fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let keywords = PyDict::new(py);
                $(keywords.set_item(crate::keywords::name!($name), &self.$name)?;)+
                Ok(keywords)
            }
        }
    };
    (
        $(#[$about:meta])*
        fn $function:ident($($given:ident: $kind:ty $(= $none:tt)?),+; $arguments:ident$(<$life:lifetime>)? {
            $($(#[$from:meta])? $name:ident: $type:ty = $default:tt,)+
        }) -> $result:ty;
    ) => {
        struct $arguments$(<$life>)? {
            $($name: $type,)+
        }

        #[pyfunction]
        #[doc = concat!(
            stringify!($function), "(", $(stringify!($given), $("=", crate::keywords::shown!($none),)? ", ",)+ "*",
            $(", ", crate::keywords::name!($name), "=", crate::keywords::shown!($default),)+ ")\n--\n",
        )]
        $(#[$about])*
        #[pyo3(signature = ($($given $(= $none)?,)+ *, $($name = $default),+), text_signature = None)]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments")]
        pub(crate) fn $function$(<$life>)?($($given: $kind,)+ $($(#[$from])? $name: $type,)+) -> PyResult<$result> {
            $arguments { $($name,)+ }.$function($($given),+)
        }
    };
}

/// A name of Rust in Python.
macro_rules! name {
    (r#final) => {
        "final"
    };
    ($name:ident) => {
        stringify!($name)
    };
}

/// A default as Python shows it.
macro_rules! shown {
    (true) => {
        "True"
    };
    (false) => {
        "False"
    };
    (AUTO) => {
        "\"auto\""
    };
    (BESIDE) => {
        "\"auto\""
    };
    (ERROR) => {
        "\"error\""
    };
    (EXPLAINED) => {
        "100"
    };
    (ONE_THREAD) => {
        "1"
    };
    (NOTHING) => {
        "()"
    };
    ($literal:tt) => {
        stringify!($literal)
    };
}

pub(crate) use {name, shown, with_keywords};
