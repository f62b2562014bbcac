//! Which replicas may still hold leases. One that is killed leaves them behind, and others need not wait for them to
//! expire.

use std::collections::{BTreeSet, VecDeque};

use emend_store::{PostgresUrl, StoreError, postgres::Presence};

use crate::records::outbox::LeaseHolder;

/// The class of advisory locks by which the replicas of feedback-svc know each other.
const CLASS: u32 = u32::from_be_bytes(*b"emFB");

/// The replicas that share an outbox on PostgreSQL, seen from one of them.
#[derive(Debug)]
pub(crate) struct Replicas {
    url: PostgresUrl,
    /// None before the first look.
    presence: Option<Presence>,
    seen: Seen,
}

impl Replicas {
    /// Those in this database.
    pub(crate) fn new(url: PostgresUrl) -> Self {
        Self {
            url,
            presence: None,
            seen: Seen::default(),
        }
    }

    /// If somebody who may hold leases is gone: all who are not. Seen from the replica that leases as `holder`.
    pub(crate) async fn look(
        &mut self,
        LeaseHolder(holder): LeaseHolder,
    ) -> Result<Option<BTreeSet<LeaseHolder>>, StoreError> {
        let url = &self.url;
        let presence = self
            .presence
            .get_or_insert_with(|| Presence::new(url.clone(), CLASS, holder));
        let members = presence.members().await?;
        Ok(self.seen.look(members.into_iter().map(LeaseHolder).collect()))
    }

    /// Ends this replica's presence.
    pub(crate) fn leave(&mut self) {
        self.presence = None;
    }

    /// Forgets what was seen, so that everybody who is gone soon counts as newly gone: it is not sure that their leases
    /// were released.
    pub(crate) fn start_over(&mut self) {
        self.seen = Seen::default();
    }
}

/// How many times in a row somebody must be missing to count as gone. Replicas look at intervals that differ by a fifth
/// from the mean, so between three looks of one, every other that lives has looked, and is present again if its connection
/// was lost.
const MISSING: usize = 3;

/// Who was there the last times. What a replica is sending is not to be sent again by others for the loss of a
/// connection.
#[derive(Debug, Default)]
struct Seen {
    /// The newest last.
    last: VecDeque<BTreeSet<LeaseHolder>>,
    /// Who was not gone at the last look; `None` before there were enough.
    living: Option<BTreeSet<LeaseHolder>>,
}

impl Seen {
    /// Takes note of who is present. Returns all who are not gone if anybody may newly be gone: always when it has
    /// looked often enough for the first time, as it is not known who was there before.
    fn look(&mut self, present: BTreeSet<LeaseHolder>) -> Option<BTreeSet<LeaseHolder>> {
        self.last.push_back(present);
        if self.last.len() < MISSING {
            return None;
        }
        let living: BTreeSet<_> = self.last.iter().flatten().copied().collect();
        self.last.pop_front();
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

    /// For which these were always there.
    fn always(present: &[u32]) -> Seen {
        let mut seen = Seen::default();
        for _ in 0..MISSING {
            look(&mut seen, present);
        }
        seen
    }

    #[test]
    fn the_third_look_finds_whoever_was_there_before() {
        let mut seen = Seen::default();
        assert_eq!(look(&mut seen, &[1]), None);
        assert_eq!(look(&mut seen, &[1]), None);
        assert_eq!(look(&mut seen, &[1, 2]), Some(holders(&[1, 2])));
        assert_eq!(look(&mut seen, &[1, 2]), None);
    }

    #[test]
    fn a_replica_is_gone_when_it_was_missing_three_times() {
        let mut seen = always(&[1, 2, 3]);
        assert_eq!(look(&mut seen, &[1, 3]), None);
        assert_eq!(look(&mut seen, &[1]), None);
        assert_eq!(look(&mut seen, &[1]), Some(holders(&[1, 3])), "2 is");
        assert_eq!(look(&mut seen, &[1]), Some(holders(&[1])), "so is 3");
        assert_eq!(look(&mut seen, &[1]), None, "nobody else");
    }

    #[test]
    fn a_replica_whose_connection_was_lost_for_a_moment_is_not_gone() {
        let mut seen = always(&[1, 2]);
        for present in [&[1][..], &[1], &[1, 2], &[1, 2]] {
            assert_eq!(look(&mut seen, present), None);
        }
        assert_eq!(look(&mut seen, &[1, 2, 4]), None, "a new one");
        assert_eq!(look(&mut seen, &[1, 2]), None);
        assert_eq!(look(&mut seen, &[1, 2]), None);
        assert_eq!(
            look(&mut seen, &[1, 2]),
            Some(holders(&[1, 2])),
            "4 is gone again"
        );
    }
}
