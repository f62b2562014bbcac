//! The bytes that calls hold at once: requests, and answers waiting to be read. Calls are bounded by number, but a
//! message may have 4 MiB: without a byte budget, all calls together could hold more than any process has.
//!
//! A call's bytes count from its 4,097th on. A message counts from when its length is known, which is before it
//! arrives; in a streaming request, until the next message begins. A call that exceeds the budget is refused at once
//! and releases all it held. No single client can take the whole budget ([`fair_semaphore`](crate::fair_semaphore)).
//!
//! A request of a single message is handed on only when it is complete, so nothing is decoded, which takes more memory
//! than the wire form, for a client that never ends its request.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use emend_base::error::Error;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Status, body::Body};

use crate::fair_semaphore::{ClientKey, FairSemaphore, Permit};

/// This many bytes of each call are not counted: most calls have no more, and calls are bounded by number.
const UNCOUNTED: usize = 4 * 1024;
/// The longest message. One that claims to be longer is refused before it is held.
const LONGEST: usize = 4 << 20;
/// The prefix of each message: a compression flag and the length.
const PREFIX: usize = 5;
/// Roughly what a header takes in memory, whatever its size on the wire.
const HEADER: usize = 200;
/// How long refused callers are asked to wait before retrying.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// The byte budget of all calls. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct CallBudget(FairSemaphore);

/// The bytes one call holds. Clones belong to the same call; dropping the last one releases everything.
#[derive(Debug, Clone)]
pub(crate) struct CallBytes(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    place: Permit,
    headers: usize,
    counted: usize,
}

type Data = <Body as HttpBody>::Data;

/// The shape of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One message.
    Message,
    /// Any number of messages.
    Stream,
}

impl CallBudget {
    /// A budget of this many bytes. In its last quarter, a client gets no more than one message or a 64th of all,
    /// whichever is larger.
    pub(crate) fn of(bytes: usize) -> Self {
        Self(FairSemaphore::with_share(bytes, PREFIX + LONGEST))
    }

    /// Starts counting a call that has sent these headers.
    pub(crate) fn begin(&self, client: ClientKey, headers: &HeaderMap) -> Result<CallBytes, Error> {
        let mut held = Held {
            place: self.0.empty_permit(client),
            headers: headers.len() * HEADER,
            counted: 0,
        };
        held.message(0)?;
        Ok(CallBytes(Arc::new(Mutex::new(held))))
    }
}

impl CallBytes {
    /// Wraps the request body that the call reads, counting its bytes.
    pub(crate) fn request(&self, request: Body, kind: Kind) -> Body {
        Body::new(Incoming {
            request,
            kind,
            holding: self.clone(),
            prefix: [0; PREFIX],
            known: 0,
            left: 0,
            last: None,
            ended: false,
        })
    }

    /// The request is done with; the call now holds this many bytes of its answer.
    pub(crate) fn answer(&self, bytes: usize) -> Result<(), Error> {
        let mut held = self.held();
        held.headers = 0;
        held.message(bytes)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// The call now holds a message of this length in place of the previous one.
    fn message(&mut self, bytes: usize) -> Result<(), Error> {
        let counts = (self.headers + bytes).saturating_sub(UNCOUNTED);
        if counts > self.counted {
            if !self.place.try_grow(counts - self.counted) {
                return Err(too_much());
            }
        } else {
            self.place.shrink(self.counted - counts);
        }
        self.counted = counts;
        Ok(())
    }
}

fn too_much() -> Error {
    Error::ResourceExhausted {
        reason: "TOO_MANY_BYTES",
        message: "the calls in progress hold too many bytes on this replica, in total or from this client"
            .to_owned(),
        retry_after: Some(RETRY_AFTER),
    }
}

/// A request body whose messages are counted as they arrive.
struct Incoming {
    request: Body,
    kind: Kind,
    holding: CallBytes,
    /// The prefix of the next message, as far as it has arrived.
    prefix: [u8; PREFIX],
    known: usize,
    /// Bytes of the message still to arrive.
    left: usize,
    /// The last frame of a single message, held back until the request is known to end there.
    last: Option<Frame<Data>>,
    ended: bool,
}

impl Incoming {
    /// Accounts for arriving bytes.
    fn receive(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            if self.left > 0 {
                let came = self.left.min(data.len());
                self.left -= came;
                data = &data[came..];
                continue;
            }
            if self.known == PREFIX {
                self.known = 0;
            }
            let came = (PREFIX - self.known).min(data.len());
            let (begun, rest) = data.split_at(came);
            self.prefix[self.known..self.known + came].copy_from_slice(begun);
            data = rest;
            self.known += came;
            if self.known == PREFIX {
                let [_, length @ ..] = self.prefix;
                self.left = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                self.holding.held().message(PREFIX + self.left.min(LONGEST))?;
            }
        }
        Ok(())
    }

