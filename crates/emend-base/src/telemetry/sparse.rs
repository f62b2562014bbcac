//! Lines that many calls would write alike: a few are let through in each interval, and say how many were not.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Lets a few lines through in each interval.
#[derive(Debug)]
pub struct Sparse {
    lines: u32,
    every: Duration,
    state: Mutex<Interval>,
}

/// The current interval.
#[derive(Debug)]
struct Interval {
    /// None: there was no line yet.
    began: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Sparse {
    /// So many lines in each interval of this length, which begins with its first line.
    pub const fn new(lines: u32, every: Duration) -> Self {
        Self {
            lines,
            every,
            state: Mutex::new(Interval {
                began: None,
                written: 0,
                left_out: 0,
            }),
        }
    }

    /// Whether to write the line now; if so, how many were left out since the last one.
    pub fn due(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_over = |began| now.saturating_duration_since(began) >= self.every;
        if state.began.is_none_or(is_over) {
            state.began = Some(now);
            state.written = 0;
        }
        if state.written == self.lines {
            state.left_out += 1;
            return None;
        }
        state.written += 1;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_line_of_an_interval_says_how_many_were_left_out() {
        tokio::time::pause();
        let lines = Sparse::new(2, Duration::from_secs(1));
        let due = || [lines.due(), lines.due(), lines.due()];
        assert_eq!(due(), [Some(0), Some(0), None]);
        tokio::time::advance(Duration::from_millis(999)).await;
        assert_eq!(lines.due(), None);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(due(), [Some(2), Some(0), None]);
    }
}
