//! A request's credentials and what they authorize; and how a long call learns that this has changed: a stream is ended
//! ([`Supervision`]), and a handler that writes in parts checks again before each ([`Recheck`]).

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use emend_base::{clock::SharedClock, error::Error};
use emend_core::Caller;
use futures::task::AtomicWaker;
use http::{Extensions, HeaderMap, HeaderValue, Request, header::AUTHORIZATION};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{
    access::Access,
    authenticator::Authenticator,
    directory::{Directory, Identity, certificate_expired, certificate_withdrawn, expired, unknown},
    principal::Reach,
    role::Role,
};
use crate::tls::PeerNames;

/// The credentials of a request.
#[derive(Clone)]
pub struct Credentials {
    header: Option<HeaderValue>,
    names: Option<PeerNames>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("authorization", &self.header.as_ref().map(|_| "…"))
            .field("names", &self.names)
            .finish()
    }
}

impl Credentials {
    /// The credentials of a request.
    pub(super) fn of<T>(request: &Request<T>) -> Self {
        Self::found(request.headers(), request.extensions())
    }

    /// The credentials in a request's headers and, from its client's certificate, in its extensions.
    pub(super) fn found(headers: &HeaderMap, extensions: &Extensions) -> Self {
        let mut authorizations = headers.get_all(AUTHORIZATION).iter();
        let header = match (authorizations.next(), authorizations.next()) {
            (one, None) => one.cloned(),
            // An intermediary may have taken the other one for the caller's, so neither counts.
            (_, Some(_)) => Some(HeaderValue::from_static("")),
        };
        Self {
            header,
            names: extensions.get::<PeerNames>().cloned(),
        }
    }

    /// The caller's identity. A token takes precedence over a certificate, and a certificate does not make up for a bad
    /// token.
    pub(super) fn identify(&self, directory: &Directory) -> Result<Identity, Error> {
        match (&self.header, &self.names) {
            (Some(value), _) => {
                let token = value
                    .to_str()
                    .ok()
                    .and_then(|text| text.split_once(' '))
                    .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
                    .map(|(_, token)| token.trim())
                    .ok_or_else(unknown)?;
                directory.by_token(token)
            }
            (None, Some(peer)) => directory.by_certificate(peer),
            (None, None) => Err(Error::Unauthenticated {
                reason: "CREDENTIALS_MISSING",
                message: "the call needs a bearer token or a client certificate".to_owned(),
            }),
        }
    }

    /// What the caller may do through a method that requires `role`.
    pub(super) fn permit(self, directory: &Directory, role: Role) -> Result<Authorization, Error> {
        let identity = self.identify(directory)?;
        match identity.principal.reach(role) {
            Some(reach) => Ok(Authorization {
                reach: reach.clone(),
                role,
                credentials: self,
                identity,
            }),
            None => Err(Error::PermissionDenied {
                reason: "ROLE_MISSING",
                message: format!("the caller does not have the role {role}"),
            }),
        }
    }
}

/// A caller, and what it may do through one method.
#[derive(Debug, Clone)]
pub struct Authorization {
    credentials: Credentials,
    identity: Identity,
    role: Role,
    reach: Reach,
}

impl Authorization {
    /// The caller.
    pub(super) fn caller(&self) -> &Caller {
        self.identity.principal.caller()
    }

    /// What handlers are given. They can check again through `by`.
    pub(super) fn access(&self, by: &Arc<Authenticator>) -> Access {
        Access::rechecked(
            Arc::clone(&self.identity.principal),
            self.role,
            Recheck {
                authorization: self.clone(),
                by: Arc::clone(by),
            },
        )
    }

    /// What the same caller may do now, by the same credentials. Fails if these have expired or identify someone else
    /// in the new state of the files, or if the caller may no longer call the method.
    pub(super) fn renewed(&self, directory: &Directory) -> Result<Self, Error> {
        let now = self.credentials.clone().permit(directory, self.role)?;
        if now.caller() == self.caller() {
            Ok(now)
        } else {
            Err(changed())
        }
    }
}

/// The caller's rights differ from when the call began.
fn changed() -> Error {
    Error::unavailable(
        "ACCESS_CHANGED",
        "what the caller may do has changed; connect again",
    )
}

