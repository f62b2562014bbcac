//! The RPCs of erasure.

use std::time::Duration;

use emend_base::Error;
use emend_core::{Namespace, ReporterId, Violations};
use emend_proto::feedback::v1 as pb;
use emend_serve::{auth::Call, server::deadline::deadline_of};
use tonic::{Request, Response, Status};

use crate::{
    corrections::{
        grpc::{latest, parse, render, until},
        present::Standings,
    },
    erasure::redact::{Erased, Erasures},
    origin::Origin,
    roles::open,
};

/// The longest that one call goes on erasing a reporter.
const LONGEST_ERASURE: Duration = Duration::from_secs(10);

impl Erasures {
    pub(crate) async fn redact_feedback(
        &self,
        request: Request<pb::RedactFeedbackRequest>,
    ) -> Result<Response<pb::RedactFeedbackResponse>, Status> {
        let (origin, until) = (Origin::of(&request), until(&request));
        let Call { message, .. } = open(request)?;
        let (namespace, id, wait) = parse::redaction(&message).map_err(Error::from)?;
        let feedback = self.redact(&origin, namespace, id, until(wait)).await?;
        Ok(Response::new(pb::RedactFeedbackResponse {
            feedback: Some(render::feedback(feedback, &Standings::default())?),
        }))
    }

    pub(crate) async fn redact_reporter(
        &self,
        request: Request<pb::RedactReporterRequest>,
    ) -> Result<Response<pb::RedactReporterResponse>, Status> {
        let origin = Origin::of(&request);
        let until = latest(LONGEST_ERASURE, deadline_of(&request));
        let Call { message, .. } = open(request)?;
        let (namespace, reporter) = reporter(&message).map_err(Error::from)?;
        let erased = self.erase_reporter(&origin, namespace, reporter, until).await?;
        Ok(Response::new(erasure_message(erased)))
    }
}

/// Whom to erase.
fn reporter(request: &pb::RedactReporterRequest) -> Result<(Namespace, ReporterId), Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let reporter = violations.check("reporter_id", ReporterId::parse(&request.reporter_id));
    violations.finish(namespace.zip(reporter))
}

/// How far it is.
fn erasure_message(erased: Erased) -> pb::RedactReporterResponse {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    pb::RedactReporterResponse {
        redacted_count: count(erased.redacted),
        remaining_count: count(erased.left.remaining),
        undelivered_count: count(erased.left.undelivered),
    }
}
