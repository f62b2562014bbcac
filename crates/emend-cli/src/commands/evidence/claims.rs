//! `emend evidence claims`: claims with their confidence, and what is decided about them.

use clap::Subcommand;
use emend_core::{
    ClaimState, Invalid, Kind,
    evidence::{ClaimStatus, Combining},
    kinds::ReasonCode,
};
use emend_proto::{
    common::v1::{ClaimDecision, ResourceKey, resource_value::Value},
    learning::v1::{
        Claim, ClaimAdoption, Confidence, GetClaimRequest, GetResourceRequest, ListClaimsRequest,
    },
};
use emend_wire::kinds::claim_decision;

use super::decision::{self, Why};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::{Column, Output, Table},
    view::{self, evidence},
    words,
};

/// List, show, or decide.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence claims list --task t-17
  emend evidence claims list --status verified --adopted false
  emend evidence claims show claim:12
  emend evidence edges list --claim claim:12           what speaks for it and against it
  emend evidence claims show claim:12 --both-readings  copies of one source apart
  emend evidence claims reject claim:12 --reason \"an advertisement\" --reason-code SPAM
  emend evidence claims restore claim:12 --reason \"checked by hand\" --task t-17

A decision is in force at once if you are entitled to decide; otherwise it awaits review (emend
candidates). The newest decision about a claim is in force. While the claim is not known, the
decision waits, and takes effect when the claim is upserted.

A claim is verified if at least two independent sources support it. Its confidence comes from its
edges alone: trust in their sources has no part in it.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List claims with their confidence
    List(List),
    /// Show a claim with what its evidence says
    Show {
        /// The claim's id
        claim: String,
        /// Show its confidence also by each reading: all edges, and one of each source
        #[arg(long)]
        both_readings: bool,
    },
    /// Hide a claim from results; it is kept
    Reject {
        /// The claim's id
        claim: String,
        /// Why, as a code of [A-Z0-9_], for example SPAM
        #[arg(long, value_name = "CODE", default_value = "", hide_default_value = true)]
        reason_code: String,
        #[command(flatten)]
        why: Why,
    },
    /// Show a claim, whatever is reported against it
    Restore {
        /// The claim's id
        claim: String,
        #[command(flatten)]
        why: Why,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only claims of this task
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    task: String,
    /// Only claims of this status
    #[arg(long, value_parser = words::one_of(&ClaimStatus::ALL, ClaimStatus::name))]
    status: Option<ClaimStatus>,
    /// Only claims that the backend adopted, or did not
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    adopted: Option<bool>,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
}

/// Lists or shows claims, or submits a decision and prints the outcome.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let (claim, state, why) = match args.action {
        Action::List(args) => return list(args, context, output).await,
        Action::Show { claim, both_readings } => return show(claim, both_readings, context, output).await,
        Action::Reject {
            claim,
            reason_code,
            why,
        } => {
            let code = ReasonCode::parse(&reason_code)
                .map_err(|Invalid(why)| Failure::usage(format!("--reason-code {why}")))?;
            (claim, ClaimState::Rejected(code), why)
        }
        Action::Restore { claim, why } => (claim, ClaimState::Restored, why),
    };
    decision::submit(claim_decision(claim, &state), why.reason, why.by, context, output).await
}

async fn list(args: List, context: &Context, output: &mut Output<'_>) -> Result {
    let adoption = args.adopted.map_or(ClaimAdoption::Unspecified, |adopted| {
        if adopted {
            ClaimAdoption::Adopted
        } else {
            ClaimAdoption::NotAdopted
        }
    });
    let request = ListClaimsRequest {
        namespace: context.namespace(),
        task_id: args.task,
        status: args.status.map_or(0, ClaimStatus::number),
        adoption: adoption.into(),
        ..ListClaimsRequest::default()
    };
    let all = ListClaimsRequest {
        namespace: context.namespace(),
        ..ListClaimsRequest::default()
    };
    let none = context.none_found("claims", request != all);
    let (claims, more) = context.list(&request, args.limit).await?;
    output.list(&claims, more, evidence::claim, table, &none)
}

