//! Threads for work that takes long, which take second place to those that answer queries.

use std::{
    cell::Cell,
    io,
    thread::{Builder, JoinHandle},
};

/// By how much such a thread is nicer than one that answers queries: where the processors are busy, it gets about a tenth
/// of what others get. Elsewhere than on Linux, where a thread has no niceness of its own, it is an ordinary thread.
#[cfg(target_os = "linux")]
const NICER: i32 = 10;

thread_local! {
    /// Whether this thread is in the background.
    static IS_BACKGROUND: Cell<bool> = const { Cell::new(false) };
}

/// Begins work in a thread of its own. It ends by itself, whether anybody waits for it or not. A thread has the niceness of
/// the one that begins it, so what begins in the background is as nice as that and no nicer.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    #[cfg(target_os = "linux")]
    let is_nice_already = IS_BACKGROUND.get();
    Builder::new().name(name.to_owned()).spawn(move || {
        IS_BACKGROUND.set(true);
        #[cfg(target_os = "linux")]
        if !is_nice_already {
            // Where it is not allowed, the work is done all the same.
            let _ = rustix::process::nice(NICER);
        }
        work()
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn work_in_the_background_has_a_thread_of_its_own_that_takes_second_place() {
        #[cfg(target_os = "linux")]
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        #[cfg(not(target_os = "linux"))]
        let niceness = || 0;
        let before = niceness();
        let working = spawn("emend-test", move || {
            let thread = thread::current();
            let within = spawn("emend-within", niceness).unwrap().join().unwrap();
            (
                thread.name().map(str::to_owned),
                thread.id(),
                [niceness(), within],
            )
        });
        let (name, id, worked_at) = working.unwrap().join().unwrap();
        assert_eq!(name.as_deref(), Some("emend-test"));
        assert_ne!(id, thread::current().id());
        assert_eq!(niceness(), before, "the thread that begins it is as it was");
        if cfg!(target_os = "linux") {
            assert_eq!(worked_at, [(before + 10).min(19); 2], "however deep it began");
        }
    }
}
