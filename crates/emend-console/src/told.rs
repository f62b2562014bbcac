//! What a form did, as the page after it tells, and what can be undone from there. It travels in the address, sealed for whoever
//! sent the form: no address that somebody else made, and no older page, can make the console tell or undo anything else.

use emend_proto::{
    common::v1::Cause,
    feedback::v1::{RetractFeedbackRequest, Wait},
    learning::v1::{Candidate, GetCandidateRequest, RevertRevisionRequest, Transition, UndoDecisionRequest},
};
use http::StatusCode;
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};
use tonic::{Code, Status};

use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Part, Visitor},
    text::{self, Language},
};

/// The field of addresses and forms that has it.
pub(crate) const FIELD: &str = "told";
/// Characters of what something was done to, and of what somebody said.
const MAX_CHARS: usize = 120;
/// How much is told of what people said.
const MAX_SAID: usize = 6;
/// How often an undo is tried while votes arrive on what it undoes.
const TRIES: usize = 3;

/// How something is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Undo {
    /// By undoing the decision on a candidate that was made then, in seconds and nanoseconds since 1970.
    Decision { candidate: String, at: (i64, i32) },
    /// By taking the correction back.
    Correction { feedback: String },
    /// By reverting the revision.
    Revision,
}

/// What a form did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    /// What happened, as [`words`] knows it.
    done: String,
    /// What it was done to, as people read it; may be empty.
    what: String,
    /// The revision that was written; 0 if none was.
    revision: i64,
    /// What else there is to know, such as who said what so far.
    said: Vec<String>,
    /// How it is undone, if it can be.
    undo: Option<Undo>,
}

impl Told {
    /// This was done, and no revision was written.
    pub(crate) fn new(done: &str) -> Self {
        Self {
            done: done.to_owned(),
            what: String::new(),
            revision: 0,
            said: Vec::new(),
            undo: None,
        }
    }

    /// It was done to this.
    pub(crate) fn of(mut self, what: &str) -> Self {
        self.what = text::shortened(what, MAX_CHARS);
        self
    }

    /// It wrote this revision.
    pub(crate) fn at_revision(mut self, revision: i64) -> Self {
        self.revision = revision;
        self
    }

    /// These lines are told, too.
    pub(crate) fn saying(mut self, said: impl IntoIterator<Item = String>) -> Self {
        let said = said.into_iter().take(MAX_SAID);
        self.said = said.map(|line| text::shortened(&line, MAX_CHARS)).collect();
        self
    }

    /// It can be undone so.
    pub(crate) fn undone_by(mut self, undo: Undo) -> Self {
        self.undo = Some(undo);
        self
    }

    /// It wrote this revision, and is undone by reverting that; of 0 nothing changed.
    pub(crate) fn set(done: &str, revision: i64) -> Self {
        if revision == 0 {
            return Self::new("nothing");
        }
        Self::new(done).at_revision(revision).undone_by(Undo::Revision)
    }

    /// A decision was made on this candidate, which is as the decision left it: it changed last when the decision was made.
    pub(crate) fn decided(visitor: &Visitor, done: &str, candidate: &Candidate, revision: i64) -> Self {
        Self::new(done)
            .of(&line(visitor.language, candidate))
            .at_revision(revision)
            .undone_by(Undo::Decision {
                candidate: candidate.candidate_id.clone(),
                at: pair(candidate.updated_at.as_ref()),
            })
    }

    /// What happened.
    pub(crate) fn done(&self) -> &str {
        &self.done
    }

    /// Whether the visitor may undo it.
    fn can_be_undone_by(&self, visitor: &Visitor) -> bool {
        match &self.undo {
            None => false,
            Some(Undo::Decision { .. }) => visitor.may("learning.v1.CandidateService/UndoDecision"),
            Some(Undo::Correction { .. }) => visitor.may("feedback.v1.FeedbackService/RetractFeedback"),
            Some(Undo::Revision) => {
                self.revision > 0 && visitor.may("learning.v1.ResourceService/RevertRevision")
            }
        }
    }
}

/// What a candidate proposes, in one line.
pub(crate) fn line(language: Language, candidate: &Candidate) -> String {
    let value = candidate.value.as_ref();
    format!(
        "{} {} {}",
        text::display(candidate.key.as_ref(), value),
        text::arrow(value),
        text::value_line(language, value)
    )
}

fn pair(at: Option<&Timestamp>) -> (i64, i32) {
    at.map_or((0, 0), |at| (at.seconds, at.nanos))
}

