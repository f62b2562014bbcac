//! One budget per replica for the bytes of encoded messages, whether kept for streams that will want the same or
//! waiting in a connection whose client does not read.
//!
//! A message counts once, from when it is encoded until its last holder drops it. While the budget is spent, batches
//! are no longer kept beyond an eighth of it, and messages that have to be sent all the same are cut small
//! ([`SMALL_PART`]). So what is held can exceed the budget by that eighth, the update that spent it, and one small
//! message for each stream that does not read.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;

/// At most this many bytes of encoded resources in one message while the budget is spent; a larger resource is sent
/// alone.
pub const SMALL_PART: usize = 64 * 1024;
/// Kept batches are dropped only if they take more than this fraction of the budget (1/8): freeing less would not help.
const WORTH_FREEING: usize = 8;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: usize,
    held: AtomicUsize,
    kept: AtomicUsize,
}

/// Bytes that count until their last holder drops them.
struct Held {
    bytes: Bytes,
    budget: Budget,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.0.held.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// Accounts for held bytes that are kept for other streams, until dropped.
#[derive(Debug)]
pub struct Kept {
    bytes: usize,
    budget: Budget,
}

impl Kept {
    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.budget.0.kept.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Budget {
    /// A budget of `limit` bytes.
    pub fn of(limit: usize) -> Self {
        Self(Arc::new(Account {
            limit,
            held: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
        }))
    }

    /// Counts `bytes` until their last holder drops them.
    pub fn count(&self, bytes: Bytes) -> Bytes {
        self.0.held.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(Held {
            bytes,
            budget: self.clone(),
        })
    }

    /// Notes that this many of the held bytes are kept for other streams.
    pub fn keep(&self, bytes: usize) -> Kept {
        self.0.kept.fetch_add(bytes, Ordering::Relaxed);
        Kept {
            bytes,
            budget: self.clone(),
        }
    }

    /// The number of bytes held.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Whether the bytes held have reached the limit.
    pub fn is_spent(&self) -> bool {
        self.held() >= self.0.limit
    }

    /// Whether it is spent and dropping what is kept would help.
    pub fn wants_room(&self) -> bool {
        self.is_spent() && self.0.kept.load(Ordering::Relaxed) > self.0.limit / WORTH_FREEING
    }

    /// The size limit of the next message, where the subscriber accepts up to `max_bytes`.
    pub fn part_bytes(&self, max_bytes: usize) -> usize {
        if self.is_spent() {
            max_bytes.min(SMALL_PART)
        } else {
            max_bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_until_their_last_holder_drops_them() {
        let budget = Budget::of(10);
        let whole = budget.count(Bytes::from_static(b"0123456789"));
        assert!(budget.is_spent());
        let part = whole.slice(3..4);
        drop(whole);
        assert_eq!((budget.held(), &*part), (10, &b"3"[..]));
        drop(part);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn messages_are_cut_small_only_while_the_budget_is_spent() {
        let budget = Budget::of(10);
        assert_eq!(budget.part_bytes(1_000_000), 1_000_000);
        let held = budget.count(Bytes::from_static(b"0123456789"));
        assert_eq!(budget.part_bytes(1_000_000), SMALL_PART);
        assert_eq!(budget.part_bytes(1_000), 1_000);
        drop(held);
        assert_eq!(budget.part_bytes(1_000_000), 1_000_000);
    }

    #[test]
    fn kept_batches_are_dropped_only_where_that_helps() {
        let budget = Budget::of(16);
        let held = budget.count(Bytes::from_static(b"0123456789abcdef"));
        let few = budget.keep(2);
        assert!(!budget.wants_room());
        let more = budget.keep(1);
        assert!(budget.wants_room());
        drop(more);
        assert!(!budget.wants_room());
        drop((few, held));
        let _kept = budget.keep(16);
        assert!(!budget.wants_room(), "there is room");
    }
}
