//! The oplog format: the messages of an Autobase oplog, concatenated.
//!
//! ```text
//! file:   (length uint ‖ message)*        the first message has the sequence number 0
//! uint:   u8 up to 0xfc, or 0xfd ‖ u16, 0xfe ‖ u32, 0xff ‖ u64, little-endian
//! ```
//! The layout of a message depends on the dialect, which the file does not state. There are no checksums and no
//! magic: the only evidence is that lengths fit and messages decode to their last byte.
//!
//! In the dialect `draft-1.1` messages refer to keys that earlier ones declared. A walk keeps them all, the first
//! in memory, the rest in temporary files. Its [`Carry`](super::Carry) contains them.
//!
//! Only this format has:
//! - the dialects: `layout/`, the base of `draft` and `encode` (those of the draft) and of `autobase/` (that of
//!   the npm package)
//! - `message`, one of any dialect in its frame, and `single`, one without a frame
//! - `ahead` and `pieces`, messages that are larger than a window, and the frames after a corrupt one
//! - `keys`, of other messages
//! - `renumber`, numbers that change when a message is dropped
//!
//! It has no judge, because the only check is that messages decode. It has no parts and no look-up by an index.

mod ahead;
mod autobase;
mod detect;
mod draft;
mod encode;
mod keys;
mod layout;
mod message;
mod pieces;
mod renumber;
mod rows;
mod salvage;
mod single;
mod walk;
mod writer;

pub use single::{Single, System, decode_message, decode_system, encode_message};
pub use writer::Writer;

use crate::engine::Format;
use crate::engine::WalkingLookup;
use crate::record::Checked;
use crate::spec::Dialect;
use crate::spec::settings::{APPENDS, FormatOption, OptionKind, ZERO_TORN_TAIL};
use crate::spec::{FirstUnit, Spec, Tail};

/// The dialect, which the bytes do not state.
const DIALECT: FormatOption = FormatOption {
    name: "dialect",
    kind: OptionKind::Name(Dialect::NAMES),
    about: "the layout of messages, which the file does not state",
};

/// The format's entry in the table.
pub static FORMAT: Format = Format {
    spec: Spec {
        name: "oplog",
        extension: "oplog",
        identifier: &["seq"],
        checked: Checked::Structure,
        has_plain_values: true,
        marks_damage: true,
        open_options: &[DIALECT],
        create_options: &[APPENDS, ZERO_TORN_TAIL, DIALECT],
        applies: &[],
        family: "oplog",
        first_unit: FirstUnit::Bytes,
        tail: Tail::Bytes,
        columns: layout::columns::columns,
    },
    numbered: None,
    detect: detect::detect,
    walk: |source, options, opening| Ok(Box::new(walk::OplogWalk::open(source, options, opening)?)),
    split: None,
    index: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    unfinished: Some(|source, options, tail| writer::is_unfinished(source, tail, options.dialect)),
    salvage: salvage::salvage,
    candidates: |_, _| Ok(None),
};