/// What happened, in fixed words; none of what is not known.
fn words(done: &str, language: Language) -> Option<&'static str> {
    Some(match done {
        "approved" => language.t("Approved.", "承認しました。"),
        "edited" => language.t("Approved with your change.", "修正して承認しました。"),
        "approved-once" => language.t(
            "Your approval is kept. It waits for 1 more reviewer.",
            "承認を記録しました。あと1人の承認が必要です。",
        ),
        "asked" => language.t("Asked: it waits for an answer.", "質問しました。回答待ちです。"),
        "commented" => language.t("Your comment is kept.", "コメントを保存しました。"),
        "rejected" => language.t("Rejected.", "却下しました。"),
        "undone" => language.t("Undone: it is as it was before.", "元に戻しました。"),
        "set" => language.t("Set.", "設定しました。"),
        "deleted" => language.t("Deleted.", "削除しました。"),
        "retracted" => language.t("Taken back.", "取り消しました。"),
        "reverted" => language.t("Reverted.", "差し戻しました。"),
        "blocked" => language.t("Blocked.", "ブロックしました。"),
        "restored" => language.t("Restored.", "復元しました。"),
        "submitted" => language.t("Submitted: thank you.", "送信しました。ありがとうございます。"),
        "generated" => language.t(
            "A proposal awaits review.",
            "提案を作成しました。レビュー待ちです。",
        ),
        "redriven" => language.t("They are delivered again.", "再配送します。"),
        "frozen" => language.t(
            "Frozen: corrections change nothing until you let it learn again.",
            "凍結しました。学習を再開するまで修正は反映されません。",
        ),
        "learns" => language.t("It learns again.", "学習を再開しました。"),
        "saved" => language.t("Saved.", "保存しました。"),
        "nothing" => language.t("It was so already: nothing changed.", "変更はありません。"),
        _ => return None,
    })
}

/// What a form did, told once by the page after it.
#[derive(Debug)]
pub(crate) struct Notice {
    /// What happened.
    pub text: &'static str,
    /// What it happened to; may be empty.
    pub what: String,
    /// The revision that was written; 0 if none was.
    pub revision: i64,
    /// What else there is to know.
    pub said: Vec<String>,
    /// What a form sends to undo it; none where it can't be undone.
    pub undo: Option<String>,
}

/// What an address tells of.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    /// When, in seconds since 1970.
    at: i64,
    told: Told,
}

impl Visitor {
    /// For whom it is sealed, and where.
    fn addressee(&self) -> String {
        let who = if self.access.authenticated {
            ["caller", &self.access.caller]
        } else {
            ["session", &self.session.id]
        };
        format!("told {} {} {}", self.namespace, who[0], who[1])
    }

    /// The field by which the page after a form tells what it did.
    pub(crate) fn telling(&self, told: Told) -> Fields {
        let at = self.console.clock.now().as_second();
        let plain = serde_json::to_vec(&Sealed { at, told }).expect("invariant: texts and numbers are JSON");
        let sealed = self.console.sessions.seal_for(&self.addressee(), &plain);
        Fields::default().with(FIELD, &sealed)
    }

    /// What a field tells this visitor, if it was sealed for them.
    fn told(&self, fields: &Fields) -> Option<Told> {
        let plain = self
            .console
            .sessions
            .open_for(&self.addressee(), fields.get(FIELD))?;
        let sealed: Sealed = serde_json::from_slice(&plain).ok()?;
        self.console.sessions.is_recent(sealed.at).then_some(sealed.told)
    }

    /// What the page tells of the form before it.
    pub(crate) fn notice(&self, fields: &Fields) -> Option<Notice> {
        let told = self.told(fields)?;
        let undo = told.can_be_undone_by(self);
        Some(Notice {
            text: words(&told.done, self.language)?,
            undo: undo.then(|| fields.get(FIELD).to_owned()),
            what: told.what,
            revision: told.revision,
            said: told.said,
        })
    }
}

