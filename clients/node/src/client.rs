//! Calls of a service.

use std::{pin::Pin, sync::Arc, time::Duration};

use emend_binding::{Answers, ConnectionSettings, Error, FieldNames, background};
use napi::{Env, Result, bindgen_prelude::Object};
use napi_derive::napi;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{thrown, told, told_of},
    running::run,
};

/// See `Service` in `lib/connection.js`.
#[napi]
pub struct Client {
    client: emend_binding::Client,
    open: CancellationToken,
}

#[napi]
impl Client {
    /// A client with these settings, JSON.
    #[napi(constructor)]
    pub fn new(settings: String) -> Result<Self> {
        Ok(Self {
            client: connected(&settings).map_err(|error| thrown(&error))?,
            open: CancellationToken::new(),
        })
    }

    /// Calls a method, within so many milliseconds.
    #[napi]
    pub fn call<'env>(
        &self,
        env: &'env Env,
        id: u32,
        method: String,
        request: String,
        timeout: u32,
    ) -> Result<Object<'env>> {
        let call = self.client.call(&method, &request, Some(milliseconds(timeout)));
        run(env, id, &self.open, async { told(call.await) })
    }

    /// Begins a call of a method that takes a stream of requests, within so many milliseconds; 0: ten minutes.
    #[napi]
    pub fn upload(&self, method: String, timeout: u32) -> Result<Upload> {
        let deadline = (timeout > 0).then(|| milliseconds(timeout));
        let upload = self.client.upload(&method, deadline);
        Ok(Upload {
            upload: Mutex::new(Some(upload.map_err(|error| thrown(&error))?)),
            open: self.open.child_token(),
        })
    }

    /// Calls a method that answers with a stream. The time limit is for its first answer; 0: the client's.
    #[napi]
    pub fn stream(&self, method: String, request: String, timeout: u32) -> Stream {
        let deadline = (timeout > 0).then(|| milliseconds(timeout));
        let opening = self.client.stream(&method, &request, deadline);
        Stream {
            answers: Arc::new(Mutex::new(Streamed::Opening(Box::pin(opening)))),
            open: self.open.child_token(),
        }
    }

    /// Ends what is under way, and closes the connection.
    #[napi]
    pub fn close(&self) {
        self.open.cancel();
        self.client.close();
    }
}

/// Requests on their way to a method that takes a stream of them.
#[napi]
pub struct Upload {
    upload: Mutex<Option<emend_binding::Upload>>,
    open: CancellationToken,
}

#[napi]
impl Upload {
    /// Sends a request once there is room; whether the service takes more.
    #[napi]
    pub fn send<'env>(&self, env: &'env Env, id: u32, request: String) -> Result<Object<'env>> {
        let sending = self
            .upload
            .try_lock()
            .ok()
            .and_then(|upload| upload.as_ref().map(|upload| upload.send(&request)));
        run(env, id, &self.open, async {
            told_of(match sending {
                Some(sending) => sending.await,
                None => Err(background::ended()),
            })
        })
    }

    /// Ends the requests; the answer to all of them.
    #[napi]
    pub fn finish<'env>(&self, env: &'env Env, id: u32) -> Result<Object<'env>> {
        let upload = self.upload.try_lock().ok().and_then(|mut upload| upload.take());
        run(env, id, &self.open, async {
            told(match upload {
                Some(upload) => upload.finish().await,
                None => Err(background::ended()),
            })
        })
    }

    /// Gives it up, unless it has ended.
    #[napi]
    pub fn close(&self) {
        if let Ok(mut upload) = self.upload.try_lock() {
            *upload = None;
        }
        self.open.cancel();
    }
}

/// What a service streams.
#[napi]
pub struct Stream {
    answers: Arc<Mutex<Streamed>>,
    open: CancellationToken,
}

/// What opens a stream.
type Opening = Pin<Box<dyn Future<Output = std::result::Result<Answers, Error>> + Send>>;

/// How far a stream is.
enum Streamed {
    Opening(Opening),
    Open(Box<Answers>),
    Ended,
}

#[napi]
impl Stream {
    /// The next message; null at the end.
    #[napi]
    pub fn next<'env>(&self, env: &'env Env, id: u32) -> Result<Object<'env>> {
        let answers = Arc::clone(&self.answers);
        run(env, id, &self.open, async move {
            told(next(&mut *answers.lock().await).await)
        })
    }

    /// Ends it.
    #[napi]
    pub fn close(&self) {
        self.open.cancel();
        if let Ok(mut answers) = self.answers.try_lock() {
            *answers = Streamed::Ended;
        }
    }
}

async fn next(streamed: &mut Streamed) -> std::result::Result<String, Error> {
    if let Streamed::Opening(opening) = streamed {
        *streamed = match opening.await {
            Ok(answers) => Streamed::Open(Box::new(answers)),
            Err(error) => {
                *streamed = Streamed::Ended;
                return Err(error);
            }
        };
    }
    let Streamed::Open(answers) = streamed else {
        return Ok("null".to_owned());
    };
    let next = answers.next().await;
    if !matches!(next, Ok(Some(_))) {
        *streamed = Streamed::Ended;
    }
    Ok(next?.unwrap_or_else(|| "null".to_owned()))
}

/// A client whose answers have their fields in camelCase.
pub(crate) fn connected(settings: &str) -> std::result::Result<emend_binding::Client, Error> {
    emend_binding::Client::new(ConnectionSettings::from_json(settings)?, FieldNames::CamelCase)
}

fn milliseconds(count: u32) -> Duration {
    Duration::from_millis(count.into())
}
