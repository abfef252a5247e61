//! The oplog format: the messages of an Autobase oplog, end to end.
//!
//! ```text
//! file:   (length uint ‖ message)*        the first message has the sequence number 0
//! uint:   u8 up to 0xfc, or 0xfd ‖ u16, 0xfe ‖ u32, 0xff ‖ u64, little-endian
//! ```
//! How a message is laid out depends on the dialect, which the file does not tell. There are no checksums and no magic: all
//! that is known to be right is that lengths fit and messages decode to their last byte.
//!
//! In the dialect `draft-1.1` messages refer to keys that earlier ones declared. A walk keeps them all, the first
//! in memory, those behind in temporary files, and its [`Carry`](super::Carry) holds them.
//!
//! What other formats have not: the dialects (`layout/`, on which those of the draft, `draft` and `encode`, and of the npm package, `autobase/`, build); `message`,
//! one of any dialect in its frame, and `single`, one without; `ahead` and `pieces`, messages that are larger than a window and
//! the frames after a corrupt one; `keys`, `late_keys` and `resolved`, keys of other messages; `renumber`, numbers that change
//! where a message is dropped. It has no judge, since nothing is checked but that messages decode; no parts; and no look-up.

mod ahead;
mod autobase;
mod detect;
mod draft;
mod encode;
mod keys;
mod late_keys;
mod layout;
mod message;
mod pieces;
mod renumber;
mod resolved;
mod rows;
mod salvage;
mod single;
mod walk;
mod writer;

pub use single::{Single, System, decode_message, decode_system, encode_message};
pub use writer::Writer;

use crate::engine::lookup::WalkingLookup;
use crate::engine::settings::{APPENDS, FormatOption, OptionKind, ZERO_TORN_TAIL};
use crate::engine::{Dialect, Format};
use crate::record::Checked;

/// How messages are laid out, which the bytes do not tell.
const DIALECT: FormatOption = FormatOption {
    name: "dialect",
    kind: OptionKind::Name(Dialect::NAMES),
    about: "how messages are laid out, which the bytes do not tell",
};

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    name: "oplog",
    extension: "oplog",
    identifier: &["seq"],
    checked: Checked::Structure,
    has_plain_values: true,
    marks_damage: true,
    open_options: &[DIALECT],
    create_options: &[APPENDS, ZERO_TORN_TAIL, DIALECT],
    applies: &[],
    columns: |options| layout::columns::columns(options.dialect),
    detect: detect::detect,
    walk: |source, options, start| Ok(Box::new(walk::OplogWalk::open(source, options, start)?)),
    split: None,
    index: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    salvage: salvage::salvage,
    suspects: |_, _| Ok(None),
};
