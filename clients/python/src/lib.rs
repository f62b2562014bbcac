//! The Python package `emend`: what it takes to call `emend-binding` from CPython. What a person sees is written in Python,
//! beside this, in `python/emend`.
//!
//! Nothing here waits while it holds the interpreter's lock. A call that waits looks for signals meanwhile, so Ctrl-C ends it.

mod client;
mod error;
mod events;
mod node;
mod waiting;

/// The module `emend._emend`.
#[pyo3::pymodule(gil_used = false)]
mod _emend {
    use std::time::Duration;

    use pyo3::{Python, pyfunction};

    #[pymodule_export]
    use crate::{
        client::{Answers, Client, Recorder, Upload},
        events::{Changes, next_record},
        node::{Hit, Near, NearPhrase, Node},
        waiting::Task,
    };

    /// Ends what runs in the background.
    #[pyfunction]
    fn shutdown(py: Python<'_>) {
        py.detach(|| emend_binding::background::shutdown(Duration::from_secs(2)));
    }

    /// The normal form of a phrase.
    #[pyfunction]
    fn normalize(phrase: &str) -> String {
        emend_client::normalize(phrase)
    }

    /// Begins to collect what the library logs, from this level on.
    #[pyfunction]
    fn collect_log(level: &str) {
        emend_binding::log::collect(level.parse().unwrap_or(tracing::Level::INFO));
    }
}
