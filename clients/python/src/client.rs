//! Calls of both services, and the recorder.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use emend_binding::{ConnectionSettings, Error, FieldNames, background};
use pyo3::{Py, PyAny, PyResult, Python, pyclass, pymethods};
use tokio::sync::Mutex;

use crate::{
    error::raised,
    waiting::{Task, start, wait},
};

/// Calls a service by the names of its methods, with JSON.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Client(emend_binding::Client);

fn client(settings: &str) -> Result<emend_binding::Client, Error> {
    let settings = ConnectionSettings::from_json(settings)?;
    emend_binding::Client::new(settings, FieldNames::SnakeCase)
}

fn deadline(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let parsed = seconds.map(|seconds| {
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            let why = format!("must be a number of seconds that is not negative, is {seconds}");
            raised(&Error::of_field("deadline", why))
        })
    });
    parsed.transpose()
}

#[pymethods]
impl Client {
    #[new]
    fn new(py: Python<'_>, settings: &str) -> PyResult<Self> {
        let made = py.detach(|| client(settings));
        made.map(Self).map_err(|error| raised(&error))
    }

    /// Calls a method and waits.
    fn call(&self, py: Python<'_>, method: &str, request: &str, seconds: Option<f64>) -> PyResult<String> {
        wait(py, self.0.call(method, request, deadline(seconds)?))
    }

    /// Calls a method for asyncio.
    fn start_call(
        &self,
        method: &str,
        request: &str,
        seconds: Option<f64>,
        done: Py<PyAny>,
    ) -> PyResult<Task> {
        start(self.0.call(method, request, deadline(seconds)?), done)
    }

    /// Begins a call of a method that takes a stream of requests.
    fn upload(&self, method: &str, seconds: Option<f64>) -> PyResult<Upload> {
        let upload = self.0.upload(method, deadline(seconds)?);
        let upload = upload.map_err(|error| raised(&error))?;
        Ok(Upload(std::sync::Mutex::new(Some(upload))))
    }

    /// Calls a method that answers with a stream and waits for it to begin.
    fn stream(&self, py: Python<'_>, method: &str, request: &str, seconds: Option<f64>) -> PyResult<Answers> {
        wait(py, self.0.stream(method, request, deadline(seconds)?)).map(Answers::from)
    }

    /// The same for asyncio.
    fn start_stream(
        &self,
        method: &str,
        request: &str,
        seconds: Option<f64>,
        done: Py<PyAny>,
    ) -> PyResult<Task> {
        let opening = self.0.stream(method, request, deadline(seconds)?);
        start(async move { opening.await.map(Answers::from) }, done)
    }

    /// Refuses calls from now on.
    fn close(&self) {
        self.0.close();
    }
}

/// Requests on their way; `None` once it has ended.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Upload(std::sync::Mutex<Option<emend_binding::Upload>>);

impl Upload {
    fn take(&self) -> Option<emend_binding::Upload> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn sending(&self, request: &str) -> PyResult<impl Future<Output = Result<bool, Error>> + Send + use<>> {
        let upload = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let upload = upload.as_ref().ok_or_else(|| raised(&background::ended()))?;
        Ok(upload.send(request))
    }

    fn finishing(&self) -> impl Future<Output = Result<String, Error>> + Send + use<> {
        let upload = self.take().ok_or_else(background::ended);
        async move { upload?.finish().await }
    }
}

#[pymethods]
impl Upload {
    /// Sends a request once there is room; whether the service takes more.
    fn send(&self, py: Python<'_>, request: &str) -> PyResult<bool> {
        wait(py, self.sending(request)?)
    }

    /// The same for asyncio.
    fn start_send(&self, request: &str, done: Py<PyAny>) -> PyResult<Task> {
        start(self.sending(request)?, done)
    }

    /// Waits for the answer to all requests.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        wait(py, self.finishing())
    }

    /// The same for asyncio.
    fn start_finish(&self, done: Py<PyAny>) -> PyResult<Task> {
        start(self.finishing(), done)
    }

    /// Gives it up, unless it has ended.
    fn cancel(&self) {
        drop(self.take());
    }
}

/// The answers of a stream.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Answers(Arc<Mutex<emend_binding::Answers>>);

impl From<emend_binding::Answers> for Answers {
    fn from(answers: emend_binding::Answers) -> Self {
        Self(Arc::new(Mutex::new(answers)))
    }
}

impl Answers {
    fn following(&self) -> impl Future<Output = Result<Option<String>, Error>> + Send + use<> {
        let answers = Arc::clone(&self.0);
        async move { answers.lock().await.next().await }
    }
}

#[pymethods]
impl Answers {
    /// Waits for the next one; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        wait(py, self.following())
    }

    /// The same for asyncio.
    fn start_next(&self, done: Py<PyAny>) -> PyResult<Task> {
        start(self.following(), done)
    }
}

/// Records what was searched, in the background.
#[pyclass(frozen, module = "emend._emend")]
pub(crate) struct Recorder(emend_binding::Recorder);

#[pymethods]
impl Recorder {
    #[new]
    fn new(py: Python<'_>, settings: &str, namespace: &str) -> PyResult<Self> {
        let made = py.detach(|| emend_binding::Recorder::new(client(settings)?, namespace));
        made.map(Self).map_err(|error| raised(&error))
    }

    fn query(&self, json: &str) -> PyResult<bool> {
        self.0.query(json).map_err(|error| raised(&error))
    }

    fn interaction(&self, json: &str) -> PyResult<bool> {
        self.0.interaction(json).map_err(|error| raised(&error))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.0.flush())
    }

    fn start_flush(&self, done: Py<PyAny>) -> PyResult<Task> {
        start(self.0.flush(), done)
    }

    /// How many were sent, dropped and invalid.
    fn counts(&self) -> PyResult<(u64, u64, u64)> {
        let counts = self.0.counts().map_err(|error| raised(&error))?;
        Ok((counts.sent, counts.dropped, counts.invalid))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, self.0.close())
    }

    fn start_close(&self, done: Py<PyAny>) -> PyResult<Task> {
        start(self.0.close(), done)
    }
}
