//! Who calls, and how the call is traced.

use emend_core::{Caller, Namespace};
use emend_serve::{
    auth::{Access, Role},
    caller::caller_of,
    fair_semaphore::ClientKey,
    server::trace_context::traceparent_of,
};
use tonic::Request;

/// Who calls, and how the call is traced.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The authenticated client.
    pub(crate) caller: Caller,
    /// What the caller may do.
    pub(crate) access: Access,
    /// The client that its permits are counted for.
    pub(crate) client: ClientKey,
    /// W3C trace context; may be empty.
    pub(crate) traceparent: String,
}

impl Origin {
    /// That of a request.
    pub(crate) fn of<T>(request: &Request<T>) -> Self {
        Self {
            access: Access::of(request),
            caller: caller_of(request),
            client: ClientKey::of_request(request),
            traceparent: traceparent_of(request)
                .map(|traceparent| traceparent.to_string())
                .unwrap_or_default(),
        }
    }

    /// The names of the caller's roles in a namespace.
    pub(crate) fn roles(&self, namespace: &Namespace) -> Vec<String> {
        let held = Role::ALL
            .into_iter()
            .filter(|role| self.access.holds(*role, namespace));
        held.map(|role| role.name().to_owned()).collect()
    }
}