    /// Whether the current message has arrived completely.
    fn is_whole(&self) -> bool {
        self.known == PREFIX && self.left == 0
    }
}

impl HttpBody for Incoming {
    type Data = Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Data>, Status>>> {
        loop {
            if self.ended {
                return Poll::Ready(self.last.take().map(Ok));
            }
            let Some(frame) = ready!(Pin::new(&mut self.request).poll_frame(cx)).transpose()? else {
                self.ended = true;
                continue;
            };
            let Some(data) = frame.data_ref() else {
                // Trailers: nothing follows them, and nobody reads those of requests.
                self.ended = true;
                continue;
            };
            self.receive(data)?;
            let waits = self.kind == Kind::Message && self.is_whole() && !self.request.is_end_stream();
            // A held-back frame goes before what follows it.
            let next = if waits || self.last.is_some() {
                self.last.replace(frame)
            } else {
                Some(frame)
            };
            if let Some(next) = next {
                return Poll::Ready(Some(Ok(next)));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && (self.ended || self.request.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        // The held-back frame belongs to the request too, but the inner body no longer counts it.
        if self.last.is_some() {
            SizeHint::default()
        } else {
            self.request.size_hint()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, task::Waker};

    use emend_core::Caller;

    use super::*;
    use emend_base::status::Explained;

    const MIB: usize = 1 << 20;

    /// A client's pieces, followed by the end or, if `ends` is false, by nothing for now.
    struct Sent {
        pieces: VecDeque<Vec<u8>>,
        ends: bool,
    }

    impl HttpBody for Sent {
        type Data = Data;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Data>, Status>>> {
            match self.pieces.pop_front() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece.into())))),
                None if self.ends => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    /// A message of this length, with its prefix.
    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
        bytes.resize(PREFIX + length, b'x');
        bytes
    }

    fn client(name: &str) -> ClientKey {
        ClientKey::of(Some(&Caller::parse(name).unwrap()), None)
    }

    struct Call {
        holding: CallBytes,
        request: Body,
    }

    impl Call {
        fn begin(holdings: &CallBudget, name: &str, kind: Kind, pieces: Vec<Vec<u8>>, ends: bool) -> Self {
            let holding = holdings.begin(client(name), &HeaderMap::new()).unwrap();
            let pieces = pieces.into();
            let request = holding.request(Body::new(Sent { pieces, ends }), kind);
            Self { holding, request }
        }

        /// What the request yields for now, and whether it has ended.
        fn read(&mut self) -> Result<(Vec<u8>, bool), Box<Explained>> {
            let mut context = Context::from_waker(Waker::noop());
            let mut read = Vec::new();
            loop {
                match Pin::new(&mut self.request).poll_frame(&mut context) {
                    Poll::Pending => return Ok((read, false)),
                    Poll::Ready(None) => return Ok((read, true)),
                    Poll::Ready(Some(Ok(frame))) => read.extend_from_slice(frame.data_ref().unwrap()),
                    Poll::Ready(Some(Err(status))) => return Err(Box::new(Explained::from(&status))),
                }
            }
        }
    }

    /// A call that has sent a message of this length and ended its request.
    fn whole(holdings: &CallBudget, name: &str, length: usize) -> Result<Call, Box<Explained>> {
        let sent = message(length);
        let mut call = Call::begin(holdings, name, Kind::Message, vec![sent.clone()], true);
        assert_eq!(call.read()?, (sent, true));
        Ok(call)
    }

    fn all_of(holdings: &CallBudget, name: &str, length: usize) -> Vec<Call> {
        std::iter::from_fn(|| whole(holdings, name, length).ok()).collect()
    }

    #[test]
    fn one_client_gets_three_quarters_and_is_told_when_to_retry() {
        let holdings = CallBudget::of(64 * MIB);
        let held = all_of(&holdings, "hog", 4 * MIB);
        assert_eq!(held.len(), 12);
        let refusal = whole(&holdings, "hog", 4 * MIB).err().unwrap();
        assert_eq!(refusal.reason.as_deref(), Some("TOO_MANY_BYTES"));
        assert!(refusal.retry_after.is_some(), "{refusal}");
        assert!(
            whole(&holdings, "hog", UNCOUNTED - PREFIX).is_ok(),
            "small ones are not counted"
        );
        // Others each get one of the largest possible.
        let another = all_of(&holdings, "another", 4 * MIB);
        assert_eq!(another.len(), 1);
        assert_eq!(all_of(&holdings, "a third", 4 * MIB).len(), 1);
        drop(held);
        assert!(whole(&holdings, "hog", 4 * MIB).is_ok());
    }

    #[test]
    fn a_message_counts_as_soon_as_its_length_is_known() {
        let holdings = CallBudget::of(4 * MIB);
        let begun = message(3 * MIB)[..=PREFIX].to_vec();
        let mut first = Call::begin(&holdings, "a", Kind::Message, vec![begun], false);
        first.read().unwrap();
        assert!(whole(&holdings, "b", 2 * MIB).is_err());
        drop(first);
        assert!(whole(&holdings, "b", 2 * MIB).is_ok());
    }

    #[test]
    fn a_request_of_one_message_is_handed_on_when_its_end_is_known() {
        let holdings = CallBudget::of(64 * MIB);
        let sent = message(100);
        let pieces = |at: usize| vec![sent[..at].to_vec(), sent[at..].to_vec()];
        for at in [1, 3, PREFIX, 50, 104] {
            let mut call = Call::begin(&holdings, "a", Kind::Message, pieces(at), false);
            assert_eq!(call.read().unwrap(), (sent[..at].to_vec(), false), "{at}");
            assert!(!call.request.is_end_stream());
            let mut call = Call::begin(&holdings, "a", Kind::Message, pieces(at), true);
            assert_eq!(call.read().unwrap(), (sent.clone(), true), "{at}");
            let mut stream = Call::begin(&holdings, "a", Kind::Stream, pieces(at), false);
            assert_eq!(stream.read().unwrap(), (sent.clone(), false), "{at}");
        }
        let mut empty = Call::begin(&holdings, "a", Kind::Message, vec![message(0)], false);
        assert_eq!(empty.read().unwrap(), (Vec::new(), false));
        let more = [message(100), message(7)[..6].to_vec()];
        let mut torn = Call::begin(&holdings, "a", Kind::Message, more.to_vec(), true);
        assert_eq!(torn.read().unwrap(), (more.concat(), true), "in its order");
        let mut two = Call::begin(&holdings, "a", Kind::Message, vec![message(1), message(2)], true);
        assert_eq!(two.read().unwrap(), ([message(1), message(2)].concat(), true));
    }

    #[test]
    fn only_the_current_message_of_a_stream_counts() {
        let holdings = CallBudget::of(8 * MIB);
        let pieces = vec![message(3 * MIB), message(3 * MIB), message(3 * MIB), message(10)];
        let mut stream = Call::begin(&holdings, "a", Kind::Stream, pieces, false);
        stream.read().unwrap();
        assert!(whole(&holdings, "a", 4 * MIB).is_ok(), "the last one is short");
    }

    #[test]
    fn a_response_counts_instead_of_its_request_until_it_is_dropped() {
        let holdings = CallBudget::of(4 * MIB);
        let call = whole(&holdings, "a", 3 * MIB).unwrap();
        call.holding.answer(2 * MIB).unwrap();
        let other = whole(&holdings, "b", MIB).unwrap();
        assert!(other.holding.answer(3 * MIB).is_err());
        drop(call);
        assert!(other.holding.answer(3 * MIB).is_ok());
    }

    #[test]
    fn headers_count_by_their_size_in_memory() {
        let holdings = CallBudget::of(MIB);
        let headers: HeaderMap = (0..400)
            .map(|n| {
                let name = format!("x-{n}").parse::<http::HeaderName>().unwrap();
                (name, "1".parse().unwrap())
            })
            .collect();
        let held: Vec<_> = std::iter::from_fn(|| holdings.begin(client("a"), &headers).ok()).collect();
        assert!((5..=20).contains(&held.len()), "{}", held.len());
    }
}
