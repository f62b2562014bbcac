//! Connections that are kept: a process that calls for many opens one to each service, which mends itself.

use emend_base::tls::Remote;
use tokio::sync::OnceCell;

use super::Connection;
use crate::failure::Result;

/// One connection to each service, opened by the first call.
#[derive(Debug)]
pub(super) struct Kept {
    feedback: (Remote, OnceCell<Connection>),
    learning: (Remote, OnceCell<Connection>),
}

impl Kept {
    pub(super) fn new(feedback: Remote, learning: Remote) -> Self {
        Self {
            feedback: (feedback, OnceCell::new()),
            learning: (learning, OnceCell::new()),
        }
    }

    pub(super) fn feedback_remote(&self) -> Remote {
        self.feedback.0.clone()
    }

    pub(super) fn learning_remote(&self) -> Remote {
        self.learning.0.clone()
    }

    /// The connection to feedback-svc, which `connected` opens if there is none yet.
    pub(super) async fn feedback(
        &self,
        connected: impl Future<Output = Result<Connection>>,
    ) -> Result<Connection> {
        self.feedback.1.get_or_try_init(|| connected).await.cloned()
    }

    /// The connection to learning-svc, which `connected` opens if there is none yet.
    pub(super) async fn learning(
        &self,
        connected: impl Future<Output = Result<Connection>>,
    ) -> Result<Connection> {
        self.learning.1.get_or_try_init(|| connected).await.cloned()
    }
}
