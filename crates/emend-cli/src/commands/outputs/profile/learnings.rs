//! What there is to learn, in the order that a user's profile gives it.

use std::path::PathBuf;

use emend_proto::learning::v1::{Learning, LearningLevel, RankLearningsRequest};
use serde::Deserialize;
use serde_json::json;

use super::User;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    transfer::source,
};

/// The bytes of a file of what there is to learn, at most.
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    user: User,
    /// What there is to learn, or - for standard input: a JSON object a line, {"id", "topics", "level"}; the level is BASIC,
    /// INTERMEDIATE or ADVANCED, and BASIC where none is given
    file: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    id: String,
    #[serde(default)]
    topics: Vec<String>,
    #[serde(default)]
    level: Level,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Level {
    #[default]
    Basic,
    Intermediate,
    Advanced,
}

impl From<Item> for Learning {
    fn from(item: Item) -> Self {
        let level = match item.level {
            Level::Basic => LearningLevel::Basic,
            Level::Intermediate => LearningLevel::Intermediate,
            Level::Advanced => LearningLevel::Advanced,
        };
        Self {
            id: item.id,
            topics: item.topics,
            level: level.into(),
        }
    }
}

fn learnings(text: &str) -> Result<Vec<Learning>, String> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| {
            let item = serde_json::from_str::<Item>(line);
            let item = item.map_err(|error| format!("line {}: {error}", index + 1))?;
            Ok(Learning::from(item))
        })
        .collect()
}

pub(super) async fn rank(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let text = source::text(&args.file, MAX_BYTES)?;
    let learnings =
        learnings(&text).map_err(|error| Failure::usage(format!("{}: {error}", args.file.display())))?;
    let request = RankLearningsRequest {
        namespace: context.namespace(),
        user_id: args.user.user,
        learnings,
    };
    let mut client = context.profiles().await?;
    let ranked = client
        .rank_learnings(context.request(request))
        .await?
        .into_inner();
    let json = json!({"ids": ranked.ids, "leftOutIds": ranked.left_out_ids});
    output.result(&json, || match &ranked.ids[..] {
        [] => "Nothing is left: the user knows the basics of all of it".to_owned(),
        ids => ids.join("\n"),
    })
}
