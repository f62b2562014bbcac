//! What the process uses of the machine, as Linux counts it; elsewhere these stay at zero.
//!
//! Read on each scrape, from a few small files of /proc.

use std::{fs, path::Path, sync::atomic::Ordering};

use prometheus_client::metrics::{counter::Counter, gauge::Gauge};

use super::{Description, Kind, Metrics};

/// Ticks of /proc per second: `USER_HZ`, 100 on every machine that we build for.
const TICKS: u64 = 100;

const RESIDENT: Description = Description {
    name: "process_resident_memory_bytes",
    kind: Kind::Gauge,
    unit: "bytes",
    labels: &[],
    help: "Resident memory of this process",
};
const CPU: Description = Description {
    name: "process_cpu_seconds_total",
    kind: Kind::Counter,
    unit: "seconds",
    labels: &[],
    help: "Processor time of this process, in user and system mode",
};
const OPEN_FDS: Description = Description {
    name: "process_open_fds",
    kind: Kind::Gauge,
    unit: "file descriptors",
    labels: &[],
    help: "Open files and sockets of this process",
};
const MAX_FDS: Description = Description {
    name: "process_max_fds",
    kind: Kind::Gauge,
    unit: "file descriptors",
    labels: &[],
    help: "Maximum number of open files and sockets of this process",
};
const START: Description = Description {
    name: "process_start_time_seconds",
    kind: Kind::Gauge,
    unit: "seconds",
    labels: &[],
    help: "Start of this process, as Unix time",
};

/// Registers them.
pub(super) fn register(metrics: &Metrics) {
    let resident = Gauge::<i64>::default();
    let cpu = Counter::<u64>::default();
    let cpu_seconds = Counter::<f64>::default();
    let (open, max) = (Gauge::<i64>::default(), Gauge::<i64>::default());
    let start = Gauge::<i64>::default();
    metrics.register(RESIDENT, resident.clone());
    metrics.register(CPU, cpu_seconds.clone());
    metrics.register(OPEN_FDS, open.clone());
    metrics.register(MAX_FDS, max.clone());
    metrics.register(START, start.clone());
    if let Some(at) = started_at() {
        start.set(signed(at));
    }
    metrics.refresh(move || {
        if let Some(bytes) = resident_bytes() {
            resident.set(signed(bytes));
        }
        if let Some(ticks) = cpu_ticks() {
            // Ticks are whole: the sum stays exact however often it is scraped.
            let more = ticks.saturating_sub(cpu.inner().swap(ticks, Ordering::Relaxed));
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 ticks")]
            cpu_seconds.inc_by(more as f64 / TICKS as f64);
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // The descriptor used for listing is among them.
            open.set(signed(entries.count().saturating_sub(1) as u64));
        }
        if let Some(limit) = max_fds() {
            max.set(signed(limit));
        }
    });
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

fn resident_bytes() -> Option<u64> {
    let status = read("/proc/self/status")?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = kibibytes.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// The fields of /proc/self/stat from the third on: the second is the program's name, in brackets, and may hold
/// anything.
fn stat() -> Option<Vec<u64>> {
    let stat = read("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')')?;
    // Fields that are not numbers, such as the state, or are negative are not needed here.
    Some(
        fields
            .split_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect(),
    )
}

/// From /proc's manual: `utime` is field 14, `stime` 15.
fn cpu_ticks() -> Option<u64> {
    let stat = stat()?;
    Some(stat.get(11)? + stat.get(12)?)
}

/// In seconds since 1970: starttime is field 22, in ticks since the machine booted.
fn started_at() -> Option<u64> {
    let ticks = *stat()?.get(19)?;
    let machine = read("/proc/stat")?;
    let machine: u64 = machine
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    Some(machine + ticks / TICKS)
}

fn max_fds() -> Option<u64> {
    let limits = read("/proc/self/limits")?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::clock::{Clock as _, SystemClock};

    #[test]
    fn a_process_reports_its_memory_age_open_files_and_processor_time() {
        assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        let now = SystemClock.now().as_second();
        let started = signed(started_at().unwrap());
        // Within a day; the boot time is in whole seconds.
        assert!((now - 86_400..=now + 2).contains(&started), "{started} {now}");
        assert!(max_fds().is_some_and(|limit| limit > 8));
        let (before, begun) = (cpu_ticks().unwrap(), Instant::now());
        while cpu_ticks().unwrap() == before {
            assert!(
                begun.elapsed() < Duration::from_mins(1),
                "its processor time does not increase"
            );
        }
    }
}
