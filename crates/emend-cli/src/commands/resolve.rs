//! `emend resolve`: shows what a node answers for a phrase.

use std::iter;

use clap::ValueEnum as _;
use emend_core::Kind as CoreKind;
use emend_proto::learning::v1::{
    BackendCandidate, Match, NearPhrase, NearStatus, ResolveRequest, ResolveResponse,
};

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
  emend resolve \"wind down the fund\" --kind prohibition
  emend resolve \"how do I set up a CSA\" --near

The answer is what every node that has applied the same revision answers. That nothing was
learned is an answer too (exit code 0).")]
pub struct Args {
    /// What the user said
    phrase: String,
    /// The kind of resource to look for; of prohibitions, what is never offered for the phrase
    #[arg(long, value_enum, default_value_t = AnswerKind(Kind(emend_core::Kind::InvocationPhrase)))]
    kind: AnswerKind,
    /// Look for this user's own preference first
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    user: String,
    /// What the backend would answer by itself, with its score from 0 to 1; may be given several times
    #[arg(long, value_name = "CHOICE=SCORE", value_parser = scored)]
    backend: Vec<(String, f64)>,
    /// Where nothing was learned for the phrase, answer by what was learned for similar ones
    #[arg(long)]
    near: bool,
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
    let searched = args.kind.0.0;
    let request = ResolveRequest {
        namespace: context.namespace(),
        // What is prohibited comes with the answer of any kind.
        kind: if searched == CoreKind::Prohibition {
            CoreKind::InvocationPhrase.number()
        } else {
            searched.number()
        },
        phrase: args.phrase,
        user_id: args.user,
        backend_candidates: args
            .backend
            .into_iter()
            .map(|(value, score)| BackendCandidate { value, score })
            .collect(),
        min_revision: args.min_revision,
        near: args.near,
    };
    let response = resolve(context, request.clone()).await?;
    let is_unknown = response.r#match.is_none() && !response.match_prohibited;
    let mut others = Vec::new();
    if is_unknown && searched != CoreKind::Prohibition && !output.is_json() {
        let answers = AnswerKind::value_variants().iter().map(|kind| kind.0.0);
        for kind in answers.filter(|kind| ![searched, CoreKind::Prohibition].contains(kind)) {
            let request = ResolveRequest {
                kind: kind.number(),
                near: false,
                ..request.clone()
            };
            others.push((kind, resolve(context, request).await?.r#match));
        }
    }
    output.result(&view::message(&response), || {
        text(searched, &context.namespace(), &response, &others)
    })
}

async fn resolve(context: &Context, request: ResolveRequest) -> Result<ResolveResponse> {
    let mut client = context.resources().await?;
    Ok(client.resolve(context.request(request)).await?.into_inner())
}

/// What was learned for similar phrases, or why nothing is said of that.
fn near_lines(response: &ResolveResponse) -> Vec<String> {
    let Some(near) = &response.near else {
        let why = match response.near_status() {
            NearStatus::Ready | NearStatus::WithoutVectors
                if response.r#match.is_none() && !response.match_prohibited =>
            {
                "near: nothing that was learned is similar enough"
            }
            NearStatus::Fitting => "near: the model is being made; ask again",
            NearStatus::Off => "near: switched off for this kind",
            NearStatus::TooMany => "near: more was learned than a model is made of",
            _ => return Vec::new(),
        };
        return vec![why.to_owned()];
    };
    let answer = format!(
        "near: {} (confidence {:.2}, model {})",
        near.choice, near.confidence, near.model
    );
    let because = near.because.iter().map(|learned| {
        let NearPhrase {
            phrase,
            choice,
            similarity,
        } = learned;
        format!("  because {phrase:?} → {choice} (similarity {similarity:.2})")
    });
    iter::once(answer).chain(because).collect()
}

/// The answer for people; `others`: what was learned for the phrase as other kinds.
fn text(
    searched: CoreKind,
    namespace: &str,
    response: &ResolveResponse,
    others: &[(CoreKind, Option<Match>)],
) -> String {
    if searched == CoreKind::Prohibition {
        let phrase = &response.normalized_phrase;
        let answer = match &response.prohibited[..] {
            [] => format!("{phrase:?}: nothing is prohibited in the namespace {namespace:?}"),
            prohibited => format!("{phrase:?}: never offer {}", prohibited.join(", ")),
        };
        return format!("{answer}\nas of revision {}", response.revision);
    }
    let kind = searched.name();
    let mut lines = vec![match &response.r#match {
        Some(found) => {
            let whose = words::scope_name(found.scope);
            format!(
                "{:?} → {} ({kind}, score {:.1}, revision {}, scope {whose})",
                response.normalized_phrase, found.value, found.score, found.revision
            )
        }
        None if response.match_prohibited => {
            format!(
                "{:?}: what was learned as {kind} is prohibited",
                response.normalized_phrase
            )
        }
        None => format!(
            "{:?}: nothing was learned as {kind} in the namespace {namespace:?}",
            response.normalized_phrase
        ),
    }];
    lines.extend(near_lines(response));
    lines.extend(others.iter().map(|(kind, found)| match found {
        Some(found) => format!("as {0}: {1} (--kind {0})", kind.name(), found.value),
        None => format!("nor as {}", kind.name()),
    }));
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
    fn an_answer_names_the_kind_that_was_looked_for() {
        let nothing = ResolveResponse {
            normalized_phrase: "j. smith".into(),
            revision: 7,
            ..ResolveResponse::default()
        };
        let alias = |value: &str| Match {
            value: value.to_owned(),
            ..Match::default()
        };
        for (found, expected) in [
            (
                Some(alias("person-42")),
                "as entity_alias: person-42 (--kind entity_alias)",
            ),
            (None, "nor as entity_alias"),
        ] {
            let others = [(CoreKind::EntityAlias, found)];
            assert_eq!(
                text(CoreKind::InvocationPhrase, "funds", &nothing, &others),
                format!(
                    "\"j. smith\": nothing was learned as invocation_phrase in the namespace \"funds\"\n\
                     {expected}\nas of revision 7"
                )
            );
        }
        let never = |prohibited: &[&str]| {
            let response = ResolveResponse {
                prohibited: prohibited.iter().map(|&choice| choice.to_owned()).collect(),
                ..nothing.clone()
            };
            text(CoreKind::Prohibition, "funds", &response, &[])
                .lines()
                .next()
                .map(str::to_owned)
        };
        assert_eq!(
            never(&[]).unwrap(),
            "\"j. smith\": nothing is prohibited in the namespace \"funds\""
        );
        assert_eq!(never(&["a", "b"]).unwrap(), "\"j. smith\": never offer a, b");
    }

    #[test]
    fn a_choice_may_contain_the_equals_sign() {
        assert_eq!(scored("a=b=0.5"), Ok(("a=b".into(), 0.5)));
        assert!(scored("a").is_err());
        assert!(scored("a=high").is_err());
    }
}
