//! The authenticated client, as [`AuthLayer`](crate::auth::AuthLayer) puts it into each request's extensions.

pub use emend_core::Caller;
use tonic::Request;

/// The authenticated client that sent `request`; anonymous if no layer set one.
pub fn caller_of<T>(request: &Request<T>) -> Caller {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .unwrap_or_else(Caller::anonymous)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_bypassed_the_layer_is_anonymous() {
        assert_eq!(caller_of(&Request::new(())), Caller::anonymous());
    }

    #[test]
    fn handlers_see_the_caller_that_the_layer_identified() {
        let mut request = Request::new(());
        request.extensions_mut().insert(Caller::system());
        assert_eq!(caller_of(&request), Caller::system());
    }
}
