//! What a thread of Python waits for: changes of a node, and records of the log. Threads of Rust never call into Python, which
//! may be about to end.

use std::{sync::Mutex, time::Duration};

use emend_binding::log;
use pyo3::{PyResult, Python, pyclass, pyfunction, pymethods};

use crate::error::raised;

/// What happens to a node.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Changes(pub(crate) Mutex<emend_binding::Changes>);

#[pymethods]
impl Changes {
    /// Waits for the next one, as JSON; `None` once the node has ended.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let next = py.detach(|| match self.0.lock() {
            Ok(mut changes) => changes.next_blocking(),
            Err(_) => Ok(None),
        });
        let change = next.map_err(|error| raised(&error))?;
        Ok(change.map(|change| serde_json::to_string(&change).unwrap_or_default()))
    }
}

/// Waits so many seconds for a record: (level, logger, message).
#[pyfunction]
pub(crate) fn next_record(py: Python<'_>, within: f64) -> Option<(&'static str, String, String)> {
    let within = Duration::try_from_secs_f64(within).unwrap_or_default();
    let record = py.detach(|| log::next(within))?;
    Some((record.level, record.target, record.message))
}
