//! Who asks, and what they may be answered.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use emend_serve::auth::{Access, Addresses, Namespaces, Role};
use http::request::Parts;

use crate::{answer::Refused, routes::Shared};

/// Reading what was learned needs this role.
const ROLE: Role = Role::Subscriber;

/// What the caller of a request may do: everything where callers are not authenticated.
#[derive(Debug)]
pub(crate) struct Caller(Access);

/// What is asked of one namespace.
struct Asked<'a> {
    namespace: &'a str,
    is_for_a_user: bool,
}

struct Messages;

impl Addresses<Asked<'_>> for Messages {
    fn named<'m>(asked: &'m Asked<'_>) -> Namespaces<'m> {
        Namespaces::One(asked.namespace)
    }

    fn for_a_user<'m>(asked: &'m Asked<'_>) -> Option<&'m str> {
        asked.is_for_a_user.then_some(asked.namespace)
    }
}

impl Caller {
    /// A caller that may do this.
    pub(crate) fn with(access: Access) -> Self {
        Self(access)
    }

    /// Refuses a namespace that the caller may not read, and users for whom it may not act.
    pub(crate) fn may_ask(&self, namespace: &str, is_for_a_user: bool) -> Result<(), emend_base::Error> {
        self.0.admit::<Messages, _>(&Asked {
            namespace,
            is_for_a_user,
        })
    }
}

impl FromRequestParts<Arc<Shared>> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refused> {
        let access = match &shared.authenticator {
            Some(known) => known.access(&parts.headers, &parts.extensions, ROLE)?,
            None => Access::open(),
        };
        Ok(Self(access))
    }
}
