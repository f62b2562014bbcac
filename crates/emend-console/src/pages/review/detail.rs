//! One item of the queue: what is proposed, by whom, against what, and what it would change.

use emend_core::{Invalid, Kind, Learned, Relation, Synonym, decide::Decidable};
use emend_proto::{
    common::v1::ResourceValue,
    learning::v1::{
        Candidate, CandidateStatus, GetCandidateRequest, GetCandidateResponse, GetResourceRequest,
        SupportingFeedback,
    },
};
use emend_wire::parse;
use tonic::{Code, Status};

use super::{
    Typed, acquire, holder,
    preview::{Judged, Preview, preview},
    talk::{Talk, talk},
};
use crate::{
    form::Fields,
    page::{Part, Visitor},
    pages::Choice,
    text::{self, Language, Moment, moment},
};

/// How many queries are named in one line of what people said.
const QUERIES: usize = 3;

/// What the page shows of it.
#[derive(Debug)]
pub(super) struct Detail {
    pub id: String,
    pub etag: String,
    pub kind: String,
    pub input: String,
    pub qualifier: String,
    pub user: String,
    pub arrow: String,
    pub value: String,
    /// The whole text of a value that is one.
    pub long_text: Option<String>,
    pub status: &'static str,
    pub status_reason: String,
    pub is_open: bool,
    pub risk: &'static str,
    pub votes_text: String,
    pub pinned: bool,
    pub created: Moment,
    pub decided_by: String,
    pub decision_reason: String,
    pub revision: i64,
    pub holder: Option<String>,
    /// What nodes answer now; none if nothing.
    pub now: Option<String>,
    /// What an approval does, before the value; none if nothing changes.
    pub then: Option<&'static str>,
    /// Where an older version is made current again, if it has versions and is decided.
    pub versions: Option<String>,
    pub editing: Option<Editing>,
    pub typed_reason: String,
    /// What reviewers said to each other.
    pub talk: Talk,
    pub redacted: i32,
    pub rivals: Vec<Rival>,
    pub feedback: Vec<Said>,
    pub voters: Vec<Voter>,
    pub history: Vec<Step>,
    pub improvement: Option<Improved>,
    pub suggestion: Option<String>,
    pub decidable: Decidable,
    pub may: May,
    /// What would be answered differently, if that was asked for.
    pub preview: Option<Preview>,
    /// Why what was tried was not.
    pub refusal: Option<Status>,
    pub typed_judged: String,
}

/// What a visitor may do with it, beside deciding.
#[derive(Debug)]
pub(super) struct May {
    /// Keep it from other reviewers a while longer.
    pub renew: bool,
    /// Try it on recorded queries.
    pub preview: bool,
}

/// The form that approves another value.
#[derive(Debug)]
pub(super) struct Editing {
    pub value: String,
    pub is_long: bool,
    /// The values that there are, where there are few.
    pub choices: Vec<Choice>,
    pub is_typed: bool,
}

#[derive(Debug)]
pub(super) struct Rival {
    pub id: String,
    pub value: String,
    pub votes: i64,
    pub status: &'static str,
}

#[derive(Debug)]
pub(super) struct Said {
    pub choice: String,
    pub reason: String,
    pub context: Vec<(String, String)>,
    /// The queries that they are about, as many as are shown.
    pub queries: Vec<String>,
    /// When the newest was said.
    pub at: Moment,
    pub retracted: bool,
    /// How many said just this.
    pub count: usize,
}

#[derive(Debug)]
pub(super) struct Voter {
    pub who: String,
    pub caller: String,
    pub at: Moment,
}

#[derive(Debug)]
pub(super) struct Step {
    pub from: &'static str,
    pub to: &'static str,
    pub who: String,
    pub cause: &'static str,
    pub reason: String,
    pub at: Moment,
    pub revision: i64,
}

/// A generated prompt.
#[derive(Debug)]
pub(super) struct Improved {
    pub reason: String,
    pub generator: String,
    pub good: i32,
    pub neutral: i32,
    pub bad: i32,
    pub diff: Vec<DiffLine>,
}

