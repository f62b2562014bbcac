//! Queries and sessions that were erased, by which what is recorded of them later is known.

use std::time::Duration;

use emend_core::Namespace;
use uuid::Uuid;

use crate::records::settings::MAX_QUERY_RETENTION;

/// How long it is known what was erased: as long as a query may be kept. What is recorded later than that is stored as it is.
pub const KNOWN: Duration = MAX_QUERY_RETENTION;

/// How long after its erasure a search may seem to be that is part of an erased session: clocks differ, and a query may have
/// waited to be recorded. What is searched later in that session is not erased.
pub const LATE: Duration = Duration::from_mins(5);

/// The UUID namespace of erased queries (RFC 9562, version 5).
const ERASED: Uuid = Uuid::from_u128(0x1b7e_40c2_5d0f_4f0a_9a35_c3b8_62d4_e971);

/// Stands for an erased query or session: nothing tells which it is, but whoever knows its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pseudonym(pub Uuid);

impl Pseudonym {
    /// That of a query.
    pub fn of_query(namespace: &Namespace, id: &str) -> Self {
        Self::of('q', namespace, id)
    }

    /// That of a session; none of no session.
    pub fn of_session(namespace: &Namespace, id: &str) -> Option<Self> {
        (!id.is_empty()).then(|| Self::of('s', namespace, id))
    }

    fn of(kind: char, namespace: &Namespace, id: &str) -> Self {
        // Only the last part may hold a slash.
        Self(Uuid::new_v5(
            &ERASED,
            format!("{kind}/{namespace}/{id}").as_bytes(),
        ))
    }
}
