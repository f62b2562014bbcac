//! The scene about what an AI is asked with: bad summaries, a better prompt, and what both nodes render.

use emend_client::{LearnedView, Rating, RenderOptions, Submission};
use emend_proto::learning::v1::{ApproveCandidateRequest, GenerateImprovementRequest, RenderPromptRequest};
use tokio::time::Instant;

use super::{
    day::Day,
    nodes::TIMEOUT,
    script::{BadSummaries, NAMESPACE, Question},
};
use crate::{
    evaluation::wait_until_evaluated,
    failure::{Failure, Result},
};

impl Day {
    /// Each reporter finds a summary bad, then a better prompt is proposed. Returns the revision of the last rating, and what
    /// the proposal changes.
    pub(super) async fn rate_and_propose(
        &mut self,
        target: Question,
        bad: &BadSummaries,
    ) -> Result<(Option<i64>, Vec<String>)> {
        let mut revision = None;
        for (number, reporter) in bad.reporters.iter().enumerate() {
            let rating = Rating {
                target: target.phrase.into(),
                value: "BAD".into(),
                target_id: format!("summary-{}-{number}", bad.version),
                input_text: bad.input.into(),
                output_text: bad.output.into(),
                issues: vec![bad.issue.into()],
                corrected_text: bad.corrected.into(),
                prompt_version: bad.version.into(),
                ..Rating::default()
            };
            let submission = Submission::rating(NAMESPACE, rating)
                .reporter(*reporter)
                .client("emend-demo")
                .wait_evaluated();
            let recorded = self
                .feedback
                .submit(submission)
                .await
                .map_err(|error| Failure::Refused(Box::new(error.0)))?;
            let deadline = Instant::now() + TIMEOUT;
            let recorded = wait_until_evaluated(&self.feedback, &self.namespace, recorded, deadline).await?;
            revision = recorded
                .applied_revision()
                .map(|revision| revision.0)
                .or(revision);
        }
        let request = GenerateImprovementRequest {
            namespace: NAMESPACE.into(),
            target: target.phrase.into(),
            ..GenerateImprovementRequest::default()
        };
        let mut client = self.context.outputs().await?;
        let generated = client
            .generate_improvement(self.context.request(request))
            .await?
            .into_inner();
        self.proposed = generated.candidate.unwrap_or_default().candidate_id;
        let improvement = generated.improvement.unwrap_or_default();
        Ok((revision, improvement.diff.lines().map(str::to_owned).collect()))
    }

    /// Approves what was proposed last. Returns the revision.
    pub(super) async fn approve_proposal(&self) -> Result<i64> {
        let request = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: self.proposed.clone(),
            on_behalf_of: "dana".into(),
            ..ApproveCandidateRequest::default()
        };
        let mut client = self.context.candidates().await?;
        let approved = client.approve_candidate(self.context.request(request)).await?;
        Ok(approved.into_inner().revision)
    }

    /// What a node renders for a target: the version, and the text as it is sent.
    pub(super) fn rendered(&self, view: &LearnedView, target: &str) -> Result<Option<(u32, String)>> {
        let rendered = view
            .render(&self.namespace, target, &RenderOptions::default())
            .map_err(|violations| Failure::failed(violations.to_string()))?;
        Ok(rendered.map(|rendered| (rendered.version, rendered.text)))
    }

    /// What learning-svc renders from a state as new as the nodes'.
    pub(super) async fn server_renders(&self, target: &str) -> Result<String> {
        let request = RenderPromptRequest {
            namespace: NAMESPACE.into(),
            target: target.into(),
            min_revision: self.newest,
            ..RenderPromptRequest::default()
        };
        let mut client = self.context.outputs().await?;
        let rendered = client.render_prompt(self.context.request(request)).await?;
        Ok(rendered.into_inner().text)
    }
}
