//! `emend submit`: submits a correction: what is wrong and what is right.

use clap::Subcommand;
use emend_base::status::Explained;
use emend_proto::{
    common::v1::{
        Correction, EntityCorrection, Outcome, PhraseMapping, Prohibition, Reporter, TermCorrection,
        VerbCorrection, correction::Correction as Variant,
    },
    feedback::v1::{ContextState, Feedback, SubmitFeedbackRequest},
};
use emend_wire::kinds::relation_number;
use tonic::{Code, Status};

use super::feedback;
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view,
    words::{self, Relation},
};

const EXAMPLES: &str = "\
Examples:
  emend submit verb \"set up a CSA\" create_isda --instead-of create_csa --reporter ana --wait
  emend submit phrase \"book the trade\" book_trade --reporter ana
  emend submit entity \"J. Smith\" person:jane-smith --instead-of person:john-smith --reporter ben
  emend submit prohibit \"wind down the fund\" delete_fund --reporter ana --reason \"irreversible\"
  emend submit term フィールド 盤面 ボード --reporter ana
  emend submit phrase \"my pack\" monthly_report --reporter mia --for-me

A correction counts once per reporter: without --reporter all of one caller's count as one
vote.";

/// The correction, its reporter and the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    form: Form,
    /// The person or agent who says it
    #[arg(long, global = true, value_name = "ID")]
    reporter: Option<String>,
    /// The session in which the correction was made
    #[arg(long, global = true, value_name = "ID")]
    session: Option<String>,
    /// Why, in the reporter's words
    #[arg(long, global = true, value_name = "TEXT")]
    reason: Option<String>,
    /// Anything that helps a reviewer; may be given several times
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = words::key_value)]
    context: Vec<(String, String)>,
    /// The query that the correction is about
    #[arg(long, global = true, value_name = "ID")]
    query_id: Option<String>,
    /// Learn it for the reporter only
    #[arg(long, global = true)]
    for_me: bool,
    /// Wait until the correction has been evaluated, not only stored
    #[arg(long, global = true)]
    wait: bool,
    /// An id that makes it safe to repeat the command [default: a random one]
    #[arg(long, global = true, value_name = "ID")]
    request_id: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Form {
    /// The wrong verb was chosen for what the user said
    Verb(CorrectedChoice),
    /// A phrase means a verb
    Phrase {
        /// The phrase
        phrase: String,
        /// The verb it invokes
        verb: String,
    },
    /// The wrong entity was chosen for what the user said
    Entity(CorrectedChoice),
    /// A choice must never be offered for a phrase
    Prohibit {
        /// The phrase
        phrase: String,
        /// The verb or entity id never to offer
        choice: String,
    },
    /// Other terms stand for this one
    Term {
        /// The representative, for which the others stand
        term: String,
        /// The terms that stand for it, 1 to 32
        #[arg(required = true, value_name = "EQUIVALENT")]
        equivalents: Vec<String>,
        /// How they are related to the term
        #[arg(long, value_enum, default_value_t = Relation::Equivalent)]
        relation: Relation,
    },
}

#[derive(Debug, clap::Args)]
struct CorrectedChoice {
    /// What the user said
    input: String,
    /// The right choice
    choice: String,
    /// What the system chose, if known
    #[arg(long, value_name = "CHOICE")]
    instead_of: Option<String>,
}

impl From<Form> for Correction {
    fn from(form: Form) -> Self {
        let variant = match form {
            Form::Verb(CorrectedChoice {
                input,
                choice,
                instead_of,
            }) => Variant::Verb(VerbCorrection {
                original_input: input,
                system_choice: instead_of.unwrap_or_default(),
                correct_choice: choice,
            }),
            Form::Phrase { phrase, verb } => Variant::PhraseMapping(PhraseMapping { phrase, verb }),
            Form::Entity(CorrectedChoice {
                input,
                choice,
                instead_of,
            }) => Variant::Entity(EntityCorrection {
                original_input: input,
                system_choice: instead_of.unwrap_or_default(),
                correct_choice: choice,
            }),
            Form::Prohibit { phrase, choice } => Variant::Prohibition(Prohibition {
                phrase,
                forbidden_choice: choice,
            }),
            Form::Term {
                term,
                equivalents,
                relation,
            } => Variant::Term(TermCorrection {
                term,
                equivalents,
                relation: relation_number(relation.into()).into(),
            }),
        };
        Self {
            correction: Some(variant),
        }
    }
}

/// Submits the correction and prints the outcome.
pub async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let is_named = args.reporter.as_ref().is_some_and(|id| !id.is_empty());
    let request = SubmitFeedbackRequest {
        request_id: args.request_id.unwrap_or_default(),
        reporter: Some(Reporter {
            id: args.reporter.unwrap_or_default(),
            session_id: args.session.unwrap_or_default(),
            ..Reporter::default()
        }),
        query_id: args.query_id.unwrap_or_default(),
        reason: args.reason.unwrap_or_default(),
        context: args.context.into_iter().collect(),
        scope: words::scope(args.for_me) as i32,
        wait: words::wait(args.wait) as i32,
        correction: Some(args.form.into()),
        ..SubmitFeedbackRequest::default()
    };
    let feedback = send(request, context).await?;
    output.result(&view::message(&feedback), || vote_text(&feedback, is_named))
}

