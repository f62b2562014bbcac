//! The wakers of an audience's streams. Each stream takes one slot for its lifetime and leaves its waker there before
//! it waits.
//!
//! Waking takes the waker out, so a stream that has not listened again is not woken again. With a list that streams
//! enter and leave for each wake-up, all of them would contend for its lock on every message.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::Waker,
};

use futures::task::AtomicWaker;

/// The slots of an audience's streams.
#[derive(Default)]
pub struct Listeners(Mutex<Vec<Weak<AtomicWaker>>>);

/// One stream's slot, freed when dropped.
pub struct Listener(Arc<AtomicWaker>);

impl Listeners {
    /// Takes a slot.
    pub fn join(&self) -> Listener {
        let slot = Arc::<AtomicWaker>::default();
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() == slots.capacity() {
            slots.retain(|slot| slot.strong_count() > 0);
        }
        slots.push(Arc::downgrade(&slot));
        Listener(slot)
    }

    /// Wakes every stream that is listening; returns how many streams there are.
    pub fn wake_all(&self) -> usize {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| {
            let slot = slot.upgrade();
            if let Some(slot) = &slot {
                slot.wake();
            }
            slot.is_some()
        });
        slots.len()
    }
}

impl Listener {
    /// Wakes `waker` once, at the next [`Listeners::wake_all`]. Call it before checking for anything new, so that
    /// nothing is missed.
    pub fn listen(&self, waker: &Waker) {
        self.0.register(waker);
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_listener_is_woken_once_until_it_listens_again() {
        let (listeners, count) = (Listeners::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        let listener = listeners.join();
        listeners.wake_all();
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        for round in 1..3 {
            listener.listen(&waker);
            listeners.wake_all();
            listeners.wake_all();
            assert_eq!(count.0.load(Ordering::SeqCst), round);
        }
    }

    #[test]
    fn freed_slots_are_reused() {
        let listeners = Listeners::default();
        let staying = listeners.join();
        for _ in 0..10_000 {
            drop(listeners.join());
        }
        assert!(listeners.0.lock().unwrap().capacity() < 16);
        assert_eq!(listeners.wake_all(), 1);
        drop(staying);
    }
}