/// A line of a unified diff.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DiffLine {
    pub class: &'static str,
    pub text: String,
}

/// The lines of a unified diff, each with what it is.
pub(crate) fn diff(text: &str) -> Vec<DiffLine> {
    text.lines()
        .map(|line| DiffLine {
            class: match line.as_bytes().first() {
                Some(b'+') => "plus",
                Some(b'-') => "minus",
                Some(b'@') => "at",
                _ => "same",
            },
            text: line.to_owned(),
        })
        .collect()
}

/// Reads an item.
pub(super) async fn get(visitor: &Visitor, id: &str) -> Result<GetCandidateResponse, Status> {
    let request = GetCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: id.to_owned(),
    };
    let mut candidates = visitor.services.candidates();
    let answer = candidates.get_candidate(visitor.services.call(request)).await?;
    Ok(answer.into_inner())
}

/// Reads an item, and shows others that it is open if it can be decided.
pub(super) async fn read(
    visitor: &Visitor,
    id: &str,
    typed: &Typed,
    tried: Option<Vec<Judged>>,
) -> Result<Detail, Status> {
    let mut answer = get(visitor, id).await?;
    let candidate = answer.candidate.take().unwrap_or_default();
    let may_decide = visitor.may("learning.v1.CandidateService/ApproveCandidate");
    let status = CandidateStatus::try_from(candidate.status).unwrap_or_default();
    let is_open = matches!(status, CandidateStatus::Pending | CandidateStatus::AwaitingReview);
    // Whoever has it already says so again by the page's script: each time it is said, all pages are shown anew, this one too.
    let is_free = candidate.lease.is_none();
    let may_renew = is_open && may_decide && visitor.may("learning.v1.CandidateService/AcquireReviewLease");
    if may_renew && is_free {
        acquire(visitor, id).await?;
    }
    let now = now(visitor, &candidate).await?;
    let mut detail = shown(visitor, answer, &candidate, typed, now, is_open, may_renew);
    let kind = candidate.key.as_ref().and_then(|key| Kind::from_number(key.kind));
    let is_looked_up = kind.is_some_and(|kind| kind.rules().is_answer || kind == Kind::Prohibition);
    detail.may.preview = is_looked_up
        && visitor.may("learning.v1.CandidateService/PreviewCandidate")
        && visitor.may("feedback.v1.QueryService/ListQueries");
    detail.typed_judged.clone_from(&typed.judged);
    if let Some(judged) = tried.filter(|_| detail.may.preview) {
        match preview(visitor, id, judged).await {
            Ok(preview) => detail.preview = Some(preview),
            Err(status) if is_of_what_was_tried(&status) => detail.refusal = Some(status),
            Err(status) => return Err(status),
        }
    }
    Ok(detail)
}

/// Whether a refusal says something of what was tried, so that the item itself can still be shown.
fn is_of_what_was_tried(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::NotFound
            | Code::FailedPrecondition
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
    )
}

