//! What a program prints instead of running.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// The output after which a program exits.
#[derive(Debug)]
pub enum Told {
    /// Help, version, or what is wrong with the command line.
    Clap(clap::Error),
    /// The requested output, for standard output.
    Answer(String),
    /// What is wrong with the settings, one sentence each, without secrets.
    Wrong(Vec<String>),
}

impl Told {
    /// Prints it, on standard output or standard error. Exit code 0 for an answer, 2 for an error.
    pub fn tell(&self) -> ExitCode {
        // If writing fails, there is no one left to tell.
        let _ = match self {
            Self::Clap(error) => error.print(),
            Self::Answer(text) => io::stdout().write_all(text.as_bytes()),
            Self::Wrong(complaints) => complaints
                .iter()
                .try_for_each(|complaint| writeln!(io::stderr(), "error: {complaint}")),
        };
        if self.is_wrong() {
            ExitCode::from(2)
        } else {
            ExitCode::SUCCESS
        }
    }

    /// Whether it reports an error.
    pub fn is_wrong(&self) -> bool {
        match self {
            Self::Clap(error) => error.use_stderr(),
            Self::Answer(_) => false,
            Self::Wrong(_) => true,
        }
    }
}
