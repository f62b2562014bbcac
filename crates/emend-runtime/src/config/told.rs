//! What a program says instead of running.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// What is told, after which the program ends.
#[derive(Debug)]
pub enum Told {
    /// Help, version, or what is wrong with the command line.
    Clap(clap::Error),
    /// What was asked for, for standard output.
    Answer(String),
    /// What is wrong with the settings, a sentence each, without a secret in it.
    Wrong(Vec<String>),
}

impl Told {
    /// Tells it, on standard output or standard error. Exit code 0 for an answer, 2 where something is wrong.
    pub fn tell(&self) -> ExitCode {
        // Nobody is left to be told where writing fails.
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

    /// Whether something is wrong.
    pub fn is_wrong(&self) -> bool {
        match self {
            Self::Clap(error) => error.use_stderr(),
            Self::Answer(_) => false,
            Self::Wrong(_) => true,
        }
    }
}
