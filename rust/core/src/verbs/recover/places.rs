//! The paths of a recovery's files, which must differ.

use std::path::{Path, PathBuf};

use super::RecoverOptions;
use crate::engine::Format;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::text;
use crate::verbs::paths::{refuse_same, suffixed};
use crate::walk::Options;

/// The suffix of a quarantine after the name of the recovered file.
const QUARANTINE: &str = ".quarantine";
/// The suffix of a manifest after the name of its quarantine.
const MANIFEST: &str = ".manifest.jsonl";

/// The files to write.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) recovered: PathBuf,
    pub(super) quarantine: PathBuf,
    pub(super) manifest: PathBuf,
    /// For formats with an index beside the file.
    pub(super) index: Option<PathBuf>,
}

/// The default path of a recovered file's quarantine.
pub(super) fn default_quarantine(recovered: &Path) -> PathBuf {
    suffixed(recovered, QUARANTINE)
}

/// The path of a quarantine's manifest.
pub(super) fn manifest(quarantine: &Path) -> PathBuf {
    suffixed(quarantine, MANIFEST)
}

impl Places {
    /// Settles all paths.
    ///
    /// # Errors
    /// [`Error::Usage`] if two of them, or one of them and the source or its index, are the same file under any name.
    pub(super) fn new(
        source: &dyn Source,
        format: &Format,
        options: &Options,
        recovered: &Path,
        recovery: &RecoverOptions,
    ) -> Result<Self> {
        let quarantine = match &recovery.quarantine {
            Some(quarantine) => quarantine.clone(),
            None => default_quarantine(recovered),
        };
        let has_index = match format.index {
            Some(index_file) => (index_file.is_there)(source, options)?,
            None => false,
        };
        let beside = |path: &Path| {
            format
                .index
                .and_then(|index_file| (index_file.beside)(path))
        };
        let index = match beside(recovered) {
            Some(index) => Some(index).filter(|_| has_index),
            None if has_index => {
                return Err(Error::Usage(format!(
                    "{} has the name of its own index: give the new file another extension",
                    text::path(recovered)
                )));
            }
            None => None,
        };
        let places = Self {
            recovered: recovered.to_path_buf(),
            manifest: manifest(&quarantine),
            quarantine,
            index,
        };
        let source_index = source.path().and_then(beside);
        refuse_same(
            options.on(),
            &[
                ("the file that is read", source.path()),
                (
                    "the index of the file that is read",
                    source_index.as_deref().filter(|_| has_index),
                ),
                ("the recovered file", Some(&places.recovered)),
                ("the quarantine", Some(&places.quarantine)),
                ("the manifest", Some(&places.manifest)),
                ("the index of the recovered file", places.index.as_deref()),
            ],
        )?;
        Ok(places)
    }
}
