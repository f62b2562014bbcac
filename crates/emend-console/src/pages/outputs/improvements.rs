//! Better prompts: those that await review, and what became of every version.

use askama::Template;
use emend_core::{Kind, kinds::PRODUCTION};
use emend_proto::learning::v1::{
    Candidate, CandidateStatus, GetCandidateRequest, ListCandidatesRequest, ListPromptVersionsRequest,
    PreviewImprovementRequest, PreviewedInput, PromptVersion, UsePromptVersionRequest,
};
use futures::future::try_join_all;
use http::StatusCode;
use tonic::Status;

use super::{address, choices, names, tabs};
use crate::{
    failure::Refused,
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::{
        Choice,
        chart::Shares,
        links,
        review::{DiffLine, diff},
        tabs::Tab,
    },
    text::{self, Moment, moment},
    told::Told,
};

/// How many proposals are shown in full.
const PROPOSALS: i32 = 20;
/// How many versions of one target are shown.
const VERSIONS: i32 = 50;
/// On how many rated inputs an improvement is tried.
const INPUTS: i32 = 5;

/// The page of what waits.
#[derive(Debug, Template)]
#[template(path = "pending.html")]
struct Pending {
    page: Page,
    tabs: Vec<Tab>,
    proposals: Vec<Proposed>,
    more: Option<String>,
    /// By which a decision leads back here.
    filters: String,
    may_decide: bool,
    may_preview: bool,
}

/// A prompt that awaits review.
#[derive(Debug)]
struct Proposed {
    id: String,
    etag: String,
    target: String,
    target_href: String,
    label: String,
    version: i32,
    shares: Shares,
    reason: String,
    generator: String,
    redacted: i32,
    diff: Vec<DiffLine>,
    text: String,
    at: Moment,
    review: String,
    preview: String,
}

async fn proposed(visitor: &Visitor, candidate: Candidate) -> Result<Proposed, Status> {
    let request = visitor.services.call(GetCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: candidate.candidate_id.clone(),
    });
    let answer = visitor.services.candidates().get_candidate(request).await?;
    let improvement = answer.into_inner().improvement;
    let key = candidate.key.unwrap_or_default();
    let proposal = candidate.proposal.unwrap_or_default();
    let item = Fields::default().with("item", &candidate.candidate_id);
    let improvement = improvement.unwrap_or_default();
    Ok(Proposed {
        target_href: address(visitor, &key.key),
        review: visitor.and_back(&visitor.to(Part::Review, &item)),
        preview: visitor.within(
            Part::Outputs,
            &["preview", &candidate.candidate_id],
            &Fields::default(),
        ),
        id: candidate.candidate_id,
        etag: candidate.etag,
        target: key.key,
        label: key.qualifier,
        version: proposal.version,
        shares: Shares {
            good: improvement.good_count.into(),
            neutral: improvement.neutral_count.into(),
            bad: improvement.bad_count.into(),
        },
        reason: improvement.reason,
        generator: improvement.generator,
        redacted: proposal.redacted_count,
        diff: diff(&improvement.diff),
        text: text::whole(candidate.value.as_ref()),
        at: moment(candidate.created_at.as_ref()),
    })
}

