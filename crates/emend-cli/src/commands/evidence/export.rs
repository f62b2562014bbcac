//! `emend evidence export`: takes a task out of the evidence graph.

use std::{
    io::{BufWriter, Write as _},
    path::PathBuf,
};

use emend_proto::learning::v1::ExportMaterialsRequest;
use indicatif::ProgressBar;

use crate::{
    commands::export::write_to,
    context::Context,
    failure::Result,
    output::{Output, json_escaped},
    view,
};

/// Which task, and where to.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  emend evidence export t1 --out t1.jsonl

An export has the edges that name the task, as people corrected them. It can be imported.

With authentication it needs the role reviewer.")]
pub(super) struct Args {
    /// The task's id
    task: String,
    /// Show the confidence of claims also by each reading: all edges, and one of each source
    #[arg(long)]
    both_readings: bool,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes a task's pages, fragments, claims and edges as JSON lines.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let request = ExportMaterialsRequest {
        namespace: context.namespace(),
        task_id: args.task,
        both_readings: args.both_readings,
    };
    let mut client = context.evidence().await?;
    let request = context.request_without_deadline(request);
    let mut lines = client.export_materials(request).await?.into_inner();
    write_to(args.out.as_deref(), ("line", "lines"), output, async |to| {
        let mut to = BufWriter::new(to);
        let progress = ProgressBar::new_spinner();
        let mut count = 0;
        while let Some(line) = lines.message().await? {
            let Some(material) = view::evidence::material(&line) else {
                eprintln!("emend: not exported: this version does not know the sort of a line");
                continue;
            };
            writeln!(to, "{}", json_escaped(&material.to_string()))?;
            count += 1;
            progress.inc(1);
        }
        to.flush()?;
        progress.finish_and_clear();
        Ok(count)
    })
    .await
}
