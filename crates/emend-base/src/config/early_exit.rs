//! What a program prints instead of running.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use crate::lines::{all_wrapped, width_of_standard_error};

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
            // What fits is printed in clap's colours.
            Self::Clap(error) if error.use_stderr() => {
                match all_wrapped(&error.to_string(), width_of_standard_error()) {
                    text if text == error.to_string() => error.print(),
                    text => io::stderr().write_all(text.as_bytes()),
                }
            }
            Self::Clap(error) => error.print(),
            Self::Output(text) => io::stdout().write_all(text.as_bytes()),
            Self::Invalid(complaints) => complaints.iter().try_for_each(|complaint| {
                let line = format!("error: {complaint}");
                writeln!(io::stderr(), "{}", all_wrapped(&line, width_of_standard_error()))
            }),
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
