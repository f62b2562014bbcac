//! A queue served round robin across clients.
//!
//! A client with much queued delays every other client by only one of its items at a time. The items of one client stay
//! in order.

use std::collections::{HashMap, VecDeque, hash_map::Entry};

use crate::fair_semaphore::ClientKey;

/// Queued items by client.
#[derive(Debug)]
pub struct FairQueue<T> {
    /// Only clients with queued items have an entry.
    queued: HashMap<ClientKey, VecDeque<T>>,
    /// Each of those clients once, the next one first.
    order: VecDeque<ClientKey>,
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            queued: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<T> FairQueue<T> {
    /// Queues an item behind all others of that client.
    pub fn push(&mut self, client: ClientKey, waiting: T) {
        match self.queued.entry(client) {
            Entry::Occupied(mut own) => own.get_mut().push_back(waiting),
            Entry::Vacant(none) => {
                self.order.push_back(none.key().clone());
                none.insert(VecDeque::from([waiting]));
            }
        }
    }

    /// Removes the first item of the next client that `may` be served. A client that may not be served keeps its turn. Items
    /// that are no longer wanted are dropped and cost their client no turn.
    pub fn pop(
        &mut self,
        mut may: impl FnMut(&ClientKey) -> bool,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Option<(ClientKey, T)> {
        loop {
            let next = self.order.iter().position(&mut may)?;
            let client = self.order.remove(next)?;
            let own = self.queued.get_mut(&client)?;
            let first = std::iter::from_fn(|| own.pop_front()).find(&mut is_wanted);
            if own.is_empty() {
                self.queued.remove(&client);
            } else {
                self.order.push_back(client.clone());
            }
            if let Some(first) = first {
                return Some((client, first));
            }
        }
    }

    /// Removes the client's first item for which `is_it` returns true.
    pub fn remove(&mut self, client: &ClientKey, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let own = self.queued.get_mut(client)?;
        let forgotten = own.remove(own.iter().position(is_it)?);
        if own.is_empty() {
            self.queued.remove(client);
            self.order.retain(|other| other != client);
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use emend_core::Caller;

    use super::*;

    fn client(name: &str) -> ClientKey {
        ClientKey::of(Some(&Caller::parse(name).unwrap()), None)
    }

    fn waiting(all: &[(&str, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::default();
        for (name, number) in all {
            queue.push(client(name), *number);
        }
        queue
    }

    fn rest(mut queue: FairQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_| true, |_| true))
            .map(|(_, number)| number)
            .collect()
    }

    #[test]
    fn clients_take_turns_and_each_ones_entries_stay_in_order() {
        let queue = waiting(&[("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)]);
        assert_eq!(rest(queue), [1, 4, 5, 2, 6, 3]);
    }

    #[test]
    fn an_entry_that_may_not_leave_now_keeps_its_turn() {
        let mut queue = waiting(&[("a", 1), ("b", 2), ("b", 3), ("c", 4)]);
        let first = queue.pop(|who| *who != client("a"), |_| true);
        assert_eq!(first, Some((client("b"), 2)));
        assert_eq!(queue.pop(|_| false, |_| true), None);
        assert_eq!(rest(queue), [1, 4, 3]);
    }

    #[test]
    fn clients_without_entries_are_forgotten() {
        let mut queue = waiting(&[("a", 1), ("a", 2), ("b", 3)]);
        assert_eq!(queue.remove(&client("a"), |number| *number == 1), Some(1));
        assert_eq!(queue.remove(&client("a"), |number| *number == 3), None);
        assert_eq!(queue.remove(&client("b"), |number| *number == 3), Some(3));
        assert_eq!(queue.remove(&client("b"), |_| true), None);
        assert_eq!(queue.queued.len(), 1);
        assert_eq!(queue.order, [client("a")]);
        assert_eq!(rest(queue), [2]);
    }

    #[test]
    fn a_removed_entry_costs_no_turn() {
        let mut queue = waiting(&[("a", 1), ("a", 2), ("a", 3), ("b", 4), ("b", 5), ("c", 6)]);
        let wanted = |number: &u32| ![1, 2, 6].contains(number);
        let popped: Vec<_> = std::iter::from_fn(|| queue.pop(|_| true, wanted))
            .map(|(_, number)| number)
            .collect();
        assert_eq!(popped, [3, 4, 5]);
        assert!(queue.queued.is_empty() && queue.order.is_empty());
    }
}
