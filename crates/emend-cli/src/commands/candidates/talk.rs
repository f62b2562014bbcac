//! What reviewers ask and tell each other about a candidate.

use emend_proto::learning::v1::{AskSecondOpinionRequest, CommentOnCandidateRequest};

use crate::{commands::ids, context::Context, failure::Result, output::Output, view};

/// What to ask, and whom.
#[derive(Debug, clap::Args)]
pub(super) struct AskArgs {
    /// The candidate's id
    candidate_id: String,
    /// What you want to know
    #[arg(value_name = "TEXT")]
    comment: String,
    /// Who is asked: the name of a caller, or on whose behalf one acts; anybody if left out
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    of: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// What to say.
#[derive(Debug, clap::Args)]
pub(super) struct CommentArgs {
    /// The candidate's id
    candidate_id: String,
    /// What you have to say
    #[arg(value_name = "TEXT")]
    comment: String,
    /// The person on whose behalf you do it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    by: String,
}

/// Asks another reviewer.
pub(super) async fn ask(args: AskArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = AskSecondOpinionRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        comment: args.comment,
        asked: args.of,
        on_behalf_of: args.by,
    };
    let mut client = context.candidates().await?;
    let asked = client.ask_second_opinion(context.request(request)).await?;
    let comment = asked.into_inner().comment.unwrap_or_default();
    output.result(&view::message(&comment), || {
        let who = if comment.asked.is_empty() {
            "Anybody else"
        } else {
            &comment.asked
        };
        format!("{who} is asked: emend candidates list --asked NAME shows what waits for somebody")
    })
}

/// Comments on a candidate.
pub(super) async fn comment(args: CommentArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let request = CommentOnCandidateRequest {
        namespace: context.namespace(),
        candidate_id: ids::candidate(context, args.candidate_id, "").await?,
        comment: args.comment,
        on_behalf_of: args.by,
    };
    let mut client = context.candidates().await?;
    let written = client.comment_on_candidate(context.request(request)).await?;
    let comment = written.into_inner().comment.unwrap_or_default();
    output.result(&view::message(&comment), || "The comment is kept.".to_owned())
}
