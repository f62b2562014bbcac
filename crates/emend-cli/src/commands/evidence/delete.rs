//! `emend evidence delete`: takes out of the evidence graph what was put there wrongly.

use emend_proto::learning::v1::{DeleteEvidenceRequest, DeleteEvidenceResponse};
use serde_json::json;

use crate::{
    context::Context,
    failure::Result,
    output::{Output, counted},
};

/// What to delete.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  emend evidence delete --page page:1 --edge e7 --reason \"the page is gone\"

With authentication it needs the role evidence-writer.")]
#[command(group = clap::ArgGroup::new("elements").args(["page", "fragment", "claim", "edge"]).required(true).multiple(true))]
pub(super) struct Args {
    /// A page, with its fragments and all edges of these; repeatable
    #[arg(long, value_name = "ID")]
    page: Vec<String>,
    /// A fragment, with its edges; repeatable
    #[arg(long, value_name = "ID")]
    fragment: Vec<String>,
    /// A claim, with the edges from and to it; repeatable
    #[arg(long, value_name = "ID")]
    claim: Vec<String>,
    /// An edge; repeatable
    #[arg(long, value_name = "ID")]
    edge: Vec<String>,
    /// Why; kept with the events
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

/// Deletes elements with what hangs on them.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let request = DeleteEvidenceRequest {
        namespace: context.namespace(),
        page_ids: args.page,
        fragment_ids: args.fragment,
        claim_ids: args.claim,
        edge_ids: args.edge,
        reason: args.reason,
        on_behalf_of: String::new(),
    };
    let mut client = context.evidence().await?;
    let request = context.request_without_deadline(request);
    let DeleteEvidenceResponse {
        pages,
        fragments,
        claims,
        edges,
    } = client.delete_evidence(request).await?.into_inner();
    let json = json!({"pages": pages, "fragments": fragments, "claims": claims, "edges": edges});
    output.result(&json, || match pages + fragments + claims + edges {
        0 => "nothing was deleted: none of these is known".to_owned(),
        _ => format!(
            "deleted: {}, {}, {}, {}",
            counted(pages, "page", "pages"),
            counted(fragments, "fragment", "fragments"),
            counted(claims, "claim", "claims"),
            counted(edges, "edge", "edges"),
        ),
    })
}
