//! Which replicas may still hold leases. One that is killed leaves them behind, and others need not wait for them to
//! expire.

use std::collections::BTreeSet;

use emend_store::{PostgresUrl, postgres::Presence};

use crate::{outbox::entry::LeaseHolder, store::StoreError};

/// Releases the leases of everybody but some holders, whose ids are the parameter; skips what somebody is settling.
pub(crate) const RELEASE_OTHERS: &str = "
WITH abandoned AS MATERIALIZED (
    SELECT event_id FROM outbox
    WHERE state = 1 AND lease_token IS NOT NULL AND substring(lease_token FROM 1 FOR 4) <> ALL($1)
    FOR UPDATE SKIP LOCKED
)
UPDATE outbox AS o SET lease_token = NULL, due_at = (SELECT now FROM database_clock)
FROM abandoned WHERE o.event_id = abandoned.event_id";

/// The class of advisory locks by which the replicas of feedback-svc know each other.
const CLASS: u32 = u32::from_be_bytes(*b"emFB");

/// The replicas that share an outbox on PostgreSQL, seen from one of them.
#[derive(Debug)]
pub(crate) struct Replicas {
    presence: Presence,
    seen: Seen,
}

impl Replicas {
    /// Seen from the replica that leases as `holder`.
    pub(crate) fn new(url: PostgresUrl, LeaseHolder(holder): LeaseHolder) -> Self {
        Self {
            presence: Presence::new(url, CLASS, holder),
            seen: Seen::default(),
        }
    }

    /// If somebody who may hold leases is gone: all who are not.
    pub(crate) async fn look(&mut self) -> Result<Option<BTreeSet<LeaseHolder>>, StoreError> {
        let members = self.presence.members().await?;
        Ok(self.seen.look(members.into_iter().map(LeaseHolder).collect()))
    }

    /// Forgets what was seen, so that everybody who is gone counts as newly gone: it is not sure that their leases were
    /// released.
    pub(crate) fn start_over(&mut self) {
        self.seen = Seen::default();
    }
}

/// Who was there the last times. Somebody counts as gone who was missing twice in a row: a replica whose connection was
/// lost comes back by then, and what it is sending is not sent again by others.
#[derive(Debug, Default)]
struct Seen {
    last: Option<BTreeSet<LeaseHolder>>,
    /// Who was not gone at the last look; `None` before there were two.
    living: Option<BTreeSet<LeaseHolder>>,
}

impl Seen {
    /// Takes note of who is present. Returns all who are not gone if anybody may newly be gone: always at the second
    /// look, as it is not known who was there before.
    fn look(&mut self, present: BTreeSet<LeaseHolder>) -> Option<BTreeSet<LeaseHolder>> {
        let living = self.last.as_ref().map(|last| last | &present);
        self.last = Some(present);
        let living = living?;
        let before = self.living.replace(living.clone());
        before
            .is_none_or(|before| !before.is_subset(&living))
            .then_some(living)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holders(ids: &[u32]) -> BTreeSet<LeaseHolder> {
        ids.iter().copied().map(LeaseHolder).collect()
    }

    fn look(seen: &mut Seen, present: &[u32]) -> Option<BTreeSet<LeaseHolder>> {
        seen.look(holders(present))
    }

    #[test]
    fn the_second_look_finds_whoever_was_there_before() {
        let mut seen = Seen::default();
        assert_eq!(look(&mut seen, &[1]), None);
        assert_eq!(look(&mut seen, &[1, 2]), Some(holders(&[1, 2])));
        assert_eq!(look(&mut seen, &[1, 2]), None);
    }

    #[test]
    fn a_replica_is_gone_when_it_was_missing_twice() {
        let mut seen = Seen::default();
        for _ in 0..3 {
            look(&mut seen, &[1, 2, 3]);
        }
        assert_eq!(look(&mut seen, &[1, 3]), None);
        assert_eq!(look(&mut seen, &[1]), Some(holders(&[1, 3])), "2 is");
        assert_eq!(look(&mut seen, &[1]), Some(holders(&[1])), "so is 3");
        assert_eq!(look(&mut seen, &[1]), None, "nobody else");
    }

    #[test]
    fn a_replica_whose_connection_was_lost_for_a_moment_is_not_gone() {
        let mut seen = Seen::default();
        for present in [&[1, 2][..], &[1, 2], &[1, 2]] {
            look(&mut seen, present);
        }
        assert_eq!(look(&mut seen, &[1]), None);
        assert_eq!(look(&mut seen, &[1, 2]), None);
        assert_eq!(look(&mut seen, &[1, 2]), None);
        assert_eq!(look(&mut seen, &[1, 2, 4]), None, "a new one");
        assert_eq!(look(&mut seen, &[1, 2]), None);
        assert_eq!(
            look(&mut seen, &[1, 2]),
            Some(holders(&[1, 2])),
            "4 is gone again"
        );
    }
}
