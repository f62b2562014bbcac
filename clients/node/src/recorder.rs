//! Recording what was searched.

use emend_binding::Error;
use napi::{Env, Result, bindgen_prelude::Object};
use napi_derive::napi;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{thrown, told, told_of},
    client::connected,
    running::run,
};

/// See `lib/recorder.js`.
#[napi]
pub struct Recorder(emend_binding::Recorder);

#[napi]
impl Recorder {
    /// A recorder for a namespace, with these settings of the connection, JSON.
    #[napi(constructor)]
    pub fn new(settings: String, namespace: String) -> Result<Self> {
        let recorder =
            connected(&settings).and_then(|client| emend_binding::Recorder::new(client, &namespace));
        recorder.map(Self).map_err(|error| thrown(&error))
    }

    /// Records a query, JSON.
    #[napi]
    pub fn query(&self, query: String) -> Result<bool> {
        self.0.query(&query).map_err(|error| thrown(&error))
    }

    /// Records an interaction, JSON.
    #[napi]
    pub fn interaction(&self, interaction: String) -> Result<bool> {
        self.0.interaction(&interaction).map_err(|error| thrown(&error))
    }

    /// Waits until all that was recorded before is sent or dropped.
    #[napi]
    pub fn flush<'env>(&self, env: &'env Env, id: u32) -> Result<Object<'env>> {
        finish(env, id, self.0.flush())
    }

    /// What became of what was recorded.
    #[napi]
    pub fn counts(&self) -> String {
        let counts = self.0.counts();
        let shown = counts.map(|counts| {
            json!({ "sent": counts.sent, "dropped": counts.dropped, "invalid": counts.invalid }).to_string()
        });
        told(shown)
    }

    /// Sends what is queued, for 2 s at most, and stops.
    #[napi]
    pub fn close<'env>(&self, env: &'env Env, id: u32) -> Result<Object<'env>> {
        finish(env, id, self.0.close())
    }
}

fn finish(
    env: &Env,
    id: u32,
    work: impl Future<Output = std::result::Result<(), Error>> + Send + 'static,
) -> Result<Object<'_>> {
    run(env, id, &CancellationToken::new(), async { told_of(work.await) })
}