/// The outcome, and for how much it counts where no reporter is named.
fn vote_text(feedback: &Feedback, is_named: bool) -> String {
    let text = outcome_text(feedback);
    if is_named {
        text
    } else {
        format!("{text}\n{UNNAMED}")
    }
}

/// Said of a correction whose reporter is not named.
const UNNAMED: &str = "No reporter is named: however many such corrections you send, they count as one vote. Name one \
                       with --reporter.";

/// Who says something evaluated at once, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Sender {
    /// The person or agent who says it
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    reporter: String,
    /// An id that makes it safe to repeat the command [default: a random one]
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl Sender {
    /// Submits the correction, waits until it is evaluated, and prints the outcome.
    pub(super) async fn submit(
        self,
        correction: Variant,
        reason: String,
        context: &Context,
        output: &mut Output<'_>,
    ) -> Result {
        let request = SubmitFeedbackRequest {
            request_id: self.request_id.unwrap_or_default(),
            reporter: Some(Reporter {
                id: self.reporter,
                ..Reporter::default()
            }),
            reason,
            wait: words::wait(true) as i32,
            correction: Some(Correction {
                correction: Some(correction),
            }),
            ..SubmitFeedbackRequest::default()
        };
        submit(request, context, output).await
    }
}

/// Completes the request, submits it and prints the outcome.
pub(super) async fn submit(
    request: SubmitFeedbackRequest,
    context: &Context,
    output: &mut Output<'_>,
) -> Result {
    let feedback = send(request, context).await?;
    output.result(&view::message(&feedback), || outcome_text(&feedback))
}

/// Completes the request and submits it.
async fn send(mut request: SubmitFeedbackRequest, context: &Context) -> Result<Feedback> {
    if request.request_id.is_empty() {
        request.request_id = context.request_id();
    }
    request.namespace = context.namespace();
    let reporter = request.reporter.get_or_insert_default();
    concat!("emend-cli/", env!("CARGO_PKG_VERSION")).clone_into(&mut reporter.client);
    let request_id = request.request_id.clone();
    let answer = context
        .feedback()
        .await?
        .submit_feedback(context.request(request))
        .await;
    let response = answer.map_err(|status| not_answered(status, &request_id))?;
    feedback::required(response.into_inner().feedback)
}

/// Why a correction was not accepted. Where there was no answer in time, it says that it may be stored, and how to send it again.
fn not_answered(status: Status, request_id: &str) -> Failure {
    if status.code() != Code::DeadlineExceeded {
        return status.into();
    }
    let mut explained = Explained::from(status);
    explained.message = format!(
        "no answer within the time limit.\n  The correction may be stored. To be sure, repeat the command with\n  \
         --request-id {request_id}\n  and it is stored once."
    );
    Failure::Refused(Box::new(explained))
}

/// The outcome's message, and the id to retract by.
pub(super) fn outcome_text(feedback: &Feedback) -> String {
    let outcome = feedback.outcome.as_ref();
    let message = match (outcome, &feedback.search_rating) {
        // It is never evaluated: nothing is learned from it alone.
        (_, Some(rating)) => stored_rating(&feedback.query_id, rating.context_state()),
        (Some(outcome), None) if !outcome.message.is_empty() => outcome.message.clone(),
        _ => "Stored; not evaluated yet.".to_owned(),
    };
    let effects = outcome.map_or(&[][..], |outcome| &outcome.effects);
    let mut lines = match effects {
        [] => vec![message],
        effects => effects.iter().map(|effect| effect.message.clone()).collect(),
    };
    lines.extend(decision_reasons(outcome).map(|reason| format!("rejected {reason}")));
    lines.push(format!("feedback {}", feedback.feedback_id));
    lines.join("\n")
}

/// Why people rejected what a correction says, in their words: of each effect that has several, else of the whole.
pub(super) fn decision_reasons(outcome: Option<&Outcome>) -> impl Iterator<Item = &str> {
    let each = outcome
        .into_iter()
        .flat_map(|outcome| match &outcome.effects[..] {
            [] => std::slice::from_ref(outcome),
            effects => effects,
        });
    let reasons = each.map(|outcome| outcome.decision_reason.as_str());
    reasons.filter(|reason| !reason.is_empty())
}

/// Whether the rated query was found, which tells who mistyped its id.
fn stored_rating(query_id: &str, state: ContextState) -> String {
    match state {
        ContextState::Complete => "Stored; the query is known.".to_owned(),
        ContextState::Missing => {
            format!("Stored, but no query {query_id:?} was recorded: the rating counts for none.")
        }
        ContextState::Pending | ContextState::Unspecified => {
            format!(
                "Stored, but no query {query_id:?} is known yet: unless one is recorded within 10 s, the rating counts for none."
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_no_reporter_is_told_that_it_counts_once() {
        let feedback = Feedback::default();
        assert!(vote_text(&feedback, false).ends_with(UNNAMED));
        assert_eq!(vote_text(&feedback, true), outcome_text(&feedback));
    }
}
