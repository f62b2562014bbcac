//! `emend resolve`: shows what a node answers for a phrase.

use emend_proto::learning::v1::{BackendCandidate, ResolveRequest, ResolveResponse};

use crate::{
    context::Context,
    failure::Result,
    output::Output,
    view,
    words::{self, AnswerKind, Kind},
};

/// Which phrase to resolve.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend resolve \"set up a CSA\"
  emend resolve \"J. Smith\" --kind entity_alias --user mia
  emend resolve \"wind down the fund\" --backend delete_fund=0.7 --backend liquidate_fund=0.6

The answer is what every node that has applied the same revision answers. That nothing was
learned is an answer too (exit code 0).")]
pub struct Args {
    /// What the user said
    phrase: String,
    /// The kind of resource to look for
    #[arg(long, value_enum, default_value_t = AnswerKind(Kind(emend_core::Kind::InvocationPhrase)))]
    kind: AnswerKind,
    /// Look for this user's own preference first
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// What the backend would answer by itself, with its score from 0 to 1; may be given several times
    #[arg(long, value_name = "CHOICE=SCORE", value_parser = scored)]
    backend: Vec<(String, f64)>,
    /// Answer from a state no older than this revision
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    min_revision: i64,
}

fn scored(text: &str) -> Result<(String, f64), String> {
    // Split at the last `=`: a choice may contain one itself.
    let (choice, score) = text
        .rsplit_once('=')
        .ok_or("expected CHOICE=SCORE, for example create_csa=0.7")?;
    let score: f64 = score.parse().map_err(|_| format!("{score:?} is not a number"))?;
    Ok((choice.to_owned(), score))
}

/// Asks learning-svc and prints the answer.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let request = ResolveRequest {
        namespace: context.namespace(),
        kind: args.kind.0.number(),
        phrase: args.phrase,
        user_id: args.user,
        backend_candidates: args
            .backend
            .into_iter()
            .map(|(value, score)| BackendCandidate { value, score })
            .collect(),
        min_revision: args.min_revision,
    };
    let response = context
        .resources()
        .await?
        .resolve(context.request(request))
        .await?
        .into_inner();
    output.result(&view::resolved(&response), || text(&response))
}

fn text(response: &ResolveResponse) -> String {
    let mut lines = vec![match &response.r#match {
        Some(found) => {
            let whose = words::scope_name(found.scope);
            format!(
                "{:?} → {} (learned, score {:.1}, revision {}, scope {whose})",
                response.normalized_phrase, found.value, found.score, found.revision
            )
        }
        None if response.match_prohibited => {
            format!("{:?}: what was learned is prohibited", response.normalized_phrase)
        }
        None => format!("{:?}: nothing was learned", response.normalized_phrase),
    }];
    if !response.prohibited.is_empty() {
        lines.push(format!("never offer: {}", response.prohibited.join(", ")));
    }
    if response.feedback_hint {
        lines.push("ask the user: the backend's own choices are uncertain".into());
    }
    lines.push(format!("as of revision {}", response.revision));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_may_contain_the_equals_sign() {
        assert_eq!(scored("a=b=0.5"), Ok(("a=b".into(), 0.5)));
        assert!(scored("a").is_err());
        assert!(scored("a=high").is_err());
    }
}
