//! What seals traits: they can be used, but not implemented, by other crates.

/// Of this crate. A public trait that requires it can get methods without breaking anybody.
#[allow(unreachable_pub, reason = "public traits require it")]
pub trait Own {}
