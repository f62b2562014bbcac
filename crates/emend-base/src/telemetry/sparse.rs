//! Lines that many calls would write alike: one is let through in each interval, and says how many were not.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Lets one line through in each interval.
#[derive(Debug)]
pub struct Sparse {
    every: Duration,
    state: Mutex<(Option<Instant>, u64)>,
}

impl Sparse {
    /// One line in each interval of this length.
    pub const fn new(every: Duration) -> Self {
        Self {
            every,
            state: Mutex::new((None, 0)),
        }
    }

    /// Whether to write the line now; if so, how many were left out since the last one.
    pub fn due(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, left_out) = &mut *state;
        let now = Instant::now();
        if last.is_some_and(|last| now.saturating_duration_since(last) < self.every) {
            *left_out += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_line_in_each_interval_says_how_many_were_left_out() {
        tokio::time::pause();
        let lines = Sparse::new(Duration::from_secs(1));
        assert_eq!([lines.due(), lines.due(), lines.due()], [Some(0), None, None]);
        tokio::time::advance(Duration::from_millis(999)).await;
        assert_eq!(lines.due(), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!([lines.due(), lines.due()], [Some(3), None]);
    }
}
