//! Failures as Python's exceptions, whose classes are written in Python.

use emend_binding::Error;
use pyo3::{PyErr, Python, exceptions::PyRuntimeError, types::PyAnyMethods as _};

/// The exception for a failure.
pub(crate) fn raised(error: &Error) -> PyErr {
    Python::attach(|py| {
        let json = serde_json::to_string(error).unwrap_or_default();
        let made = py
            .import("emend._errors")
            .and_then(|module| module.getattr("from_json")?.call1((json,)));
        match made {
            Ok(exception) => PyErr::from_value(exception),
            Err(_) => PyRuntimeError::new_err(error.to_string()),
        }
    })
}
