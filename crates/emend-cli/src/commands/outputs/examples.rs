//! `emend outputs examples`: the examples that ratings become.

use emend_core::{Kind, Language, Learned, outputs::render};
use emend_proto::{common::v1::Resource, learning::v1::ListResourcesRequest};

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view, words,
};

/// All sets, or one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend outputs examples
  emend outputs examples --render INTERPRET")]
pub(super) struct Args {
    /// Show the examples for this target, as they stand below a prompt
    #[arg(long, value_name = "TARGET", value_parser = words::target)]
    render: Option<String>,
}

/// Lists the sets, or shows one.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let sets = sets(context).await?;
    let Some(target) = args.render else {
        return output.results(&sets, view::message, sets_table, &context.none_of("examples"));
    };
    let set = sets
        .iter()
        .find(|set| set.key.as_ref().is_some_and(|key| key.key == target))
        .ok_or_else(|| {
            Failure::failed(format!(
                "there are no examples for {target}: nobody rated it good or bad"
            ))
        })?;
    output.result(&view::message(set), || text(set))
}

async fn sets(context: &Context) -> Result<Vec<Resource>> {
    let request = ListResourcesRequest {
        namespace: context.namespace(),
        kinds: vec![Kind::FewShotSet.number()],
        ..ListResourcesRequest::default()
    };
    Ok(context.list(&request, 0).await?.0)
}

fn sets_table(sets: &[Resource]) -> Table {
    Table::new([
        ("TARGET", Column::Text),
        ("EXAMPLES", Column::Text),
        ("REVISION", Column::Number),
        ("COMMITTED", Column::Time),
    ])
    .with_rows(sets, |set| {
        [
            set.key.clone().unwrap_or_default().key,
            view::value_text(set.value.as_ref()),
            set.revision.to_string(),
            view::short_time(set.committed_at.as_ref()),
        ]
    })
}

/// The examples as they stand below a prompt.
fn text(set: &Resource) -> String {
    match view::learned(set.value.as_ref()) {
        Some(Learned::FewShotSet(set)) => {
            let language: Language = set.language;
            render("", &set, language).trim_start().to_owned()
        }
        _ => String::new(),
    }
}
