//! The line that says why a test was skipped, a clock for a process, and what was logged while a test ran.

use std::{
    env,
    fmt::{self, Write as _},
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::{Event, Metadata, Subscriber, field, span};

const SKIPPED_FILE_VARIABLE: &str = "EMEND_SKIPPED_FILE";
/// Where Debian's package `libfaketime` puts its libraries, in a directory for each architecture.
const LIBRARIES: &str = "/usr/lib";
const FAKETIME: &str = "faketime/libfaketime.so.1";

/// Reports in one line why a test is skipped, on standard error and in the file that `EMEND_SKIPPED_FILE` names. `cargo
/// xtask test` collects these lines and decides which of them CI accepts.
///
/// # Panics
/// If `CI` is `true` and no file is named, because then no skip is accepted. If the file can't be written.
pub fn skipped(reason: impl fmt::Display) {
    let line = format!("skipped: {reason}\n");
    #[expect(clippy::print_stderr, reason = "the one line about a skipped test")]
    {
        eprint!("{line}");
    }
    if let Some(file) = env::var_os(SKIPPED_FILE_VARIABLE) {
        // Test processes write concurrently: appending one short line in a single write keeps lines whole.
        let appended = OpenOptions::new()
            .create(true)
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        appended.unwrap_or_else(|error| panic!("{SKIPPED_FILE_VARIABLE}: {error}"));
    } else {
        assert!(
            env::var("CI").as_deref() != Ok("true"),
            "{reason}, which may not be in CI"
        );
    }
}

/// The library that gives a process a clock of its own once it is preloaded; `None` if it is missing, after the line that says so.
///
/// # Panics
/// As [`skipped`] does.
pub fn faketime() -> Option<PathBuf> {
    let directories = fs::read_dir(LIBRARIES).into_iter().flatten().flatten();
    let mut libraries = directories.map(|directory| directory.path().join(FAKETIME));
    let found = libraries.find(|library| library.is_file());
    if found.is_none() {
        skipped("libfaketime is missing, so no process can have a clock of its own");
    }
    found
}

/// Keeps what is logged, each event as its fields. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Logged(Arc<Mutex<Vec<String>>>);

impl Logged {
    /// The events so far, each as `name=value;` for its fields, with the message first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Fields(String);

impl field::Visit for Fields {
    fn record_debug(&mut self, field: &field::Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?};");
    }
}

impl Subscriber for Logged {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(fields.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
