//! How much memory a process uses while something is done to it. Read from Linux's /proc; not known elsewhere.

use std::{fs, future::Future, time::Duration};

use tokio::time::interval;

/// The sampling interval.
const LOOK: Duration = Duration::from_millis(20);

/// Resident memory, in bytes; 0 if it can't be read.
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

/// The output of `doing`, and the process's peak resident memory meanwhile.
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
