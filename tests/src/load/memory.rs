//! How much memory a process takes while something is done to it. Read from Linux's /proc; elsewhere nothing is known.

use std::{fs, future::Future, time::Duration};

use tokio::time::interval;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Resident, in bytes; nothing where that can't be read.
pub fn resident(process: u32) -> u64 {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
        return 0;
    };
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// What `doing` answers, and the most that the process held while it was done.
pub async fn peak_during<F: Future>(process: u32, doing: F) -> (F::Output, u64) {
    let mut doing = std::pin::pin!(doing);
    let mut peak = resident(process);
    let mut looks = interval(LOOK);
    loop {
        tokio::select! {
            done = &mut doing => return (done, peak.max(resident(process))),
            _ = looks.tick() => peak = peak.max(resident(process)),
        }
    }
}
