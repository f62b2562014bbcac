//! The process's open-file limit; connections are files too.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The real maximum on macOS, which reports no limit.
const AT_LEAST: u64 = 10_240;

/// Raises the limit as far as the system allows and returns it. Systems start processes low, usually at 1,024, for
/// programs that keep descriptors in a fixed-size set; here there are as many as there are nodes.
pub(crate) fn raised() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raise = |to: Option<u64>| {
        let wanted = Rlimit { current: to, maximum };
        setrlimit(Resource::Nofile, wanted).ok().map(|()| to)
    };
    let allowed = raise(maximum)
        .or_else(|| raise(Some(AT_LEAST)).filter(|_| current.is_some_and(|current| current < AT_LEAST)))
        .unwrap_or(current);
    // None means no limit.
    allowed.map_or(usize::MAX, |allowed| {
        usize::try_from(allowed).unwrap_or(usize::MAX)
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_as_far_as_the_system_allows() {
        let allowed = raised();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
        assert_eq!(current.map(usize::try_from), Some(Ok(allowed)));
    }
}
