//! The most memory that this process held, since it was last asked.

use std::fs;

use anyhow::{Context as _, Result};

/// Forgets what was held before.
pub(crate) fn forget() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the high-water mark of memory")
}

/// Resident mebibytes at most since then (`VmHWM` of proc(5)).
pub(crate) fn most() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    let kibibytes: u64 = kibibytes.context("no VmHWM in /proc/self/status")?.parse()?;
    Ok(kibibytes / 1024)
}
