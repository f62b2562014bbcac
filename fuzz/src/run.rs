//! Giving inputs to a target, and noticing what must not happen.
//!
//! It must know nothing of any one target.

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

/// What a target did that it must not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It panicked: the code's own check, an overflow, or a property that the target asserts.
    Panic(String),
    /// It took more memory at once than its bound for this input.
    Memory {
        /// Bytes held at once, at most.
        peak: u64,
        /// Bytes that were allowed.
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

/// Gives a target one input. Answers with the bytes of memory that it held at once.
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

/// An input that a target does not read as it should.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What it did.
    pub finding: Finding,
    /// The smallest input found to which it does that or something like it.
    pub input: Vec<u8>,
    /// Where the input came from.
    pub origin: String,
}

/// How many inputs a target took, and how much memory at most.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Inputs.
    pub inputs: u64,
    /// Bytes held at once at most.
    pub peak: u64,
}

/// Holds the input that is being read, for who has to find out why the process was aborted: neither a stack overflow nor
/// memory running out can be caught.
#[derive(Debug)]
pub struct LastInput(File);

impl LastInput {
    /// Kept at `path`.
    pub fn at(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    fn keep(&self, input: &[u8]) -> io::Result<()> {
        self.0.write_all_at(input, 0)?;
        self.0.set_len(input.len() as u64)
    }
}

/// Gives a target its corpus, then `mutations` inputs made of it; ends with the first failure. Equal arguments give equal
/// inputs.
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

/// Leaves out what is not needed for the target to fail: halves, quarters and so on, down to single bytes.
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
