//! Waiting for what runs in the background: in a thread, or without one for asyncio.

use std::time::Duration;

use emend_binding::{Error, background};
use pyo3::{IntoPyObject, IntoPyObjectExt as _, Py, PyAny, PyResult, Python, pyclass, pymethods};
use tokio::{
    sync::oneshot,
    task::{AbortHandle, spawn_blocking},
    time::timeout,
};

use crate::error::raised;

/// How often a waiting thread looks for signals.
const SIGNALS: Duration = Duration::from_millis(100);

/// Waits for a future without the interpreter's lock. A signal whose handler raises, as Ctrl-C does, ends it.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> PyResult<T> {
    let handle = background::handle().map_err(|error| raised(&error))?;
    let (sender, mut receiver) = oneshot::channel();
    let task = handle.spawn(async move {
        // Who waited may have left.
        let _ = sender.send(future.await);
    });
    loop {
        let waited = py.detach(|| handle.block_on(async { timeout(SIGNALS, &mut receiver).await }));
        match waited {
            Ok(Ok(answer)) => return answer.map_err(|error| raised(&error)),
            Ok(Err(_)) => return Err(raised(&background::ended())),
            Err(_) => {
                if let Err(signal) = py.check_signals() {
                    task.abort();
                    return Err(signal);
                }
            }
        }
    }
}

/// Something that runs in the background for asyncio.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Task(AbortHandle);

#[pymethods]
impl Task {
    /// Gives it up.
    fn cancel(&self) {
        self.0.abort();
    }
}

/// Begins a future and calls `done(answer, exception)` with its end, in a thread of the background; one of both is `None`.
pub(crate) fn start<T>(
    future: impl Future<Output = Result<T, Error>> + Send + 'static,
    done: Py<PyAny>,
) -> PyResult<Task>
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    let handle = background::handle().map_err(|error| raised(&error))?;
    let task = handle.spawn(async move {
        let answered = future.await;
        // A thread that may wait for the interpreter's lock. None is left to be told when the interpreter ends.
        let _ = spawn_blocking(move || {
            Python::try_attach(|py| {
                let told = match answered {
                    Ok(answer) => answer
                        .into_py_any(py)
                        .and_then(|answer| done.call1(py, (answer, py.None()))),
                    Err(error) => done.call1(py, (py.None(), raised(&error).into_value(py))),
                };
                if let Err(error) = told {
                    error.write_unraisable(py, None);
                }
            })
        })
        .await;
    });
    Ok(Task(task.abort_handle()))
}
