//! The body of a request, up to a bound; of a longer one its id is found all the same. What nobody reads of it is passed over.

use axum::body::{Body, Bytes, HttpBody as _};
use emend_serve::plain_http::PATIENCE;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::time::timeout;

use crate::unread::UnreadId;

/// The longest message that is read, in bytes.
pub(super) const LONGEST: usize = 4 * 1024 * 1024;
/// Up to which length a body is read only for its id, in bytes.
const LONGEST_FOR_ID: usize = 16 * LONGEST;

/// Why a body was not read.
#[derive(Debug)]
pub(super) enum Unread {
    /// It is too long; the id of its message, null if that was not found.
    TooLong(Value),
    /// Its sender stopped sending.
    Broken,
    /// Its sender took too long.
    Late,
}

pub(super) async fn read(body: &mut Body) -> Result<Vec<u8>, Unread> {
    timeout(PATIENCE, read_all(body))
        .await
        .unwrap_or(Err(Unread::Late))
}

/// Passes over what is left of a body: its connection can carry the next request only once it has ended. Returns whether it has. It
/// has not if more than the longest message is left, or if its sender takes too long.
pub(super) async fn passed_over(body: &mut Body) -> bool {
    timeout(PATIENCE, ends(body)).await.unwrap_or(false)
}

async fn ends(body: &mut Body) -> bool {
    let mut left = LONGEST;
    while !body.is_end_stream() {
        match body.frame().await {
            None => return true,
            Some(Err(_)) => return false,
            Some(Ok(frame)) => match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                Some(rest) => left = rest,
                None => return false,
            },
        }
    }
    true
}

async fn read_all(body: &mut Body) -> Result<Vec<u8>, Unread> {
    let mut text = Vec::new();
    // Of a body that is too long: its id, and how much of it was read.
    let mut rest: Option<(UnreadId, usize)> = None;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| Unread::Broken)?.into_data() else {
            continue;
        };
        match &mut rest {
            None if text.len() + piece.len() <= LONGEST => text.extend_from_slice(&piece),
            None => {
                let mut id = UnreadId::default();
                id.read(&text);
                id.read(&piece);
                rest = Some((id, text.len() + piece.len()));
                text = Vec::new();
            }
            Some((id, read)) => {
                id.read(&piece);
                *read += piece.len();
                if *read > LONGEST_FOR_ID {
                    break;
                }
            }
        }
    }
    match rest {
        None => Ok(text),
        Some((id, _)) => Err(Unread::TooLong(id.found())),
    }
}
