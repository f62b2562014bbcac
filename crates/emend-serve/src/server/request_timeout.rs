//! A request body with a time limit, which says so if its sender went away. A client that starts a call and never sends the rest would hold the call and its
//! permit for ever and, while the service stops, its connection until the hard deadline.

use std::{
    error::Error as StdError,
    future::{Future, pending},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use emend_base::error::Error;
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// How long a client may be silent in the middle of a request while the service stops.
const PATIENCE: Duration = Duration::from_secs(1);

/// Fails with UNAVAILABLE once the service stops and nothing has arrived for [`PATIENCE`], with ABORTED if it is not
/// complete in time, and with CANCELLED if its sender reset the call or its connection ended.
pub(crate) struct TimedBody<B> {
    body: B,
    soft: CancellationToken,
    /// The time limit for the whole body; none if the request is a stream.
    time: Option<Duration>,
    /// The deadline, set at the first wait: most requests are complete when first polled.
    due: Option<Instant>,
    /// Set while waiting for more.
    waiting: Option<Pin<Box<dyn Future<Output = Error> + Send>>>,
}

impl<B> TimedBody<B> {
    /// A body that must be complete within `time`, if that is given.
    pub(crate) fn new(body: B, soft: CancellationToken, time: Option<Duration>) -> Self {
        Self {
            body,
            soft,
            time,
            due: None,
            waiting: None,
        }
    }
}

/// Of HTTP/2 nothing else ends a body too early. Left to itself, a connection that broke would count as a fault.
fn given_up_by_sender(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Box<dyn StdError + Send + Sync> {
    let error = error.into();
    tracing::debug!(%error, "a request ended before it was complete");
    Status::from(Error::Cancelled).into()
}

/// Waits until the body is to be abandoned and returns why.
async fn given_up(soft: CancellationToken, due: Option<Instant>) -> Error {
    let stopping = async {
        soft.cancelled().await;
        sleep(PATIENCE).await;
    };
    let late = async {
        match due {
            Some(due) => sleep_until(due).await,
            None => pending().await,
        }
    };
    tokio::select! {
        () = stopping => Error::unavailable("STOPPING", "the service is stopping and the request is incomplete"),
        () = late => Error::Aborted {
            reason: "REQUEST_STALLED",
            message: "the request did not arrive in time and was not started; send it again".to_owned(),
        },
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body + Unpin,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn StdError + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Self {
            body,
            soft,
            time,
            due,
            waiting,
        } = &mut *self;
        if let Poll::Ready(next) = Pin::new(body).poll_frame(cx) {
            *waiting = None;
            return Poll::Ready(next.map(|frame| frame.map_err(given_up_by_sender)));
        }
        if due.is_none() {
            *due = time.map(|time| Instant::now() + time);
        }
        let waiting = waiting.get_or_insert_with(|| Box::pin(given_up(soft.clone(), *due)));
        let error = ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Some(Err(Status::from(error).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible, future::poll_fn};

    use tokio::{sync::mpsc, time::Instant};
    use tonic::Code;

    use super::*;

    /// The items sent through a channel, as a body.
    struct Sent(mpsc::UnboundedReceiver<&'static [u8]>);

    impl Body for Sent {
        type Data = VecDeque<u8>;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
            let next = ready!(self.0.poll_recv(cx));
            Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes.iter().copied().collect()))))
        }
    }

    async fn next(body: &mut TimedBody<Sent>) -> Option<Result<usize, Code>> {
        let next = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        Some(match next {
            Ok(frame) => Ok(frame.data_ref().unwrap().len()),
            Err(error) => Err(error.downcast_ref::<Status>().unwrap().code()),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn an_incomplete_request_ends_soon_after_the_service_stops() {
        let (_sender, sent) = mpsc::unbounded_channel();
        let soft = CancellationToken::new();
        let mut body = TimedBody::new(Sent(sent), soft.clone(), None);
        let stopping = async {
            sleep(Duration::from_hours(1)).await;
            soft.cancel();
            Instant::now()
        };
        let (ended, stopped) = tokio::join!(next(&mut body), stopping);
        assert_eq!(ended, Some(Err(Code::Unavailable)));
        assert_eq!(stopped.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_makes_progress_is_read_to_its_end() {
        let (sender, sent) = mpsc::unbounded_channel();
        let soft = CancellationToken::new();
        soft.cancel();
        let mut body = TimedBody::new(Sent(sent), soft, None);
        tokio::spawn(async move {
            for _ in 0..5 {
                sleep(PATIENCE.mul_f64(0.9)).await;
                sender.send(b"more").unwrap();
            }
        });
        for _ in 0..5 {
            assert_eq!(next(&mut body).await, Some(Ok(4)));
        }
        assert_eq!(next(&mut body).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_arrives_too_slowly_is_abandoned() {
        let time = Duration::from_secs(30);
        let (sender, sent) = mpsc::unbounded_channel();
        let mut body = TimedBody::new(Sent(sent), CancellationToken::new(), Some(time));
        let started = Instant::now();
        tokio::spawn(async move {
            while sender.send(b"a").is_ok() {
                sleep(Duration::from_secs(7)).await;
            }
        });
        let mut came = Vec::new();
        let ended = loop {
            match next(&mut body).await.expect("it never ends by itself") {
                Ok(bytes) => came.push(bytes),
                Err(code) => break code,
            }
        };
        assert_eq!((came.len(), ended), (5, Code::Aborted));
        assert_eq!(started.elapsed(), time);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_a_stream_may_be_silent() {
        let (sender, sent) = mpsc::unbounded_channel();
        let mut body = TimedBody::new(Sent(sent), CancellationToken::new(), None);
        tokio::spawn(async move {
            sleep(Duration::from_hours(1)).await;
            sender.send(b"more").unwrap();
        });
        assert_eq!(next(&mut body).await, Some(Ok(4)));
    }
}
