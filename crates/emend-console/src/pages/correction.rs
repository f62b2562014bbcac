//! Submitting a correction as the one who looks.

use emend_proto::{
    common::v1::{Correction, Reporter, correction::Correction as Form},
    feedback::v1::{Feedback, SubmitFeedbackRequest, Wait},
};
use tonic::Status;

use crate::page::Visitor;

/// What is said beside the correction.
#[derive(Debug, Default)]
pub(crate) struct Said<'s> {
    /// Why.
    pub reason: &'s str,
    /// Who says it, where that is somebody else than the one who looks.
    pub reporter: &'s str,
    /// Makes it safe to send a form twice; may be empty.
    pub request_id: &'s str,
}

/// Submits a correction, and waits until it is evaluated.
pub(crate) async fn submit(visitor: &Visitor, form: Form, said: Said<'_>) -> Result<Feedback, Status> {
    let reporter = if said.reporter.is_empty() {
        visitor.name()
    } else {
        said.reporter.to_owned()
    };
    let request = visitor.services.call(SubmitFeedbackRequest {
        request_id: said.request_id.to_owned(),
        namespace: visitor.namespace.clone(),
        reporter: Some(Reporter {
            id: reporter,
            client: concat!("emend-console/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Reporter::default()
        }),
        reason: said.reason.to_owned(),
        wait: Wait::Evaluated as i32,
        correction: Some(Correction {
            correction: Some(form),
        }),
        ..SubmitFeedbackRequest::default()
    });
    let answer = visitor.services.feedback().submit_feedback(request).await?;
    Ok(answer.into_inner().feedback.unwrap_or_default())
}
