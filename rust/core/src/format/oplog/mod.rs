//! The oplog format: the messages of an Autobase oplog, concatenated.
//!
//! ```text
//! file:   (length uint ‖ message)*        the first message has the sequence number 0
//! uint:   u8 up to 0xfc, or 0xfd ‖ u16, 0xfe ‖ u32, 0xff ‖ u64, little-endian
//! ```
//! The layout of a message depends on the dialect, which the file does not state. There are no checksums and no
//! magic: the only evidence is that lengths fit and messages decode to their last byte.
//!
//! In the dialect `draft-1.1` messages refer to keys that earlier ones declared. A walk keeps them all,
//! up to a limit. Its [`Carry`](super::Carry) contains them.
//!
//! ```
//! use seglake::format::{Dialect, WriteOptions, create, oplog};
//! use seglake::{Options, Reader, Value};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("messages.oplog");
//!
//! // A value for each column of the dialect.
//! let draft = WriteOptions::default().dialect(Dialect::Draft);
//! let mut writer = create(&oplog::FORMAT, &path, &draft)?;
//! let fields = writer.columns().iter().map(|column| match column.name {
//!     "value" => Value::Binary(b"hello"),
//!     "clock" => Value::List(Vec::new()),
//!     _ if column.optional => Value::Null,
//!     _ => Value::UInt64(1),
//! });
//! writer.write(&fields.collect::<Vec<_>>())?;
//! writer.close()?;
//!
//! let reader = Reader::open(&path, Options::default().dialect(Dialect::Draft))?;
//! assert_eq!(reader.records().filter_map(Result::ok).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Only this format has:
//! - the dialects: `layout/`, the base of `draft` (those of the draft) and of `autobase/` (that of the npm package)
//! - `message`, one of any dialect in its frame, and `single`, one without a frame
//! - `keys`, of other messages
//! - `salvage`, with numbers that change when a message is dropped
//!
//! It has no judge, because the only check is that messages decode. It has no parts and no look-up by an index.

use layout::{Body, MAX_UINT_BYTES};
use message::{Frame, Message};

use crate::engine::{Format, Likelihood, WalkingLookup};
use crate::error::Result;
use crate::record::Checked;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::spec::settings::{APPENDS, FormatOption, OptionKind, ZERO_TORN_TAIL};
use crate::spec::{Dialect, FirstUnit, Spec, Tail};
use crate::walk::Options;

#[doc(hidden)]
pub use single::{Single, System, decode_message, decode_system, encode_message};
#[doc(hidden)]
pub use writer::Writer;

mod autobase;
mod draft;
mod keys;
mod layout;
mod message;
mod rows;
mod salvage;
mod single;
mod walk;
mod writer;

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
    detect,
    walk: |source, options, opening| Ok(Box::new(walk::OplogWalk::open(source, options, opening)?)),
    split: None,
    index: None,
    lookup: |source, options| Ok(Box::new(WalkingLookup::new(&FORMAT, source, options))),
    create: |path, options| Ok(Box::new(Writer::open(path, options)?)),
    unfinished: Some(|source, options, tail| writer::is_unfinished(source, tail, options.dialect)),
    salvage: salvage::salvage,
    candidates: |_, _| Ok(None),
    stated: None,
};

/// How many messages are read.
const MESSAGES: usize = 16;
/// Messages that end after this offset are not decoded.
const DECODED_BYTES: usize = 256 << 10;

/// Likely if the first messages, at least one, lie within the file and decode in the dialect of the options.
fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    let (mut first, mut hops) = (Window::default(), Window::default());
    let front = saturating_usize(source.len()).min(DECODED_BYTES);
    let front = first.exact(source, 0, front, front)?;
    let (mut at, mut decoded) = (0, 0);
    for _ in 0..MESSAGES {
        let left = source.len() - at;
        if left == 0 {
            break;
        }
        let head = saturating_usize(left).min(MAX_UINT_BYTES);
        let bytes = hops.exact(source, at, head, MAX_UINT_BYTES)?;
        let Ok(Some(Frame { head, len })) = Frame::parse(bytes, left) else {
            return Ok(Likelihood::No);
        };
        let rest = front.get(saturating_usize(at + head)..);
        let body = rest.and_then(|rest| rest.get(..saturating_usize(len)));
        let decodes = body.map(|body| {
            let mut reader = Body::new(body).reader(0);
            Message::read(&mut reader, options.dialect).is_ok()
        });
        if len == 0 || decodes == Some(false) {
            return Ok(Likelihood::No);
        }
        decoded += usize::from(decodes.is_some());
        at += head + len;
    }
    Ok(if decoded > 0 {
        let dialect = options.dialect.as_str();
        let reason = format!("the first messages decode in the dialect {dialect}: {decoded}");
        Likelihood::Likely(reason)
    } else {
        Likelihood::No
    })
}
