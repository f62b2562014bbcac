//! Points between two steps where a process under test can be made to die, as if by a power cut.
//!
//! `EMEND_FAIL_POINT=NAME:COUNT` aborts the process when it passes the point for the `COUNT`-th time: nothing is unwound,
//! flushed or released. Tests walk all points of a service and inspect what is left. Without the feature `fail-points`,
//! and always in optimised builds, passing a point does nothing: no released program can be armed.

/// One point. A service lists its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FailPoint(&'static str);

/// Whether this build can be armed.
pub const COMPILED_IN: bool = cfg!(all(feature = "fail-points", debug_assertions));

/// Names the point at which to die and the pass on which to do so, as `NAME:COUNT`; the first pass is 1.
pub const VARIABLE: &str = "EMEND_FAIL_POINT";

impl FailPoint {
    /// A point with a name that is unique within its service.
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// Aborts here if the process is armed for this point and this is the `COUNT`-th pass.
    #[inline]
    pub fn pass(self) {
        #[cfg(all(feature = "fail-points", debug_assertions))]
        armed::pass(self.0);
    }
}

#[cfg(all(feature = "fail-points", debug_assertions))]
mod armed {
    use std::{
        env,
        sync::{
            LazyLock,
            atomic::{AtomicU64, Ordering},
        },
    };

    struct Armed {
        name: String,
        left: AtomicU64,
    }

    static ARMED: LazyLock<Option<Armed>> =
        LazyLock::new(|| env::var(super::VARIABLE).ok().as_deref().map(parse));

    fn parse(text: &str) -> Armed {
        let (name, count) = text.rsplit_once(':').unwrap_or((text, "1"));
        let count = count.parse().ok().filter(|count| *count > 0);
        Armed {
            name: name.to_owned(),
            left: AtomicU64::new(
                count.unwrap_or_else(|| panic!("{}: {text:?} is not NAME:COUNT", super::VARIABLE)),
            ),
        }
    }

    pub(super) fn pass(name: &str) {
        let Some(armed) = ARMED.as_ref().filter(|armed| armed.name == name) else {
            return;
        };
        if armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            // Neither destructors nor exit handlers run: whatever is not durable is lost.
            std::process::abort();
        }
    }
}
