//! Who is to be woken: one place for each stream, taken once, in which it leaves its waker before it waits.
//!
//! Waking takes the wakers out, so that a stream that is not asking is not woken again. A list that streams enter and leave
//! for each wake-up would be locked by all of them at once, for every message. It must know nothing of why anybody is woken.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::Waker,
};

use futures::task::AtomicWaker;

/// Places of streams.
#[derive(Default)]
pub struct Listeners(Mutex<Vec<Weak<AtomicWaker>>>);

/// One stream's place; given up when it is dropped.
pub struct Listener(Arc<AtomicWaker>);

impl Listeners {
    /// Takes a place.
    pub fn join(&self) -> Listener {
        let place = Arc::<AtomicWaker>::default();
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() == places.capacity() {
            places.retain(|place| place.strong_count() > 0);
        }
        places.push(Arc::downgrade(&place));
        Listener(place)
    }

    /// Wakes all that listen.
    pub fn wake_all(&self) {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|place| {
            let place = place.upgrade();
            if let Some(place) = &place {
                place.wake();
            }
            place.is_some()
        });
    }
}

impl Listener {
    /// Wakes `waker` once, at the next [`Listeners::wake_all`] from now on. To be called before looking whether there is
    /// something new: then nothing is missed.
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
    fn who_listens_is_woken_once_until_he_listens_again() {
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
    fn places_that_were_given_up_are_used_again() {
        let listeners = Listeners::default();
        let staying = listeners.join();
        for _ in 0..10_000 {
            drop(listeners.join());
        }
        assert!(listeners.0.lock().unwrap().capacity() < 16);
        listeners.wake_all();
        assert_eq!(listeners.0.lock().unwrap().len(), 1);
        drop(staying);
    }
}
