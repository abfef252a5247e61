//! Paths that are serialized, where there may be none: any of them, also one that is not UTF-8.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

pub(crate) fn serialize<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::as_os_str).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PathBuf>, D::Error> {
    let path: Option<OsString> = Option::deserialize(deserializer)?;
    Ok(path.map(PathBuf::from))
}
