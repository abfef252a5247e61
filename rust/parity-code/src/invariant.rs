//! Values that always exist. A missing one is a mistake in this crate, not in its input.

/// Takes out a value that always exists. If it is missing, builds with debug assertions panic. Other builds use a
/// default, so that hot loops need no branch; hashes are wrong then.
pub(crate) trait Always<T>: Sized {
    /// The value, or `instead`. `expected` completes the sentence "expected ...".
    fn always_or(self, expected: &'static str, instead: T) -> T;

    /// The value, or the default value of its type.
    fn always(self, expected: &'static str) -> T
    where
        T: Default,
    {
        self.always_or(expected, T::default())
    }
}

impl<T> Always<T> for Option<T> {
    #[inline(always)]
    #[track_caller]
    fn always_or(self, expected: &'static str, instead: T) -> T {
        debug_assert!(self.is_some(), "expected {expected}");
        self.unwrap_or(instead)
    }
}