async fn show(claim_id: String, both_readings: bool, context: &Context, output: &mut Output<'_>) -> Result {
    let request = GetClaimRequest {
        namespace: context.namespace(),
        claim_id,
        both_readings,
    };
    let mut client = context.evidence().await?;
    let found = client
        .get_claim(context.request(request))
        .await?
        .into_inner()
        .claim;
    let claim = found.ok_or_else(|| Failure::failed("learning-svc answered without the claim"))?;
    let reason_code = reason_code(&claim, context).await?;
    let mut json = evidence::claim(&claim);
    json["reason_code"] = reason_code.as_str().into();
    output.result(&json, || text(&claim, &reason_code))
}

/// Why a person rejected a claim, as a code; empty if nobody did, or without one.
async fn reason_code(claim: &Claim, context: &Context) -> Result<String> {
    if claim.decision != i32::from(ClaimDecision::Rejected) {
        return Ok(String::new());
    }
    let key = ResourceKey {
        namespace: context.namespace(),
        kind: Kind::ClaimState.number(),
        key: claim.claim_id.clone(),
        ..ResourceKey::default()
    };
    let request = GetResourceRequest {
        key: Some(key),
        ..GetResourceRequest::default()
    };
    let mut client = context.resources().await?;
    let found = match client.get_resource(context.request(request)).await {
        Ok(found) => found.into_inner().resource,
        // It was taken back meanwhile.
        Err(status) if status.code() == tonic::Code::NotFound => None,
        Err(status) => return Err(status.into()),
    };
    let value = found.and_then(|resource| resource.value?.value);
    Ok(match value {
        Some(Value::ClaimState(state)) => state.reason_code,
        _ => String::new(),
    })
}

fn table(claims: &[Claim]) -> Table {
    Table::new([
        ("CLAIM", Column::Fixed),
        ("STATUS", Column::Fixed),
        ("VERDICT", Column::Fixed),
        ("CONFIDENCE", Column::Fixed),
        ("FOR", Column::Number),
        ("AGAINST", Column::Number),
        ("SOURCES", Column::Number),
        ("TEXT", Column::Text),
    ])
    .with_rows(claims, |claim| {
        let confidence = claim.confidence.unwrap_or_default();
        [
            claim.claim_id.clone(),
            evidence::claim_status(claim.status).unwrap_or_default(),
            evidence::verdict(confidence.verdict).unwrap_or_default(),
            interval(&confidence),
            confidence.supporting_count.to_string(),
            confidence.refuting_count.to_string(),
            confidence.independent_sources.to_string(),
            claim.text.clone(),
        ]
    })
}

fn interval(confidence: &Confidence) -> String {
    format!("{:.3} ± {:.3}", confidence.confidence, confidence.uncertainty)
}

fn text(claim: &Claim, reason_code: &str) -> String {
    let decided = evidence::decision(claim.decision).unwrap_or_default();
    let decided = match reason_code {
        "" => decided,
        code => format!("{decided} ({code})"),
    };
    let confidence = claim.confidence.unwrap_or_default();
    let source = match (&*claim.page_id, evidence::level(claim.level)) {
        (page, Some(level)) => format!("{page}, {} ({level})", claim.domain),
        (page, None) => page.to_owned(),
    };
    let mut rows = vec![
        ("claim", claim.claim_id.clone()),
        ("text", claim.text.clone()),
        ("status", evidence::claim_status(claim.status).unwrap_or_default()),
        ("decided", decided),
        (
            "verdict",
            evidence::verdict(confidence.verdict).unwrap_or_default(),
        ),
        ("confidence", interval(&confidence)),
    ];
    for (way, reading) in [
        (Combining::CountAll, claim.count_all),
        (Combining::OnePerSource, claim.one_per_source),
    ] {
        rows.extend(reading.map(|reading| (way.name(), weighed(&reading))));
    }
    rows.extend([
        ("controversy", format!("{:.3}", confidence.controversy)),
        (
            "evidence",
            format!(
                "{} for, {} against, {} neutral (alpha {:.2}, beta {:.2})",
                confidence.supporting_count,
                confidence.refuting_count,
                confidence.neutral_count,
                confidence.alpha,
                confidence.beta
            ),
        ),
        (
            "sources for it",
            format!("{} independent", confidence.independent_sources),
        ),
        ("found on", source),
        ("dangerous patterns", claim.dangerous_patterns.join(", ")),
        ("adoption", evidence::adoption(claim.adoption).unwrap_or_default()),
        ("task", claim.task_id.clone()),
        ("updated", view::short_time(claim.updated_at.as_ref())),
    ]);
    evidence::lines(&rows)
}

