//! The RPCs of ratings, and their requests.

use std::collections::BTreeSet;

use emend_base::Error;
use emend_core::{FeedbackId, Invalid, Namespace, Violations};
use emend_proto::feedback::v1 as pb;
use emend_serve::auth::Call;
use emend_wire::parse;
use feedback_store::records::{
    feedback::FeedbackQuery,
    labels::{LabelChange, MAX_TAGS, Tag},
    ratings::RatingFilter,
};
use tonic::{Request, Response, Status};

use crate::{
    corrections::{
        grpc::{parse::rating_filter, render},
        present::Standings,
    },
    ratings::{
        Ratings,
        export::{Export, Format},
    },
    roles::open,
};

impl Ratings {
    pub(crate) async fn update_feedback_labels(
        &self,
        request: Request<pb::UpdateFeedbackLabelsRequest>,
    ) -> Result<Response<pb::UpdateFeedbackLabelsResponse>, Status> {
        let Call { message, .. } = open(request)?;
        let feedback = self.label(&labels(&message).map_err(Error::from)?).await?;
        Ok(Response::new(pb::UpdateFeedbackLabelsResponse {
            feedback: Some(render::feedback(feedback, &Standings::default())?),
        }))
    }
}

/// Which ratings to export, and how.
pub(crate) fn export(request: &pb::ExportFeedbackRequest) -> Result<Export, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let default = pb::SearchRatingFilter::default();
    let filter = rating_filter(request.search_ratings.as_ref().unwrap_or(&default));
    let filter = violations.part("search_ratings", filter);
    let period = parse::period(
        "received",
        request.received_from.as_ref(),
        request.received_before.as_ref(),
    );
    let period = violations.part("", period);
    let format = match pb::ExportFormat::try_from(request.format) {
        Ok(pb::ExportFormat::Csv) => Ok(Format::Csv),
        Ok(pb::ExportFormat::Jsonl) => Ok(Format::Jsonl),
        Ok(pb::ExportFormat::Pairs) => Ok(Format::Pairs),
        Ok(pb::ExportFormat::Qrels) => Ok(Format::Qrels),
        Ok(pb::ExportFormat::Unspecified) => Err(Invalid::new("is required: CSV, JSONL, PAIRS or QRELS")),
        Err(_) => Err(Invalid::new(format!("is not a known format: {}", request.format))),
    };
    let format = violations.check("format", format);
    let parsed = (|| {
        let (from, before) = period?;
        let query = FeedbackQuery {
            namespace: namespace?,
            reporter: None,
            kind: None,
            target: None,
            rating: None,
            search_ratings: Some(RatingFilter {
                only_counting: true,
                ..filter?
            }),
            delivery: None,
            from,
            before,
            after: None,
            limit: 0,
        };
        Some(Export {
            query,
            format: format?,
            mark_processed: request.mark_processed,
        })
    })();
    violations.finish(parsed)
}

/// What the labels of a rating become.
pub(crate) fn labels(request: &pb::UpdateFeedbackLabelsRequest) -> Result<LabelChange, Violations> {
    let mut violations = Violations::new();
    let namespace = violations.check("namespace", Namespace::parse(&request.namespace));
    let id = violations.check("feedback_id", FeedbackId::parse(&request.feedback_id));
    let set = tags(&mut violations, "set_tags", &request.set_tags);
    let clear = tags(&mut violations, "clear_tags", &request.clear_tags);
    if let Some(both) = set.intersection(&clear).next() {
        violations.add("clear_tags", format!("must not name what set_tags names: {both}"));
    }
    if request.set_tags.is_empty() && request.clear_tags.is_empty() && request.processed.is_none() {
        violations.add(
            "set_tags",
            "is required unless clear_tags or processed is given: there is nothing to do",
        );
    }
    let parsed = namespace.zip(id).map(|(namespace, id)| LabelChange {
        namespace,
        id,
        set,
        clear,
        processed: request.processed,
    });
    violations.finish(parsed)
}

fn tags(violations: &mut Violations, field: &str, raw: &[String]) -> BTreeSet<Tag> {
    if raw.len() > MAX_TAGS {
        violations.add(field, format!("must be at most {MAX_TAGS}, has {}", raw.len()));
    }
    let parsed = raw.iter().take(MAX_TAGS).enumerate();
    parsed
        .filter_map(|(index, tag)| violations.check(&format!("{field}[{index}]"), Tag::parse(tag)))
        .collect()
}
