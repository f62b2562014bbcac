//! Which namespaces the edge answers for: those that its configuration names, else those that its own token may read.
//!
//! A namespace that it does not follow is refused. It would otherwise be answered as one in which nothing was learned.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwapOption;
use emend_base::Lifecycle;
use emend_binding::{Client, ConnectionSettings, Error, FieldNames, NodeSettings};
use serde::Deserialize;
use tokio::time::sleep;

/// What learning-svc tells of a caller's rights.
const GET_ACCESS: &str = "AccessService/GetAccess";
/// How long until it is asked again.
const AGAIN: Duration = Duration::from_mins(1);
/// The same after it did not answer.
const SOON: Duration = Duration::from_secs(2);

/// The namespaces that an edge answers for.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    /// None: all, or nobody has said yet.
    only: ArcSwapOption<Vec<String>>,
}

/// What its own token may read.
#[derive(Debug, Deserialize)]
struct Granted {
    #[serde(default)]
    all_namespaces: bool,
    #[serde(default)]
    namespaces: Vec<String>,
}

impl Followed {
    /// Those that the settings name, or else those that the node may read, which it asks for as long as the lifecycle runs.
    pub(crate) fn by(node: &NodeSettings, lifecycle: &Lifecycle) -> Result<Arc<Self>, Error> {
        let followed = Arc::new(Self::default());
        if node.namespaces.is_empty() {
            let client = Client::new(
                ConnectionSettings {
                    deadline: Some(10.0),
                    ..node.connection.clone()
                },
                FieldNames::SnakeCase,
            )?;
            let (kept, stop) = (Arc::clone(&followed), lifecycle.soft().clone());
            lifecycle.spawn("ask which namespaces the edge may read", async move {
                loop {
                    let wait = kept.run_once(&client).await;
                    tokio::select! {
                        () = stop.cancelled() => return,
                        () = sleep(wait) => {}
                    }
                }
            });
        } else {
            followed.only.store(Some(Arc::new(node.namespaces.clone())));
        }
        Ok(followed)
    }

    /// Asks once what the edge may read; returns how long to wait before the next time.
    async fn run_once(&self, client: &Client) -> Duration {
        let answer = client.call(GET_ACCESS, "{}", None).await;
        let granted = answer.map(|answer| serde_json::from_str::<Granted>(&answer));
        match granted {
            Ok(Ok(granted)) => {
                let only = (!granted.all_namespaces).then_some(granted.namespaces);
                self.only.store(only.map(Arc::new));
                AGAIN
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "what the edge may read was answered in a form that is not known");
                AGAIN
            }
            Err(error) => {
                tracing::debug!(%error, "what the edge may read is not known yet");
                SOON
            }
        }
    }

    /// Refuses a namespace that is known not to be followed.
    pub(crate) fn check(&self, namespace: &str) -> Result<(), Error> {
        let only = self.only.load();
        match &*only {
            Some(only) if !only.iter().any(|followed| followed == namespace) => {
                let followed = match only.as_slice() {
                    [] => "none".to_owned(),
                    only => only.join(", "),
                };
                Err(Error::not_found(format!(
                    "the edge does not follow the namespace {namespace:?}: it follows {followed}"
                )))
            }
            _ => Ok(()),
        }
    }
}
