//! Seals traits: other crates can use them, but not implement them.

/// Implemented in this crate only. So a public trait that requires it can get new methods without breaking other crates.
#[allow(unreachable_pub, reason = "public traits require it")]
pub trait Sealed {}
