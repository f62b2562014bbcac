//! The memory that this process holds, and the most since it was last asked.

use std::fs;

use anyhow::{Context as _, Result};

/// Forgets what was held before.
pub(crate) fn forget() -> Result<()> {
    fs::write("/proc/self/clear_refs", "5").context("cannot reset the high-water mark of memory")
}

/// Resident mebibytes at most since then (`VmHWM` of proc(5)).
pub(crate) fn most() -> Result<u64> {
    Ok(kibibytes("VmHWM:")? / 1024)
}

/// Resident kibibytes now (`VmRSS`).
pub(crate) fn resident() -> Result<u64> {
    kibibytes("VmRSS:")
}

fn kibibytes(field: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.split_whitespace().next());
    let kibibytes = kibibytes.with_context(|| format!("no {field} in /proc/self/status"))?;
    Ok(kibibytes.parse()?)
}