/// What nodes answer for the same key now.
async fn now(visitor: &Visitor, candidate: &Candidate) -> Result<Option<String>, Status> {
    if !visitor.may("learning.v1.ResourceService/GetResource") {
        return Ok(None);
    }
    let request = GetResourceRequest {
        key: candidate.key.clone(),
        min_revision: 0,
    };
    let mut resources = visitor.services.resources();
    match resources.get_resource(visitor.services.call(request)).await {
        Ok(answer) => {
            let resource = answer.into_inner().resource.unwrap_or_default();
            Ok(Some(text::value_line(visitor.language, resource.value.as_ref())))
        }
        Err(status) if status.code() == Code::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

fn shown(
    visitor: &Visitor,
    answer: GetCandidateResponse,
    candidate: &Candidate,
    typed: &Typed,
    now: Option<String>,
    is_open: bool,
    may_renew: bool,
) -> Detail {
    let language = visitor.language;
    let key = candidate.key.clone().unwrap_or_default();
    let value = candidate.value.as_ref();
    let learned = text::learned(value);
    let long_text = match &learned {
        Some(Learned::Prompt(prompt)) => Some(prompt.text().to_owned()),
        Some(Learned::SearchTuning(_) | Learned::NearLookup(_)) => {
            learned.as_ref().map(|learned| learned.maps_to().to_owned())
        }
        _ => None,
    };
    let status = CandidateStatus::try_from(candidate.status).unwrap_or_default();
    let kind = Kind::from_number(key.kind);
    let mut decidable = decidable(kind, candidate.status);
    // What was typed is shown again, also where somebody else has decided meanwhile.
    decidable.reject |= !typed.reason.is_empty();
    decidable.edit |= !typed.value.is_empty();
    let shown_value = text::value_line(language, value);
    Detail {
        id: candidate.candidate_id.clone(),
        etag: candidate.etag.clone(),
        kind: language.kind(key.kind),
        input: text::display(Some(&key), value),
        arrow: text::arrow(value),
        then: (now.as_ref() != Some(&shown_value)).then(|| then(language, kind)),
        value: text::shortened(&shown_value, 300),
        versions: (kind == Some(Kind::Prompt) && !is_open).then(|| {
            let target = Fields::default().with("target", &key.key);
            visitor.within(Part::Outputs, &["history"], &target)
        }),
        editing: learned
            .as_ref()
            .filter(|_| decidable.edit)
            .and_then(|learned| editing(language, learned, typed)),
        long_text,
        status: language.status(candidate.status),
        status_reason: language.reason(&candidate.status_reason),
        is_open,
        risk: language.risk(candidate.risk_level),
        votes_text: votes(language, candidate),
        pinned: candidate.contest_pinned,
        created: moment(candidate.created_at.as_ref()),
        decided_by: language.actor(candidate.decided_by.as_ref()),
        decision_reason: candidate.decision_reason.clone(),
        revision: candidate.applied_revision,
        holder: holder(visitor, candidate.lease.as_ref()),
        now,
        typed_reason: typed.reason.clone(),
        talk: talk(visitor, status, candidate, answer.comments, typed),
        redacted: candidate
            .proposal
            .as_ref()
            .map_or(0, |proposal| proposal.redacted_count),
        rivals: answer
            .rivals
            .iter()
            .map(|rival| Rival {
                id: rival.candidate_id.clone(),
                value: text::shortened(&text::value_line(language, rival.value.as_ref()), 120),
                votes: rival.reporter_count,
                status: language.status(rival.status),
            })
            .collect(),
        feedback: said(answer.feedback),
        voters: answer
            .votes
            .into_iter()
            .map(|vote| Voter {
                who: language.person(&vote.reporter_id, ""),
                caller: language.person("", &vote.caller),
                at: moment(vote.received_at.as_ref()),
            })
            .collect(),
        history: answer
            .history
            .iter()
            .rev()
            .map(|step| Step {
                from: if step.from == 0 {
                    ""
                } else {
                    language.status(step.from)
                },
                to: language.status(step.to),
                who: language.actor(step.actor.as_ref()),
                cause: language.cause(step.cause),
                reason: language.reason(&step.reason),
                at: moment(step.at.as_ref()),
                revision: step.revision,
            })
            .collect(),
        improvement: answer.improvement.map(|improvement| Improved {
            diff: diff(&improvement.diff),
            reason: improvement.reason,
            generator: improvement.generator,
            good: improvement.good_count,
            neutral: improvement.neutral_count,
            bad: improvement.bad_count,
        }),
        suggestion: answer.suggestion.map(|suggestion| suggestion.reason),
        may: May {
            renew: may_renew,
            preview: false,
        },
        preview: None,
        refusal: None,
        typed_judged: String::new(),
        decidable,
        qualifier: key.qualifier,
        user: key.user_id,
    }
}

/// What a person can still decide; of a status that is not known, nothing.
fn decidable(kind: Option<Kind>, status: i32) -> Decidable {
    let none = Decidable {
        approve: false,
        edit: false,
        reject: false,
    };
    parse::candidate_status(status).map_or(none, |status| Decidable::of(kind, status))
}

/// What nodes do once a value of the kind is approved.
fn then(language: Language, kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::Prohibition) => {
            language.t("no node answers any more", "全ノードが次を応答しなくなります:")
        }
        Some(kind) if kind.rules().is_answer => {
            language.t("every node answers", "全ノードの応答が次になります:")
        }
        _ => language.t("every node has", "全ノードに次が反映されます:"),
    }
}

