//! What a program prints instead of running.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

/// The output after which a program exits.
#[derive(Debug)]
pub enum EarlyExit {
    /// Help, version, or what is wrong with the command line.
    Clap(clap::Error),
    /// The requested output, for standard output.
    Output(String),
    /// What is wrong with the settings, one sentence each, without secrets.
    Invalid(Vec<String>),
}

impl EarlyExit {
    /// Prints it, on standard output or standard error. Exit code 0 for an answer, 2 for an error.
    pub fn print(&self) -> ExitCode {
        // If writing fails, nobody can be told.
        let _ = match self {
            Self::Clap(error) => error.print(),
            Self::Output(text) => io::stdout().write_all(text.as_bytes()),
            Self::Invalid(complaints) => complaints
                .iter()
                .try_for_each(|complaint| writeln!(io::stderr(), "error: {complaint}")),
        };
        if self.is_error() {
            ExitCode::from(2)
        } else {
            ExitCode::SUCCESS
        }
    }

    /// Whether it reports an error.
    pub fn is_error(&self) -> bool {
        match self {
            Self::Clap(error) => error.use_stderr(),
            Self::Output(_) => false,
            Self::Invalid(_) => true,
        }
    }
}
