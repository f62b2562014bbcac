//! Runs targets on inputs and detects failures.

use std::{
    any::Any,
    fmt,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use rand::{SeedableRng as _, rngs::StdRng};

use crate::{Target, corpus::Kept, mutate};

/// A failure of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It panicked: a check in the code, an overflow, or a property that the target asserts.
    Panic(String),
    /// It held more memory at once than its bound for this input.
    Memory {
        /// Peak bytes held at once.
        peak: u64,
        /// Bytes allowed.
        allowed: u64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(message) => write!(f, "it panicked: {message}"),
            Self::Memory { peak, allowed } => {
                write!(f, "it held {peak} bytes of memory at once; {allowed} are allowed")
            }
        }
    }
}

/// Runs a target on one input. Returns the peak memory it held, in bytes.
pub fn check(target: &Target, input: &[u8]) -> Result<u64, Finding> {
    let mut outcome = Ok(0);
    let memory = allocation_counter::measure(|| {
        outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(input)));
    });
    let read = outcome.map_err(|panic| Finding::Panic(message(&*panic)))?;
    let allowed = target.memory.allowed(input.len().max(read));
    if memory.bytes_max > allowed {
        return Err(Finding::Memory {
            peak: memory.bytes_max,
            allowed,
        });
    }
    Ok(memory.bytes_max)
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}

/// An input on which a target fails.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The failure.
    pub finding: Finding,
    /// The smallest input found that still makes the target fail.
    pub input: Vec<u8>,
    /// Where the input came from.
    pub origin: String,
}

/// How many inputs a target was given, and its peak memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Number of inputs.
    pub inputs: u64,
    /// Peak bytes held at once.
    pub peak: u64,
}

/// Holds the input being read, to diagnose an aborted process: neither a stack overflow nor running out of memory can
/// be caught.
#[derive(Debug)]
pub struct LastInput(File);

impl LastInput {
    /// Stores the input at `path`.
    pub fn at(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    fn keep(&self, input: &[u8]) -> io::Result<()> {
        self.0.write_all_at(input, 0)?;
        self.0.set_len(input.len() as u64)
    }
}

/// Runs a target on its corpus, then on `mutations` inputs derived from it; stops at the first failure. Deterministic:
/// equal arguments give equal inputs.
pub fn short(
    target: &Target,
    corpus: &[Kept],
    seed: u64,
    mutations: u64,
    last: &LastInput,
) -> Result<Report, Failure> {
    let mut report = Report::default();
    let mut read = |input: &[u8], origin: &dyn Fn() -> String| {
        last.keep(input).map_err(|error| Failure {
            finding: Finding::Panic(format!("the input can't be kept: {error}")),
            input: input.to_vec(),
            origin: origin(),
        })?;
        let peak = check(target, input).map_err(|finding| Failure {
            finding,
            input: smallest(target, input),
            origin: origin(),
        })?;
        report.inputs += 1;
        report.peak = report.peak.max(peak);
        Ok(())
    };
    for Kept { name, bytes } in corpus {
        read(bytes, &|| format!("{name} of its corpus"))?;
    }
    let mut rng = StdRng::seed_from_u64(seed);
    for number in 0..mutations {
        let input = mutate::one_of(&mut rng, corpus, target.shape, target.max_bytes);
        read(&input, &|| format!("mutation {number} of seed {seed}"))?;
    }
    Ok(report)
}

/// Removes what is not needed for the target to fail: halves, quarters and so on, down to single bytes.
fn smallest(target: &Target, input: &[u8]) -> Vec<u8> {
    const TRIES: usize = 2_000;
    let mut best = input.to_vec();
    let mut tries = 0;
    let mut chunk = best.len() / 2;
    while chunk > 0 {
        let mut from = 0;
        while from < best.len() && tries < TRIES {
            let mut shorter = best.clone();
            shorter.drain(from..(from + chunk).min(best.len()));
            tries += 1;
            if check(target, &shorter).is_err() {
                best = shorter;
            } else {
                from += chunk;
            }
        }
        chunk /= 2;
    }
    best
}