/// An authorization, and the authenticator that can check it again.
#[derive(Debug, Clone)]
pub(super) struct Recheck {
    authorization: Authorization,
    by: Arc<Authenticator>,
}

impl Recheck {
    /// What the caller may do now.
    pub(super) fn access(&self) -> Result<Access, Error> {
        Ok(self.by.renew(&self.authorization)?.access(&self.by))
    }

    /// Whether the caller's rights have changed.
    pub(super) fn has_changed(&self) -> bool {
        match self.by.renew(&self.authorization) {
            Ok(now) => now.reach != self.authorization.reach,
            Err(_) => true,
        }
    }
}

/// A stream that ends when its caller's rights change.
struct SupervisedStream {
    authorization: Authorization,
    is_revoked: AtomicBool,
    why: Mutex<Option<Error>>,
    waker: AtomicWaker,
}

impl SupervisedStream {
    /// Ends the stream if its caller's rights differ from when it began.
    fn check(&self, directory: &Directory) {
        let why = match self.authorization.renewed(directory) {
            Err(refused) => refused,
            Ok(now) if now.reach == self.authorization.reach => return,
            Ok(_) => changed(),
        };
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.is_revoked.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// All supervised streams.
#[derive(Default)]
pub(super) struct SupervisedStreams(Mutex<Vec<Weak<SupervisedStream>>>);

impl SupervisedStreams {
    /// Supervises a stream from now on. `newest` is called only after registration, so no change is missed.
    pub(super) fn take(
        &self,
        authorization: Authorization,
        clock: &SharedClock,
        newest: impl FnOnce() -> Arc<Directory>,
    ) -> Supervision {
        let stream = Arc::new(SupervisedStream {
            authorization,
            is_revoked: AtomicBool::new(false),
            why: Mutex::default(),
            waker: AtomicWaker::new(),
        });
        {
            let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Amortised: entries of ended streams are removed only when the list is full.
            if streams.len() == streams.capacity() {
                streams.retain(|stream| stream.strong_count() > 0);
            }
            streams.push(Arc::downgrade(&stream));
        }
        stream.check(&newest());
        Supervision {
            withdrawn: stream_withdrawn(&stream.authorization.credentials),
            stream,
            clock: clock.clone(),
        }
    }

    /// Checks all of them again.
    pub(super) fn check(&self, directory: &Directory) {
        let streams: Vec<_> = {
            let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.iter().filter_map(Weak::upgrade).collect()
        };
        for stream in streams {
            stream.check(directory);
        }
    }
}

/// Tells a stream when it must end.
pub(super) struct Supervision {
    stream: Arc<SupervisedStream>,
    /// Ends when the caller's certificate is no longer accepted; none for a caller that is known by a token.
    withdrawn: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    clock: SharedClock,
}

fn stream_withdrawn(credentials: &Credentials) -> Option<Pin<Box<WaitForCancellationFutureOwned>>> {
    let names = credentials
        .names
        .as_ref()
        .filter(|_| credentials.header.is_none())?;
    Some(Box::pin(names.withdrawn.clone().cancelled_owned()))
}

impl Supervision {
    /// Ready, once, with the reason, when the caller may no longer have the stream.
    pub(super) fn poll_revoked(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        self.stream.waker.register(cx.waker());
        if let Some(withdrawn) = &mut self.withdrawn
            && withdrawn.as_mut().poll(cx).is_ready()
        {
            self.withdrawn = None;
            return Poll::Ready(certificate_withdrawn());
        }
        if !self.stream.is_revoked.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let why = self
            .stream
            .why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Poll::Ready(why.unwrap_or_else(unknown))
    }

    /// What a caller is told whose credentials have expired.
    pub(super) fn expired(&self) -> Error {
        match self.stream.authorization.credentials.header {
            Some(_) => expired(),
            None => certificate_expired(),
        }
    }

    /// How long the credentials remain valid; `None` if they do not expire.
    pub(super) fn left(&self) -> Option<Duration> {
        let end = self.stream.authorization.identity.expires_at?;
        let left = i128::from(end) * 1_000_000_000 - self.clock.now().as_nanosecond();
        Some(u64::try_from(left.max(0)).map_or(Duration::MAX, Duration::from_nanos))
    }
}
