//! Why a stream ended.

use std::time::Duration;

use emend_base::status::Explained;
use emend_core::InstallationId;
use tonic::Status;

use crate::replica::ProtocolViolation;

/// Why a stream ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The subscriber is asked to stop.
    Stopped,
    /// The server asked for it with a Drain.
    Drained {
        reconnect_after: Duration,
        reason: String,
    },
    /// The digests differ: a snapshot is needed.
    Mismatch,
    /// Another installation answers than the one whose resources are held.
    OtherInstallation(InstallationId),
    /// The server broke the protocol.
    Violation(ProtocolViolation),
    /// The connection or the call failed.
    Failed {
        reason: String,
        retry_after: Option<Duration>,
        status: Option<Box<Explained>>,
    },
}

impl Ended {
    /// The status with which the server refused or ended it, if it gave one.
    pub(super) fn status(&self) -> Option<Box<Explained>> {
        match self {
            Self::Failed { status, .. } => status.clone(),
            _ => None,
        }
    }

    /// The installation that answered instead of the one whose resources are held.
    pub(super) fn other_installation(&self) -> Option<InstallationId> {
        match self {
            Self::OtherInstallation(answering) => Some(*answering),
            _ => None,
        }
    }

    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self::Failed {
            reason: reason.into(),
            retry_after: None,
            status: None,
        }
    }
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        let explained = Explained::from(&status);
        Self::Failed {
            reason: explained.to_string(),
            retry_after: explained.retry_after,
            status: Some(Box::new(explained)),
        }
    }
}