/// How much support it has, in words.
fn votes(language: Language, candidate: &Candidate) -> String {
    let Candidate {
        reporter_count: people,
        occurrence_count: times,
        net_confirmations: net,
        threshold,
        ..
    } = candidate;
    let threshold = match threshold {
        0 => String::new(),
        _ => format!(" / {threshold}"),
    };
    match language {
        Language::English => {
            let people = if *people == 1 {
                "1 person".to_owned()
            } else {
                format!("{people} people")
            };
            let times = if *times == 1 {
                "once".to_owned()
            } else {
                format!("{times} times")
            };
            format!("{people}, {times}; net of rivals {net}{threshold}")
        }
        Language::Japanese => format!("{people} 人、{times} 回。対立候補との差 {net}{threshold}"),
    }
}

/// What people said, newest first; those who said the same in one line.
fn said(feedback: Vec<SupportingFeedback>) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    for feedback in feedback {
        let mut context: Vec<_> = feedback.context.into_iter().collect();
        context.sort_unstable();
        let known = said.iter_mut().find(|known| {
            (&known.choice, &known.reason, &known.context, known.retracted)
                == (
                    &feedback.system_choice,
                    &feedback.reason,
                    &context,
                    feedback.retracted,
                )
        });
        let query = Some(feedback.query_id).filter(|query| !query.is_empty());
        match known {
            Some(known) => {
                known.count += 1;
                known.queries.extend(query);
                known.queries.truncate(QUERIES);
            }
            None => said.push(Said {
                choice: feedback.system_choice,
                reason: feedback.reason,
                context,
                queries: query.into_iter().collect(),
                at: moment(feedback.received_at.as_ref()),
                retracted: feedback.retracted,
                count: 1,
            }),
        }
    }
    said
}

/// The form for another value; none for what nobody edits.
fn editing(language: Language, learned: &Learned, typed: &Typed) -> Option<Editing> {
    let (value, is_long, choices) = match learned {
        Learned::FewShotSet(_) | Learned::ProfileEntry(_) | Learned::Forbidden(_) => return None,
        Learned::Prompt(prompt) => (prompt.text().to_owned(), true, Vec::new()),
        Learned::Synonym(synonym) => {
            let relations = Relation::ALL.map(|it| (it.name().to_owned(), language.synonymy(it).to_owned()));
            (synonym.relation.name().to_owned(), false, relations.to_vec())
        }
        Learned::EdgeLabel(_) | Learned::DomainRule(_) => (
            learned.maps_to().to_owned(),
            false,
            words(language, learned.kind()),
        ),
        _ => (learned.maps_to().to_owned(), false, Vec::new()),
    };
    let is_typed = !typed.value.is_empty();
    let value = if is_typed { typed.value.clone() } else { value };
    let is_listed = choices.is_empty() || choices.iter().any(|(name, _)| *name == value);
    // One is always chosen, or the browser shows the first as if it were proposed.
    let proposed = (!is_listed).then(|| (value.clone(), value.clone()));
    let choices = proposed.into_iter().chain(choices).map(|(name, label)| Choice {
        is_chosen: name == value,
        value: name,
        label,
    });
    Some(Editing {
        choices: choices.collect(),
        value,
        is_long,
        is_typed,
    })
}

/// The words that a value of the kind may be, each with its label.
fn words(language: Language, kind: Kind) -> Vec<(String, String)> {
    let words: &[&str] = match kind {
        Kind::EdgeLabel => &["supports", "refutes", "neutral"],
        _ => &[
            "block",
            "unblock",
            "primary",
            "government",
            "academic",
            "trusted",
            "low",
            "unverified",
            "unblock:primary",
            "unblock:government",
            "unblock:academic",
            "unblock:trusted",
            "unblock:low",
            "unblock:unverified",
            "clear",
        ],
    };
    let labelled = words
        .iter()
        .map(|word| ((*word).to_owned(), language.decision(kind, word)));
    labelled.collect()
}