/// Undoes what a form did, as the page after it told.
pub(crate) async fn undo(visitor: &Visitor, fields: &Fields) -> Answer {
    let told = visitor.told(fields);
    let Some((told, undo)) = told.and_then(|told| told.undo.clone().map(|undo| (told, undo))) else {
        return Err(Refused::Failed(Failure::new(
            StatusCode::FORBIDDEN,
            visitor.t(
                "There is nothing here that you could undo: open what you decided, and decide anew.",
                "ここから元に戻せる操作はありません。対象を開いて判断し直してください。",
            ),
        )));
    };
    let reason = || {
        visitor
            .t("undone in the console", "コンソールで取り消し")
            .to_owned()
    };
    match undo {
        Undo::Decision { candidate, at } => {
            let (candidate, revision) = undo_decision(visitor, candidate, at).await?;
            let said = Told::new("undone")
                .of(&line(visitor.language, &candidate))
                .at_revision(revision);
            let queue = visitor.to(Part::Review, &Fields::default());
            let elsewhere = fields.get("return");
            if elsewhere.is_empty() || elsewhere.starts_with(&queue) {
                let item = visitor.telling(said).with("item", &candidate.candidate_id);
                return visitor.go(&visitor.to(Part::Review, &item));
            }
            visitor.go_back(fields, &queue, &visitor.telling(said))
        }
        Undo::Correction { feedback } => {
            let request = visitor.services.call(RetractFeedbackRequest {
                namespace: visitor.namespace.clone(),
                feedback_id: feedback,
                reason: reason(),
                wait: Wait::Evaluated as i32,
            });
            let answer = visitor.services.feedback().retract_feedback(request).await?;
            let feedback = answer.into_inner().feedback.unwrap_or_default();
            let revision = feedback.outcome.unwrap_or_default().revision;
            let said = Told::new("retracted").of(&told.what).at_revision(revision);
            let evidence = visitor.to(Part::Evidence, &Fields::default());
            visitor.go_back(fields, &evidence, &visitor.telling(said))
        }
        Undo::Revision => {
            let request = visitor.services.call(RevertRevisionRequest {
                namespace: visitor.namespace.clone(),
                revision: told.revision,
                reason: reason(),
                on_behalf_of: visitor.on_behalf_of(),
                ..RevertRevisionRequest::default()
            });
            let answer = visitor.services.resources().revert_revision(request).await?;
            let revision = answer.into_inner().revision;
            let done = if revision == 0 { "nothing" } else { "reverted" };
            let said = Told::new(done).of(&told.what).at_revision(revision);
            let log = visitor.to(Part::Log, &Fields::default());
            visitor.go_back(fields, &log, &visitor.telling(said))
        }
    }
}

/// When the newest decision of a reviewer on a candidate was made.
fn newest_review(history: &[Transition]) -> Option<&Transition> {
    history
        .iter()
        .rev()
        .find(|transition| transition.cause() == Cause::Review)
}

/// Undoes the decision that was made then, and no other. Votes may arrive meanwhile, and count.
async fn undo_decision(
    visitor: &Visitor,
    candidate_id: String,
    at: (i64, i32),
) -> Result<(Candidate, i64), Refused> {
    let mut candidates = visitor.services.candidates();
    let mut tries = 1..=TRIES;
    loop {
        let is_last = tries.next() == Some(TRIES);
        let request = visitor.services.call(GetCandidateRequest {
            namespace: visitor.namespace.clone(),
            candidate_id: candidate_id.clone(),
        });
        let read = candidates.get_candidate(request).await?.into_inner();
        if newest_review(&read.history).is_none_or(|review| pair(review.at.as_ref()) != at) {
            return Err(Refused::Failed(Failure::new(
                StatusCode::CONFLICT,
                visitor.t(
                    "It was decided anew since: nothing was undone.",
                    "その後に別の判断が行われたため、元に戻しませんでした。",
                ),
            )));
        }
        let request = visitor.services.call(UndoDecisionRequest {
            namespace: visitor.namespace.clone(),
            candidate_id: candidate_id.clone(),
            etag: read.candidate.unwrap_or_default().etag,
            on_behalf_of: visitor.on_behalf_of(),
        });
        match candidates.undo_decision(request).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                return Ok((answer.candidate.unwrap_or_default(), answer.revision));
            }
            Err(status) if status.code() == Code::Aborted && !is_last => {}
            Err(status) => return Err(status.into()),
        }
    }
}

/// What was decided on a candidate whose decision answered without it.
pub(crate) async fn decided(visitor: &Visitor, done: &str, candidate_id: &str) -> Result<Told, Status> {
    let request = visitor.services.call(GetCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: candidate_id.to_owned(),
    });
    let read = visitor.services.candidates().get_candidate(request).await?;
    let read = read.into_inner();
    let candidate = Candidate {
        updated_at: newest_review(&read.history).and_then(|review| review.at),
        ..read.candidate.unwrap_or_default()
    };
    Ok(Told::decided(visitor, done, &candidate, 0))
}
