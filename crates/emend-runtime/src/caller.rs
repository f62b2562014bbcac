//! Who calls: puts the authenticated client into each request's extensions.
//!
//! Authentication is off, so every caller is anonymous. A later layer that verifies certificates or tokens inserts
//! another [`Caller`] in the same place; handlers only ever ask [`caller_of`]. It must know nothing of what callers may do.

use std::task::{Context, Poll};

pub use emend_core::Caller;
use tonic::Request;
use tower::{Layer, Service};

/// The authenticated client that sent `request`; anonymous where no layer said otherwise.
pub fn caller_of<T>(request: &Request<T>) -> Caller {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .unwrap_or_else(Caller::anonymous)
}

/// Names every caller anonymous.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnonymousLayer;

impl<S> Layer<S> for AnonymousLayer {
    type Service = Anonymous<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Anonymous {
            inner,
            caller: Caller::anonymous(),
        }
    }
}

/// See [`AnonymousLayer`].
#[derive(Debug, Clone)]
pub struct Anonymous<S> {
    inner: S,
    caller: Caller,
}

impl<S, B> Service<http::Request<B>> for Anonymous<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<B>) -> Self::Future {
        request.extensions_mut().insert(self.caller.clone());
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_no_layer_saw_is_anonymous() {
        assert_eq!(caller_of(&Request::new(())), Caller::anonymous());
    }

    #[test]
    fn what_a_layer_found_out_is_what_handlers_see() {
        let mut request = Request::new(());
        request.extensions_mut().insert(Caller::system());
        assert_eq!(caller_of(&request), Caller::system());
    }
}
