//! Detects an oplog. There is no magic, so the only evidence is that lengths fit and messages decode.

use super::layout::compact::{Body, MAX_UINT_BYTES};
use super::message::{Frame, Message};
use super::pieces::Pieces;
use crate::engine::Likelihood;
use crate::error::Result;
use crate::saturating::saturating_usize;
use crate::source::{Source, Window};
use crate::walk::Options;

/// How many messages are read.
const MESSAGES: usize = 16;
/// Messages that end after this offset are not decoded.
const DECODED_BYTES: usize = 256 << 10;

/// Likely if the first messages, at least one, lie within the file and decode in the dialect of the options.
pub(super) fn detect(source: &dyn Source, options: &Options) -> Result<Likelihood> {
    let (mut first, mut hops) = (Window::default(), Window::default());
    let front = saturating_usize(source.len()).min(DECODED_BYTES);
    let front = first.exact(source, 0, front, front)?;
    let (mut at, mut decoded) = (0, 0);
    for _ in 0..MESSAGES {
        let left = source.len() - at;
        if left == 0 {
            break;
        }
        let mut pieces = Pieces {
            source,
            options,
            window: &mut hops,
            start: at,
        };
        let head = saturating_usize(left).min(MAX_UINT_BYTES);
        let Frame::Whole { head, len } = Frame::parse(pieces.load(0, head)?, left) else {
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
