//! Row locks, held until their unit of work ends, granted first come, first served.
//!
//! A unit of work that would wait for itself gets an error at once, and has to restart. It must know nothing of what is
//! locked.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use emend_core::{ContestId, FeedbackId};
use tokio::sync::oneshot;

/// What can be locked, in locking order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    Feedback(FeedbackId),
    Contest(ContestId),
    Head,
}

/// The owner of a lock.
pub(super) type Owner = u64;

/// Waiting would never end.
#[derive(Debug)]
pub(super) struct Deadlock;

#[derive(Debug)]
struct Lock {
    owner: Owner,
    waiting: VecDeque<(Owner, oneshot::Sender<()>)>,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<Row, Lock>,
    last_owner: Owner,
}

/// All locks of a database.
#[derive(Debug, Default)]
pub(super) struct Locks(Mutex<State>);

impl Locks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new owner that holds nothing.
    pub(super) fn new_owner(&self) -> Owner {
        let mut state = self.state();
        state.last_owner += 1;
        state.last_owner
    }

    /// Waits until `owner` holds the lock.
    pub(super) async fn take(&self, owner: Owner, row: Row) -> Result<(), Deadlock> {
        let given = {
            let mut state = self.state();
            if state.would_wait_for_itself(owner, row) {
                return Err(Deadlock);
            }
            match state.held.get_mut(&row) {
                None => {
                    let waiting = VecDeque::new();
                    state.held.insert(row, Lock { owner, waiting });
                    return Ok(());
                }
                Some(lock) if lock.owner == owner => return Ok(()),
                Some(lock) => {
                    let (give, given) = oneshot::channel();
                    lock.waiting.push_back((owner, give));
                    given
                }
            }
        };
        // The sender is dropped only with the database.
        given.await.map_err(|_| Deadlock)
    }

    /// Releases everything `owner` holds.
    pub(super) fn release(&self, owner: Owner) {
        let mut state = self.state();
        state.held.retain(|_, lock| {
            lock.waiting.retain(|(waiting, _)| *waiting != owner);
            if lock.owner != owner {
                return true;
            }
            while let Some((next, give)) = lock.waiting.pop_front() {
                // The waiter may be gone.
                if give.send(()).is_ok() {
                    lock.owner = next;
                    return true;
                }
            }
            false
        });
    }
}

impl State {
    /// Whether `owner` holds the row, or a lock that the holder waits for, directly or indirectly.
    fn would_wait_for_itself(&self, owner: Owner, row: Row) -> bool {
        let mut holders: Vec<Owner> = self.held.get(&row).map(|lock| lock.owner).into_iter().collect();
        if holders.first() == Some(&owner) {
            return false;
        }
        let mut seen = Vec::new();
        while let Some(holder) = holders.pop() {
            if holder == owner {
                return true;
            }
            if !seen.contains(&holder) {
                seen.push(holder);
                let waited_for = self
                    .held
                    .values()
                    .filter(|lock| lock.waiting.iter().any(|(waiting, _)| *waiting == holder));
                holders.extend(waited_for.map(|lock| lock.owner));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_waits_longest_is_next_and_who_went_away_is_passed_over() {
        let locks = Locks::default();
        let [one, two, three] = [(); 3].map(|()| locks.new_owner());
        locks.take(one, Row::Head).await.unwrap();
        locks.take(one, Row::Head).await.unwrap();
        let mut gone = Box::pin(locks.take(two, Row::Head));
        let mut waits = Box::pin(locks.take(three, Row::Head));
        assert!((&mut gone).now_or_never().is_none() && (&mut waits).now_or_never().is_none());
        drop(gone);
        locks.release(one);
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn who_would_wait_for_itself_is_told_so() {
        let locks = Locks::default();
        let contest = Row::Contest(ContestId(uuid::Uuid::nil()));
        let [one, two] = [(); 2].map(|()| locks.new_owner());
        locks.take(one, contest).await.unwrap();
        locks.take(two, Row::Head).await.unwrap();
        let mut waits = Box::pin(locks.take(one, Row::Head));
        assert!((&mut waits).now_or_never().is_none());
        assert!(locks.take(two, contest).await.is_err());
        locks.release(two);
        waits.await.unwrap();
    }
}
