//! A connection to one service. Of a call that the service did not answer itself it says why, and whether what was asked may be
//! done all the same.

use std::{
    error::Error,
    sync::Arc,
    task::{Context, Poll},
};

use emend_base::{
    status::{Explained, NO_ANSWER, NO_ANSWER_TO_CHANGE},
    tls::{Remote, TrustError},
};
use tonic::{
    Code, ConnectError, Status,
    body::Body,
    codegen::{
        BoxFuture, Service,
        http::{Request, Response},
    },
    transport::Channel,
};

use crate::failure::Failure;

/// How the names of methods begin that change nothing.
const READS: [&str; 9] = [
    "Get",
    "List",
    "Export",
    "Preview",
    "Rank",
    "Render",
    "Resolve",
    "Search",
    "Subscribe",
];

/// A service, as it is named in errors.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) service: &'static str,
    pub(super) address: String,
    /// The flag that says where it is.
    pub(super) flag: &'static str,
    pub(super) remote: Remote,
}

/// No connection to a service: nothing was sent to it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("can't reach {} at {}: {reason}", peer.service, peer.address)]
pub(crate) struct Unreached {
    peer: Arc<Peer>,
    /// The network's error, without what wraps it, or why one side does not trust the other.
    reason: String,
    is_untrusted: bool,
}

/// See the module.
#[derive(Debug, Clone)]
pub struct Connection {
    channel: Channel,
    peer: Arc<Peer>,
}

impl Connection {
    pub(super) fn new(channel: Channel, peer: Arc<Peer>) -> Self {
        Self { channel, peer }
    }
}

impl Unreached {
    pub(super) fn of(peer: &Arc<Peer>, error: &(dyn Error + 'static)) -> Self {
        let untrusted = TrustError::within(error);
        Self {
            peer: Arc::clone(peer),
            reason: untrusted.map_or_else(|| innermost(error), ToString::to_string),
            is_untrusted: untrusted.is_some(),
        }
    }

    /// Whether a call failed because there was no connection.
    fn within(status: &Status) -> Option<&Self> {
        status.source()?.downcast_ref()
    }

    /// The failure of a call that failed because there was no connection.
    pub(crate) fn failure(status: &Status) -> Option<Failure> {
        Self::within(status).cloned().map(Failure::from)
    }
}

impl From<Unreached> for Failure {
    fn from(unreached: Unreached) -> Self {
        let Unreached {
            peer,
            reason,
            is_untrusted,
        } = unreached;
        let (service, address, flag) = (peer.service, peer.address.clone(), peer.flag);
        if is_untrusted {
            return Self::Untrusted {
                service,
                address,
                reason,
            };
        }
        Self::Unreachable {
            service,
            address,
            flag,
            reason,
        }
    }
}

/// The network's own error, without what wraps it.
fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Whether an error is that no connection could be made.
fn is_of_connecting(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

impl Peer {
    /// The status of a call that failed, which the service may have answered itself or not.
    fn explained(self: &Arc<Self>, method: &str, status: Status) -> Status {
        if let (Some(_), Some(protocol)) = (status.source(), self.remote.other_protocol()) {
            return Status::unavailable(format!("at {}: {protocol}", self.address));
        }
        if is_of_connecting(&status) {
            let unreached = Unreached::of(self, &status);
            let mut status = Status::unavailable(unreached.to_string());
            status.set_source(Arc::new(unreached));
            return status;
        }
        let explained = Explained::from(&status);
        match explained.code {
            Code::DeadlineExceeded => Status::deadline_exceeded(unanswered(method)),
            Code::Unimplemented => {
                let Self {
                    service,
                    address,
                    flag,
                    ..
                } = &**self;
                Status::unimplemented(format!(
                    "what answers at {address} does not know {method}: is that the address of {service}? If it is, it is older \
                     than this emend; if not, pass --{flag}"
                ))
            }
            _ => status,
        }
    }
}

/// Said of a call that was not answered in time.
fn unanswered(method: &str) -> &'static str {
    if READS.iter().any(|read| method.starts_with(read)) {
        NO_ANSWER
    } else {
        NO_ANSWER_TO_CHANGE
    }
}

impl Service<Request<Body>> for Connection {
    type Response = Response<Body>;
    type Error = Status;
    type Future = BoxFuture<Response<Body>, Status>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let ready = self.channel.poll_ready(cx);
        ready.map_err(|error| {
            self.peer
                .explained("the call", Status::from_error(Box::new(error)))
        })
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let method = request
            .uri()
            .path()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let peer = Arc::clone(&self.peer);
        let answer = self.channel.call(request);
        Box::pin(async move {
            let response = match answer.await {
                Ok(response) => response,
                Err(error) => return Err(peer.explained(&method, Status::from_error(Box::new(error)))),
            };
            let refused = Status::from_header_map(response.headers());
            let unclear = refused
                .filter(|status| matches!(status.code(), Code::DeadlineExceeded | Code::Unimplemented));
            match unclear {
                Some(status) => Err(peer.explained(&method, status)),
                None => Ok(response),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tonic::TimeoutExpired;

    use super::*;

    fn explained(method: &str, status: Status) -> String {
        emend_base::status::explain(&peer().explained(method, status))
    }

    fn peer() -> Arc<Peer> {
        Arc::new(Peer {
            service: "learning-svc",
            address: "127.0.0.1:7401".into(),
            flag: "learning-addr",
            remote: Remote::new("http://127.0.0.1:7401").unwrap(),
        })
    }

    #[test]
    fn a_connection_that_was_lost_and_is_refused_is_told_like_one_that_never_was() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let lost = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        let told = peer().explained("SubmitFeedback", lost);
        assert_eq!(told.code(), Code::Unavailable);
        let failure = Failure::from(told);
        assert!(
            matches!(&failure, Failure::Unreachable { service: "learning-svc", flag: "learning-addr", reason, .. }
                if reason == "connection refused"),
            "{failure:?}"
        );
        let broken = Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::BrokenPipe)));
        let told = Failure::from(peer().explained("SubmitFeedback", broken));
        assert!(matches!(told, Failure::Refused(_)), "{told:?}");
    }

    #[test]
    fn a_time_limit_says_whether_something_may_have_changed() {
        let expired = || Status::from_error(Box::new(TimeoutExpired(())));
        let read = explained("ListCandidates", expired());
        assert_eq!(read, "DEADLINE_EXCEEDED: no answer within the time limit");
        for late in [expired(), Status::deadline_exceeded("the deadline has passed")] {
            let written = explained("PutResource", late);
            assert!(
                written.starts_with("DEADLINE_EXCEEDED: no answer") && written.contains("may be changed"),
                "{written}"
            );
        }
    }

    #[test]
    fn what_does_not_know_a_method_may_be_another_service() {
        let unknown = explained("ListNodes", Status::unimplemented(""));
        assert!(
            unknown.contains("127.0.0.1:7401 does not know ListNodes") && unknown.contains("--learning-addr"),
            "{unknown}"
        );
    }
}
