//! How many files this process may have open; connections are files, too.
//!
//! It must know nothing of what they are for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number to the most that the system lets this process have, and answers with it. Systems begin with few, 1,024
/// as a rule, for programs that keep them in a set of fixed size; here there are as many as there are nodes.
pub(crate) fn raised() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    let allowed = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "no more files may be open than at the start");
            current
        }
    };
    // None is without a limit.
    allowed.map_or(usize::MAX, |allowed| {
        usize::try_from(allowed).unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_system_allows() {
        let allowed = raised();
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
        assert_eq!(current.map(|current| current as usize), Some(allowed));
    }
}
