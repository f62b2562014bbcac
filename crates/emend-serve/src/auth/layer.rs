//! Identifies callers and refuses those who may not call the method; what later layers and handlers need travels in the
//! request's extensions ([`Access`], [`Caller`]).
//!
//! Health checks and reflection are let through. [`GateLayer`], further in, answers refusals and ends streams, so both
//! are counted and logged like everything else. A stream that has begun is supervised: it ends when its caller's token
//! or certificate expires, or when a change of the files changes its caller's rights.

#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    future::{Ready, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use emend_base::error::Error;
use emend_core::Caller;
use futures::future::{BoxFuture, Either};
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::{Status, body::Body};
use tower::{Layer, Service};

use super::{
    access::Access,
    authenticator::Authenticator,
    authorization::{Authorization, Credentials},
    rules::{Rule, Rules},
};
use crate::{methods::Methods, refused::Refused};

/// The prefix of the paths that every server answers: health checks and reflection.
const ALWAYS: &str = "/grpc.";
/// What everybody who is known may call, whatever the roles.
const GET_ACCESS: &str = "/emend.access.v1.AccessService/GetAccess";
/// The longest timer that is set; credentials that live longer are checked again then.
const LONGEST: Duration = Duration::from_hours(24);

/// Puts the caller, and what it may do, into every request.
#[derive(Debug, Clone)]
pub struct AuthLayer {
    /// `None`: authentication is off.
    authentication: Option<(Arc<Authenticator>, Rules)>,
    methods: Methods,
}

impl AuthLayer {
    /// With an authenticator and the rows for the methods; without, everyone may do everything.
    pub(crate) fn new(authentication: Option<(Arc<Authenticator>, Rules)>, methods: Methods) -> Self {
        Self {
            authentication,
            methods,
        }
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = Authenticated<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Authenticated {
            inner,
            by: self.clone(),
            anonymous: Caller::anonymous(),
        }
    }
}

/// See [`AuthLayer`].
#[derive(Debug, Clone)]
pub struct Authenticated<S> {
    inner: S,
    by: AuthLayer,
    anonymous: Caller,
}

type Answer = Result<Response<Body>, Infallible>;

impl<S> Service<Request<Body>> for Authenticated<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // Refused for what it is: nobody asks whose it is.
        if request.extensions().get::<Refused>().is_some() {
            return self.inner.call(request);
        }
        let Some((authenticator, rules)) = &self.by.authentication else {
            request.extensions_mut().insert(self.anonymous.clone());
            request.extensions_mut().insert(Access::open());
            return self.inner.call(request);
        };
        let path = request.uri().path();
        if path.starts_with(ALWAYS) {
            return self.inner.call(request);
        }
        let credentials = Credentials::of(&request);
        if path == GET_ACCESS {
            match authenticator.identify(&credentials) {
                Ok(identity) => {
                    request
                        .extensions_mut()
                        .insert(identity.principal.caller().clone());
                    request.extensions_mut().insert(identity.principal);
                }
                Err(error) => drop(request.extensions_mut().insert(Refused::from(error))),
            }
            return self.inner.call(request);
        }
        let rule = rules.get(path);
        let method = path.rsplit('/').next().unwrap_or_default();
        let authorization = match permit(authenticator, credentials, rule, method) {
            Ok(authorization) => authorization,
            Err(error) => {
                // For the log: who is known may still not do this.
                if let Ok(identity) = authenticator.identify(&Credentials::of(&request)) {
                    let caller = identity.principal.caller().clone();
                    request.extensions_mut().insert(caller);
                }
                request.extensions_mut().insert(Refused::from(error));
                return self.inner.call(request);
            }
        };
        let is_stream = self.by.methods.at(path).response_is_stream;
        let extensions = request.extensions_mut();
        extensions.insert(authorization.caller().clone());
        extensions.insert(authorization.access(authenticator));
        if is_stream {
            extensions.insert(SupervisionRequest {
                authorization,
                by: Arc::clone(authenticator),
            });
        }
        self.inner.call(request)
    }
}

/// What the caller may do through the method.
fn permit(
    authenticator: &Authenticator,
    credentials: Credentials,
    rule: Option<&Rule>,
    method: &str,
) -> Result<Authorization, Error> {
    let Some(rule) = rule else {
        // Not passed on: a method missing from the table is open to nobody.
        authenticator.identify(&credentials)?;
        return Err(Error::Unimplemented("the method"));
    };
    let needed = rule.role;
    authenticator
        .permit(credentials, needed)
        .map_err(|refused| match refused {
            Error::PermissionDenied { reason, .. } => Error::PermissionDenied {
                reason,
                message: format!("{method} needs the role {needed}, which the caller does not have"),
            },
            other => other,
        })
}

/// A stream that must end when its caller's rights do.
#[derive(Debug, Clone)]
struct SupervisionRequest {
    authorization: Authorization,
    by: Arc<Authenticator>,
}

/// Answers what was [`Refused`], by [`AuthLayer`] or before it, and supervises the streams that it let through.
#[derive(Debug, Clone, Copy, Default)]
pub struct GateLayer;

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Gate(inner)
    }
}

/// See [`GateLayer`].
#[derive(Debug, Clone)]
pub struct Gate<S>(S);

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Either<S::Future, Ready<Answer>>, BoxFuture<'static, Answer>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(refused) = request.extensions().get::<Refused>() {
            return Either::Left(Either::Right(ready(Ok(refused.response()))));
        }
        let Some(SupervisionRequest { authorization, by }) = request.extensions_mut().remove() else {
            return Either::Left(Either::Left(self.0.call(request)));
        };
        let supervised = by.supervise(authorization);
        let response = self.0.call(request);
        Either::Right(Box::pin(async move {
            let response = response.await?;
            Ok(response.map(|inner| {
                Body::new(Supervised {
                    timer: supervised.left().map(|left| Box::pin(sleep(left.min(LONGEST)))),
                    inner: Some(inner),
                    authorization: supervised,
                })
            }))
        }))
    }
}

/// A stream that ends when its caller may no longer have it.
struct Supervised {
    inner: Option<Body>,
    authorization: super::authorization::Supervision,
    /// Set if the credentials expire.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Supervised {
    /// Ready with the reason when the stream must end.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        if let Poll::Ready(why) = self.authorization.poll_revoked(cx) {
            return Poll::Ready(why);
        }
        while let Some(timer) = &mut self.timer {
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            match self.authorization.left() {
                Some(left) if !left.is_zero() => *timer = Box::pin(sleep(left.min(LONGEST))),
                Some(_) => return Poll::Ready(self.authorization.expired()),
                None => self.timer = None,
            }
        }
        Poll::Pending
    }
}

impl HttpBody for Supervised {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let this = &mut *self;
        if this.inner.is_none() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(why) = this.poll_ended(cx) {
            this.inner = None;
            let mut trailers = HeaderMap::new();
            let added = Status::from(why).add_header(&mut trailers);
            return Poll::Ready(Some(added.map(|()| Frame::trailers(trailers))));
        }
        match &mut this.inner {
            Some(inner) => Pin::new(inner).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}
