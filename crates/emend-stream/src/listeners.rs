//! The wakers of an audience's streams. Each stream takes one slot for its lifetime and leaves its waker there before
//! it waits.
//!
//! Waking takes the waker out, so a stream that has not listened again is not woken again. With a list that streams
//! enter and leave for each wake-up, all of them would contend for its lock on every message.
//!
//! Many streams are woken in slices ([`Wave`]): a thousand at once would stand in one line with everything else that the
//! process does, commits and their acknowledgements included.

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

    /// Those of the streams there are.
    pub fn wave(&self) -> Wave {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| slot.strong_count() > 0);
        Wave(slots.clone())
    }

    /// Wakes every stream that is listening.
    pub fn wake_all(&self) {
        drop(self.wave());
    }
}

/// Streams to be woken. Those that are left when it is dropped are woken then.
#[derive(Default)]
pub struct Wave(Vec<Weak<AtomicWaker>>);

impl Wave {
    /// How many streams are left.
    pub fn left(&self) -> usize {
        self.0.len()
    }

    /// Adds those of another wave.
    pub fn extend(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Wakes some of them that are listening, at most `most`.
    pub fn wake(&mut self, most: usize) {
        let slice = self.0.len().saturating_sub(most)..;
        for slot in self.0.drain(slice).filter_map(|slot| slot.upgrade()) {
            slot.wake();
        }
    }
}

impl Drop for Wave {
    fn drop(&mut self) {
        self.wake(usize::MAX);
    }
}

impl Listener {
    /// Wakes `waker` once, at the next [`Listeners::wake_all`] or [`Wave::wake`]. Call it before checking for anything new, so that
    /// nothing is missed.
    pub fn listen(&self, waker: &Waker) {
        self.0.register(waker);
    }
}

impl fmt::Debug for Wave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wave({})", self.left())
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
    fn a_wave_wakes_slice_by_slice_and_leaves_nobody_asleep() {
        let (listeners, count) = (Listeners::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        let mut streams: Vec<_> = (0..10).map(|_| listeners.join()).collect();
        for stream in &streams {
            stream.listen(&waker);
        }
        let mut wave = listeners.wave();
        for (woken, left) in [(4, 6), (8, 2)] {
            wave.wake(4);
            assert_eq!((count.0.load(Ordering::SeqCst), wave.left()), (woken, left));
        }
        // One that has gone, and one that came and sees everything by itself.
        streams.swap_remove(0);
        let _late = listeners.join();
        drop(wave);
        assert_eq!(count.0.load(Ordering::SeqCst), 9);
    }

    #[test]
    fn freed_slots_are_reused() {
        let listeners = Listeners::default();
        let staying = listeners.join();
        for _ in 0..10_000 {
            drop(listeners.join());
        }
        assert!(listeners.0.lock().unwrap().capacity() < 16);
        assert_eq!(listeners.wave().left(), 1);
        drop(staying);
    }
}
