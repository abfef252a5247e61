//! How a file is scanned: by one of the scans, which its front decides.

use super::VERSION_1;
use super::block_search::BlockSearch;
use super::claims::Claims;
use super::front::Front;
use super::listed::Listed;
use super::partitions::Partitions;
use super::pruned::Pruned;
use super::reading::Reach;
use super::unlisted::Unlisted;

/// The scan of a file, with its progress.
#[derive(Debug)]
pub(super) enum Course {
    /// None: the front decides about the whole file.
    Refused,
    /// Version 1.
    Partitions(Partitions),
    /// Version 2 with a sound table of contents.
    Listed(Listed),
    /// Version 2 without a sound table of contents.
    Unlisted(Unlisted),
    /// Only the blocks that match, with a sound table of contents.
    Pruned(Pruned),
}

impl Course {
    /// The scan of a file with this front, of which everything up to `at` is committed.
    pub(super) fn of(front: &Front, reach: Reach, at: u64) -> Self {
        let is_v1 = front.version == VERSION_1;
        match reach {
            _ if front.refused => Self::Refused,
            Reach::InPlace if is_v1 => Self::Pruned(Pruned::Partitions(Default::default())),
            Reach::InPlace => Self::Pruned(Pruned::Blocks(BlockSearch::default())),
            Reach::AfterLast if is_v1 => Self::Partitions(Partitions::default()),
            Reach::AfterLast if front.is_sound() => Self::Listed(Listed {
                search: BlockSearch::default(),
                claims: Claims::new(at, front.len),
                progress: None,
            }),
            Reach::AfterLast => Self::Unlisted(Unlisted::new(front.toc_end, front.len)),
        }
    }
}