/// Shows the improvements that wait for a person.
pub(crate) async fn pending(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.call(ListCandidatesRequest {
        namespace: visitor.namespace.clone(),
        kinds: vec![Kind::Prompt.number()],
        statuses: vec![CandidateStatus::AwaitingReview as i32],
        page_size: PROPOSALS,
        page_token: fields.get("page").to_owned(),
        ..ListCandidatesRequest::default()
    });
    let listed = visitor.services.candidates().list_candidates(request).await?;
    let listed = listed.into_inner();
    let proposals = listed.candidates.into_iter();
    let proposals = try_join_all(proposals.map(|candidate| proposed(visitor, candidate))).await?;
    let own = visitor.within(Part::Outputs, &["pending"], &Fields::default());
    let (_, more) = links(&own, fields, &listed.next_page_token);
    let shown = Pending {
        tabs: tabs(visitor, "pending"),
        proposals,
        more,
        filters: visitor.and_back("?status=any"),
        may_decide: visitor.may("learning.v1.CandidateService/ApproveCandidate"),
        may_preview: visitor.may("learning.v1.OutputService/PreviewImprovement"),
        page: visitor.page(
            Part::Outputs,
            visitor.t("Improvements awaiting review", "レビュー待ちの改善案"),
            fields,
        ),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// The page of what an improvement does.
#[derive(Debug, Template)]
#[template(path = "preview.html")]
struct Preview {
    page: Page,
    tabs: Vec<Tab>,
    review: String,
    reason: String,
    was_run: bool,
    inputs: Vec<PreviewedInput>,
}

/// Shows an improvement on inputs that were rated.
pub(crate) async fn preview(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.model_call(PreviewImprovementRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
        inputs: INPUTS,
    });
    let answer = visitor.services.outputs().preview_improvement(request).await?;
    let answer = answer.into_inner();
    let item = Fields::default().with("item", &visitor.item);
    let shown = Preview {
        tabs: tabs(visitor, "preview"),
        review: visitor.to(Part::Review, &item),
        reason: answer.improvement.unwrap_or_default().reason,
        was_run: answer.was_run,
        inputs: answer.inputs,
        page: visitor.page(
            Part::Outputs,
            visitor.t("What it would change", "改善案の効果"),
            fields,
        ),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// The page of all versions.
#[derive(Debug, Template)]
#[template(path = "history.html")]
struct History {
    page: Page,
    tabs: Vec<Tab>,
    targets: Vec<Choice>,
    versions: Vec<Shown>,
    first: Option<String>,
    next: Option<String>,
    may_use: bool,
}

/// A version, and what became of it.
#[derive(Debug)]
struct Shown {
    id: String,
    review: String,
    target: String,
    target_href: String,
    version: i32,
    status: &'static str,
    class: &'static str,
    labels: Vec<String>,
    text: String,
    /// A line of the text by which it is told from the version before; its first line if there is none.
    told_by: String,
    steps: Vec<Step>,
    /// Whether it can be made current under a label.
    can_use: bool,
    at: Moment,
    sort: (i64, i32),
}

/// A decision about a version.
#[derive(Debug)]
struct Step {
    label: String,
    status: &'static str,
    who: String,
    reason: String,
    at: Moment,
}

fn shown(visitor: &Visitor, version: PromptVersion) -> Shown {
    let language = visitor.language;
    let candidate = version.candidate.unwrap_or_default();
    let key = candidate.key.unwrap_or_default();
    let proposal = candidate.proposal.unwrap_or_default();
    let status = CandidateStatus::try_from(candidate.status).unwrap_or_default();
    let decisions = version.history.iter().rev();
    let steps = decisions.filter_map(|decision| {
        let step = decision.transition.as_ref()?;
        // That it was created says nothing beside what became of it.
        let is_created = step.to() == CandidateStatus::Pending;
        let is_open = step.to() == CandidateStatus::AwaitingReview;
        (!is_created).then(|| Step {
            label: decision.label.clone(),
            status: language.status(step.to),
            who: language.actor(step.actor.as_ref()),
            // Why a proposal waits is for programs.
            reason: if is_open {
                String::new()
            } else {
                step.reason.clone()
            },
            at: moment(step.at.as_ref()),
        })
    });
    let item = Fields::default()
        .with("status", "any")
        .with("item", &candidate.candidate_id);
    Shown {
        review: visitor.to(Part::Review, &item),
        target_href: address(visitor, &key.key),
        version: proposal.version,
        status: language.status(candidate.status),
        class: match status {
            CandidateStatus::Applied => "good",
            CandidateStatus::Rejected => "bad",
            CandidateStatus::AwaitingReview => "warn",
            _ => "",
        },
        text: text::whole(candidate.value.as_ref()),
        told_by: String::new(),
        steps: steps.collect(),
        can_use: proposal.approved_at.is_some(),
        at: moment(candidate.updated_at.as_ref()),
        sort: (candidate.updated_at.map_or(0, |at| at.seconds), proposal.version),
        id: candidate.candidate_id,
        target: key.key,
        labels: version.labels,
    }
}

async fn versions(visitor: &Visitor, target: &str, page_token: &str) -> Result<(Vec<Shown>, String), Status> {
    let request = visitor.services.call(ListPromptVersionsRequest {
        namespace: visitor.namespace.clone(),
        target: target.to_owned(),
        page_size: VERSIONS,
        page_token: page_token.to_owned(),
        ..ListPromptVersionsRequest::default()
    });
    let answer = visitor.services.outputs().list_prompt_versions(request).await?;
    let answer = answer.into_inner();
    let versions = answer.versions.into_iter();
    let mut versions: Vec<Shown> = versions.map(|version| shown(visitor, version)).collect();
    let texts: Vec<(i32, String)> = versions
        .iter()
        .map(|version| (version.version, version.text.clone()))
        .collect();
    for version in &mut versions {
        let before = texts
            .iter()
            .filter(|(number, _)| *number < version.version)
            .max_by_key(|(number, _)| *number);
        let before = before.map_or("", |(_, text)| text);
        version.told_by = text::shortened(told_by(before, &version.text), 120);
    }
    Ok((versions, answer.next_page_token))
}

/// The first line of a text that the one before it lacks; its first line if there is none.
fn told_by<'t>(before: &str, text: &'t str) -> &'t str {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_new = |line: &&str| !before.lines().any(|known| known.trim() == *line);
    lines()
        .find(is_new)
        .or_else(|| lines().next())
        .unwrap_or_default()
}

/// Shows all versions of one target, or the newest of every target, with what was decided about each.
pub(crate) async fn history(visitor: &Visitor, fields: &Fields) -> Answer {
    let names = names(visitor).await?;
    let (chosen, address) = (
        fields.get("target"),
        visitor.within(Part::Outputs, &["history"], &Fields::default()),
    );
    let (versions, next_token) = if chosen.is_empty() {
        let each = names.iter().map(|name| versions(visitor, name, ""));
        let all = try_join_all(each).await?;
        let mut all: Vec<_> = all.into_iter().flat_map(|(versions, _)| versions).collect();
        all.sort_by_key(|version| std::cmp::Reverse(version.sort));
        all.truncate(usize::try_from(VERSIONS).unwrap_or_default());
        (all, String::new())
    } else {
        versions(visitor, chosen, fields.get("page")).await?
    };
    let (first, next) = links(&address, fields, &next_token);
    let shown = History {
        tabs: tabs(visitor, "history"),
        targets: choices(&names, chosen),
        versions,
        first,
        next,
        may_use: visitor.may("learning.v1.OutputService/UsePromptVersion"),
        page: visitor.page(
            Part::Outputs,
            visitor.t("History of prompts", "プロンプトの履歴"),
            fields,
        ),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// Makes a version that was approved once current again.
pub(crate) async fn make_current(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.call(GetCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: visitor.item.clone(),
    });
    let answer = visitor.services.candidates().get_candidate(request).await?;
    let candidate = answer.into_inner().candidate.unwrap_or_default();
    let target = candidate.key.unwrap_or_default().key;
    let label = match fields.get("label") {
        "" => PRODUCTION,
        label => label,
    };
    let request = visitor.services.call(UsePromptVersionRequest {
        namespace: visitor.namespace.clone(),
        target: target.clone(),
        label: label.to_owned(),
        version: candidate.proposal.unwrap_or_default().version,
        reason: fields.get("reason").to_owned(),
        on_behalf_of: visitor.on_behalf_of(),
    });
    let answer = visitor.services.outputs().use_prompt_version(request).await;
    let revision = answer.map_err(Refused::from)?.into_inner().revision;
    let told = visitor.telling(Told::set("set", revision).of(&format!("{target} ({label})")));
    let fields = told.with("target", &target);
    visitor.go(&visitor.within(Part::Outputs, &["history"], &fields))
}

#[cfg(test)]
mod tests {
    use super::told_by;

    #[test]
    fn a_version_is_told_by_what_the_one_before_lacks() {
        let first = "Interpret {{input}}.\n";
        let second = "Interpret {{input}}.\n\nGive figures.\n";
        assert_eq!(told_by("", first), "Interpret {{input}}.");
        assert_eq!(told_by(first, second), "Give figures.");
        assert_eq!(told_by(second, first), "Interpret {{input}}.");
        assert_eq!(told_by(first, ""), "");
    }
}