/// The value that somebody typed in place of the proposed one; none if it is the same.
pub(super) async fn edited(visitor: &Visitor, typed: &str) -> Result<Option<ResourceValue>, Status> {
    let candidate = get(visitor, &visitor.item).await?.candidate.unwrap_or_default();
    let refused = |why: String| Status::from(emend_base::Error::invalid("value", why));
    let kind = candidate.key.as_ref().map_or(0, |key| key.kind);
    let kind =
        Kind::from_number(kind).ok_or_else(|| refused(format!("this version does not know kind {kind}")))?;
    let before = text::learned(candidate.value.as_ref());
    let after = match before.clone() {
        Some(Learned::Synonym(synonym)) => Learned::Synonym(Synonym {
            relation: Relation::parse(typed.trim()).map_err(|Invalid(why)| refused(why))?,
            ..synonym
        }),
        Some(Learned::Prompt(prompt)) => Learned::Prompt(
            prompt
                .with_text(typed)
                .map_err(|violations| refused(violations.to_string()))?,
        ),
        _ => Learned::of(kind, typed.trim().to_owned()).map_err(|Invalid(why)| refused(why))?,
    };
    if before.as_ref() == Some(&after) {
        return Ok(None);
    }
    Ok(Some(ResourceValue {
        value: Some(emend_wire::kinds::value(&after)),
        ..candidate.value.unwrap_or_default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_said_alike_is_one_line_with_their_number() {
        let of = |choice: &str, query: &str| SupportingFeedback {
            system_choice: choice.to_owned(),
            query_id: query.to_owned(),
            ..SupportingFeedback::default()
        };
        let lines = said(vec![
            of("create_swap", "q1"),
            of("other", ""),
            of("create_swap", "q2"),
            of("create_swap", ""),
        ]);
        let lines: Vec<_> = lines
            .iter()
            .map(|line| (&*line.choice, line.count, line.queries.join(" ")))
            .collect();
        assert_eq!(
            lines,
            [
                ("create_swap", 3, "q1 q2".to_owned()),
                ("other", 1, String::new())
            ]
        );
    }

    #[test]
    fn a_domain_is_decided_by_a_choice() {
        let words = words(Language::Japanese, Kind::DomainRule);
        assert_eq!(words.len(), 15);
        assert_eq!(words[0], ("block".to_owned(), "ブロック".to_owned()));
    }

    #[test]
    fn what_is_proposed_is_chosen_until_a_person_chooses_otherwise() {
        let chosen = |learned: &Learned, typed: &Typed| -> Vec<String> {
            let editing = editing(Language::English, learned, typed).unwrap();
            let chosen = editing.choices.into_iter().filter(|choice| choice.is_chosen);
            chosen.map(|choice| choice.value).collect()
        };
        let rules = words(Language::English, Kind::DomainRule).into_iter();
        let labels = words(Language::English, Kind::EdgeLabel).into_iter();
        let rules = rules.map(|(word, _)| Learned::of(Kind::DomainRule, word).unwrap());
        let labels = labels.map(|(word, _)| Learned::of(Kind::EdgeLabel, word).unwrap());
        for learned in rules.chain(labels) {
            assert_eq!(chosen(&learned, &Typed::default()), [learned.maps_to()]);
        }
        let learned = Learned::of(Kind::DomainRule, "block".to_owned()).unwrap();
        let typed = Typed {
            value: "unblock: low".to_owned(),
            ..Typed::default()
        };
        assert_eq!(chosen(&learned, &typed), ["unblock: low"], "it is what was sent");
    }

    #[test]
    fn each_line_of_a_diff_is_what_it_begins_with() {
        let lines = diff("@@ -1 +1 @@\n-old\n+new\n same\n");
        let classes: Vec<_> = lines.iter().map(|line| line.class).collect();
        assert_eq!(classes, ["at", "minus", "plus", "same"]);
    }
}
