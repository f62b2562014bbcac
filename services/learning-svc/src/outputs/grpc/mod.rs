//! The output service.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod parse;
pub(crate) mod render;

use emend_base::Error;
use emend_proto::learning::v1::{self as pb, output_service_server::OutputService};
use emend_serve::{auth::Call, caller::caller_of, server::deadline::deadline_of};
use emend_wire::page;
use futures::stream::{self, BoxStream, StreamExt as _};
use learning_store::outputs::improvements::VersionRecord;
use tonic::{Request, Response, Status};

use crate::{
    export_slots::ExportSlots,
    grpc::{candidates::candidate, labels},
    outputs::{
        Outputs,
        preview::RunSlots,
        rendered::{self, current},
    },
    roles::open,
    stream::Stream,
};

/// Serves the use cases of prompts, and renders from what nodes hold.
#[derive(Clone)]
pub(crate) struct OutputHandler {
    outputs: Outputs,
    stream: Stream,
    runs: RunSlots,
    exports: ExportSlots,
}

impl OutputHandler {
    /// Serves the use cases of `outputs`, and renders from `stream`.
    pub(crate) fn new(outputs: Outputs, stream: Stream) -> Self {
        Self {
            outputs,
            stream,
            runs: RunSlots::default(),
            exports: ExportSlots::default(),
        }
    }
}

#[tonic::async_trait]
impl OutputService for OutputHandler {
    type ExportExamplesStream = BoxStream<'static, Result<pb::ExportExamplesResponse, Status>>;

    async fn render_prompt(
        &self,
        request: Request<pb::RenderPromptRequest>,
    ) -> Result<Response<pb::RenderPromptResponse>, Status> {
        let deadline = deadline_of(&request);
        let Call { message, .. } = open(request)?;
        let (asked, min_revision) = parse::render(message).map_err(Error::from)?;
        let state = self.stream.wait_for(min_revision.0, deadline).await?;
        let rendered = rendered::render(&state, &asked)?;
        let rendered = rendered.ok_or_else(|| {
            Error::not_found("prompt", format!("{}/{}", asked.key.key, asked.key.qualifier))
        })?;
        Ok(Response::new(render::rendered(rendered)))
    }

    async fn get_output_stats(
        &self,
        request: Request<pb::GetOutputStatsRequest>,
    ) -> Result<Response<pb::GetOutputStatsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let key = parse::target(&message.namespace, &message.target).map_err(Error::from)?;
        let stats = self.outputs.stats(&key).await?;
        Ok(Response::new(render::stats(stats)))
    }

    async fn list_output_stats(
        &self,
        request: Request<pb::ListOutputStatsRequest>,
    ) -> Result<Response<pb::ListOutputStatsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let query = parse::stats_query(&message);
        let (namespace, after, limit) = parse::stats(&message, query).map_err(Error::from)?;
        let (targets, more) = self.outputs.all_stats(&namespace, &after, limit).await?;
        let targets = targets.into_iter().map(|(target, stats)| pb::TargetStats {
            target,
            stats: Some(render::stats(stats)),
        });
        let (targets, was_cut) = page::cut(targets.collect());
        let last = targets.last().filter(|_| more || was_cut);
        let next = last.map(|last| page::token(query, last.target.as_bytes()));
        Ok(Response::new(pb::ListOutputStatsResponse {
            next_page_token: next.unwrap_or_default(),
            targets,
        }))
    }

    async fn list_prompt_versions(
        &self,
        request: Request<pb::ListPromptVersionsRequest>,
    ) -> Result<Response<pb::ListPromptVersionsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let query = parse::versions_query(&message);
        let (wanted, limit) = parse::versions(&message, query).map_err(Error::from)?;
        let (versions, places, more) = match wanted {
            parse::Versions::Of { key, before } => {
                let (versions, more) = self.outputs.prompt_versions(&key, before, limit).await?;
                let number = |(version, _): &(VersionRecord, u64)| {
                    let kept = version.record.candidate.proposal;
                    kept.map_or(0, |kept| i64::from(kept.version))
                };
                let places = versions.iter().map(number).collect();
                (versions, places, more)
            }
            parse::Versions::Redacted {
                namespace,
                key,
                after,
            } => {
                let found = self
                    .outputs
                    .redacted_versions(&namespace, key.as_ref(), after, limit)
                    .await?;
                (found.versions, found.places, found.more)
            }
        };
        let (versions, was_cut) = page::cut(versions.iter().map(render::version).collect());
        let shown = versions.len().checked_sub(1).filter(|_| more || was_cut);
        let next = shown.and_then(|last| places.get(last));
        let next = next.map(|place: &i64| page::number_token(query, *place));
        Ok(Response::new(pb::ListPromptVersionsResponse {
            versions,
            next_page_token: next.unwrap_or_default(),
        }))
    }

    async fn preview_improvement(
        &self,
        request: Request<pb::PreviewImprovementRequest>,
    ) -> Result<Response<pb::PreviewImprovementResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let (namespace, candidate, inputs) = parse::preview(&message).map_err(Error::from)?;
        let preview = self
            .outputs
            .preview(&namespace, candidate, inputs, &self.runs)
            .await?;
        Ok(Response::new(render::preview(preview)))
    }

    async fn generate_improvement(
        &self,
        request: Request<pb::GenerateImprovementRequest>,
    ) -> Result<Response<pb::GenerateImprovementResponse>, Status> {
        let caller = caller_of(&request);
        let Call { message, .. } = open(request)?;
        let (key, actor) = parse::generate(&caller, &message).map_err(Error::from)?;
        let record = self.outputs.generate_improvement(&key, &actor).await?;
        let improvement = self.outputs.improvement(&record).await?;
        Ok(Response::new(pb::GenerateImprovementResponse {
            candidate: Some(candidate(&record)),
            improvement: improvement.map(render::improvement),
        }))
    }

    async fn use_prompt_version(
        &self,
        request: Request<pb::UsePromptVersionRequest>,
    ) -> Result<Response<pb::UsePromptVersionResponse>, Status> {
        let caller = caller_of(&request);
        let Call { message, .. } = open(request)?;
        let wanted = parse::use_version(&caller, &message).map_err(Error::from)?;
        let state = self.stream.state().ok();
        let warning = state.and_then(|state| labels::warning(&state, &wanted.key));
        let (version, redacted, revision) = self.outputs.use_version(&wanted).await?;
        Ok(Response::new(pb::UsePromptVersionResponse {
            version: Some(render::version(&(version, redacted))),
            revision: revision.0,
            warnings: warning.into_iter().collect(),
        }))
    }

    async fn export_examples(
        &self,
        request: Request<pb::ExportExamplesRequest>,
    ) -> Result<Response<Self::ExportExamplesStream>, Status> {
        let Call { message, .. } = open(request)?;
        let (key, format) = parse::export(&message).map_err(Error::from)?;
        let slot = self.exports.take()?;
        let prompt = current(&*self.stream.state()?, &key)?.map(|(prompt, _)| prompt);
        let pages = self.outputs.export_examples(&key, format, prompt, slot);
        let messages = pages.map(|page| match page {
            Ok(lines) => lines
                .into_iter()
                .map(|line| Ok(pb::ExportExamplesResponse { line }))
                .collect(),
            Err(error) => vec![Err(Status::from(error))],
        });
        Ok(Response::new(messages.flat_map(stream::iter).boxed()))
    }
}
