//! How many bytes of requests a server holds at once. Calls are bounded by number, and a request may have 4 MiB: without a
//! bound of their own, what all of them may have would be more than any process has.
//!
//! What has come of a call's request counts from its 4,097th byte on, until the call is answered. A call that finds no room
//! for more of its request is refused, and all it had is free. No one client gets all of the room ([`room`](crate::room)).
//! It must know nothing of what is sent.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::{Status, body::Body};

use crate::{
    error::Error,
    room::{Holder, Place, Room},
};

/// So many bytes of each request are not counted: most requests have no more, and calls are bounded by number.
const UNCOUNTED: usize = 4 * 1024;
/// Of a request that is a stream no more is held at once than a message: its length, then 4 MiB.
const MESSAGE: usize = 5 + (4 << 20);
/// After which time it may be worth trying again.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Room for the bytes of requests. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Intake(Room);

/// What one call holds. Clones are of the same call.
#[derive(Debug, Clone)]
pub(crate) struct Charge(Arc<Mutex<Held>>);

#[derive(Debug)]
struct Held {
    received: usize,
    /// None once the call is answered.
    place: Option<Place>,
}

impl Intake {
    /// Of so many bytes.
    pub(crate) fn of(bytes: usize) -> Self {
        Self(Room::of(bytes))
    }

    /// A request as its call reads it, and what the call holds of it.
    pub(crate) fn begin(&self, holder: Holder, request: Body) -> (Body, Charge) {
        let charge = Charge(Arc::new(Mutex::new(Held {
            received: 0,
            place: Some(self.0.none_for(holder)),
        })));
        let body = Counted {
            request,
            charge: charge.clone(),
        };
        (Body::new(body), charge)
    }
}

impl Charge {
    /// More came.
    fn receive(&self, bytes: usize) -> Result<(), Error> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = |received: usize| received.min(MESSAGE).saturating_sub(UNCOUNTED);
        let before = held.received;
        held.received = before.saturating_add(bytes);
        let more = counted(held.received) - counted(before);
        if more == 0 || held.place.as_mut().is_none_or(|place| place.widen(more)) {
            return Ok(());
        }
        Err(Error::ResourceExhausted {
            reason: "TOO_MANY_REQUEST_BYTES",
            message: "requests under way hold as many bytes as this replica takes on at once, of all or of one client"
                .to_owned(),
            retry_after: Some(RETRY_AFTER),
        })
    }

    /// The call is answered, or from now on bounds itself what it holds.
    pub(crate) fn end(self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.place = None;
    }
}

/// A request whose bytes are counted as they come.
struct Counted {
    request: Body,
    charge: Charge,
}

impl HttpBody for Counted {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let next = ready!(Pin::new(&mut self.request).poll_frame(cx)).transpose()?;
        if let Some(data) = next.as_ref().and_then(Frame::data_ref) {
            self.charge.receive(data.len())?;
        }
        Poll::Ready(next.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.request.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.request.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use emend_core::Caller;

    use super::*;
    use crate::status::Explained;

    const ROOM: usize = 64 << 20;

    fn caller(name: &str) -> Holder {
        Holder::of(Some(&Caller::parse(name).unwrap()), None)
    }

    /// A call that has sent so many bytes.
    fn call(intake: &Intake, name: &str, bytes: usize) -> Result<Charge, Status> {
        let request = Body::new("x".repeat(bytes));
        let (mut body, charge) = intake.begin(caller(name), request);
        let mut context = Context::from_waker(Waker::noop());
        let mut came = 0;
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            came += frame?.into_data().map_or(0, |data| data.len());
        }
        assert_eq!(came, bytes);
        Ok(charge)
    }

    #[test]
    fn one_client_has_three_quarters_and_is_told_when_to_come_back() {
        let intake = Intake::of(ROOM);
        let held: Vec<_> = (0..12).map(|_| call(&intake, "hog", 4 << 20).unwrap()).collect();
        let refusal = Explained::from(&call(&intake, "hog", 4 << 20).unwrap_err());
        assert_eq!(refusal.reason.as_deref(), Some("TOO_MANY_REQUEST_BYTES"));
        assert!(refusal.retry_after.is_some(), "{refusal}");
        assert!(
            call(&intake, "hog", UNCOUNTED).is_ok(),
            "small requests are not counted"
        );
        assert!(call(&intake, "another", ROOM / 64).is_ok());
        drop(held);
        assert!(call(&intake, "hog", 4 << 20).is_ok());
    }

    #[test]
    fn what_a_call_held_is_free_once_it_is_answered_or_refused() {
        let intake = Intake::of(4 << 20);
        let answered = call(&intake, "a", 3 << 20).unwrap();
        for _ in 0..3 {
            assert!(call(&intake, "b", 3 << 20).is_err());
        }
        let clone = answered.clone();
        answered.end();
        clone.receive(MESSAGE).unwrap();
        assert!(call(&intake, "b", 3 << 20).is_ok());
    }

    #[test]
    fn of_a_stream_of_messages_one_is_counted() {
        let intake = Intake::of(8 << 20);
        let stream = call(&intake, "a", 100 << 20).unwrap();
        assert!(call(&intake, "a", 4 << 20).is_err());
        stream.end();
        assert!(call(&intake, "a", 4 << 20).is_ok());
    }
}