fn weighed(confidence: &Confidence) -> String {
    format!(
        "{}, {} (alpha {:.2}, beta {:.2})",
        interval(confidence),
        evidence::verdict(confidence.verdict).unwrap_or_default(),
        confidence.alpha,
        confidence.beta
    )
}

#[cfg(test)]
mod tests {
    use emend_proto::{
        common::v1::TrustLevel,
        learning::v1::{ClaimStatus as Status, Verdict},
    };

    use super::*;

    /// Three support it, one refutes it, each with 0.9.
    fn claim() -> Claim {
        Claim {
            claim_id: "claim:12".into(),
            task_id: "t-17".into(),
            text: "Coffee dehydrates the body more than water does, so it should be avoided in summer".into(),
            page_id: "page:1".into(),
            domain: "blog.example".into(),
            level: TrustLevel::Unverified.into(),
            adoption: ClaimAdoption::NotAdopted.into(),
            status: Status::Verified.into(),
            confidence: Some(Confidence {
                alpha: 3.7,
                beta: 1.9,
                confidence: 0.661,
                uncertainty: 0.184,
                controversy: 0.25,
                supporting_count: 3,
                refuting_count: 1,
                evidence_count: 4,
                independent_sources: 2,
                verdict: Verdict::Inconclusive.into(),
                ..Confidence::default()
            }),
            ..Claim::default()
        }
    }

    #[test]
    fn a_row_says_how_sure_a_claim_is_in_a_hundred_columns() {
        let expected = "\
CLAIM     STATUS    VERDICT       CONFIDENCE     FOR  AGAINST  SOURCES  TEXT
claim:12  verified  inconclusive  0.661 ± 0.184    3        1        2  Coffee dehydrates the body …
";
        assert_eq!(table(&[claim()]).render(100), expected);
    }

    #[test]
    fn a_claim_is_shown_with_all_that_is_known_of_it() {
        let rejected = Claim {
            decision: ClaimDecision::Rejected.into(),
            ..claim()
        };
        let shown = text(&rejected, "SPAM");
        assert!(shown.contains("decided             rejected (SPAM)\n"), "{shown}");
        let both = Claim {
            count_all: claim().confidence,
            one_per_source: Some(Confidence {
                alpha: 1.9,
                confidence: 0.5,
                uncertainty: 0.228,
                ..claim().confidence.unwrap_or_default()
            }),
            ..claim()
        };
        let expected = "\
confidence          0.661 ± 0.184
count_all           0.661 ± 0.184, inconclusive (alpha 3.70, beta 1.90)
one_per_source      0.500 ± 0.228, inconclusive (alpha 1.90, beta 1.90)
controversy         0.250
";
        let shown = text(&both, "");
        assert!(shown.contains(expected), "{shown}");
        let shown = text(&claim(), "");
        for line in [
            "decided             –",
            "confidence          0.661 ± 0.184",
            "evidence            3 for, 1 against, 0 neutral (alpha 3.70, beta 1.90)",
            "sources for it      2 independent",
            "found on            page:1, blog.example (unverified)",
            "adoption            not_adopted",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}:\n{shown}");
        }
    }
}
