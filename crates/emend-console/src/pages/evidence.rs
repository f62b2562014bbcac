//! The evidence: what is decided about domains, claims and edges, and deciding it.

pub(crate) mod claims;
pub(crate) mod domains;
pub(crate) mod edges;
pub(crate) mod events;
mod words;

use axum::response::Response;
use emend_core::{ClaimState, DomainRule, EdgeLabel, Invalid, kinds::ReasonCode};
use emend_proto::{
    common::v1::{OutcomeState, correction::Correction as Form},
    feedback::v1::Feedback,
};
use emend_wire::kinds::{claim_decision, domain_decision, edge_correction};
use http::StatusCode;
use tonic::Status;

use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Part, Visitor},
    pages::{
        correction::{Said, submit},
        tabs::Tab,
    },
    text::Language,
    told::{self, Told, Undo},
};

/// The tabs of all pages of evidence that the visitor may see.
fn tabs(visitor: &Visitor, current: &str) -> Vec<Tab> {
    let tab = |path, label| Tab::of(visitor, Part::Evidence, path, label, current);
    let mut tabs = vec![
        tab("", ("Domains", "ドメイン")),
        tab("blocked", ("Blocked", "ブロック中")),
        tab("claims", ("Claims", "主張")),
        tab("edges", ("Review edges", "エッジのレビュー")),
    ];
    if visitor.may("learning.v1.EvidenceService/ListEvidenceEvents") {
        tabs.push(tab("events", ("Events", "操作履歴")));
    }
    tabs
}

fn may_decide(visitor: &Visitor) -> bool {
    visitor.may("feedback.v1.FeedbackService/SubmitFeedback")
}

/// The domain in what somebody typed or pasted: an address is read as that of its domain.
pub(crate) fn domain_of(typed: &str) -> &str {
    let typed = typed.trim();
    let is_address = typed.contains("://");
    let rest = typed.split_once("://").map_or(typed, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let without_port = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let host = without_port.map_or(host, |(host, _)| host);
    // What was no address and has no domain is refused as it was typed.
    if host.is_empty() || !is_address && !host.contains('.') {
        typed
    } else {
        host
    }
}

/// Whether what somebody typed or pasted is the address of one page of a site.
pub(crate) fn is_page(typed: &str) -> bool {
    let typed = typed.trim();
    let site = domain_of(typed);
    let rest = typed.split_once(site).map_or("", |(_, rest)| rest);
    let path = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    site != typed && !path.trim_matches('/').is_empty()
}

/// What a decision about a pattern covers, as people read it.
pub(crate) fn covered(language: Language, pattern: &str) -> String {
    match (language, pattern.strip_prefix("*.")) {
        (Language::English, None) => format!("the whole site {pattern}, with its subdomains"),
        (Language::Japanese, None) => format!("サイト全体 {pattern}(サブドメインを含む)"),
        (Language::English, Some(site)) => format!("all subdomains of {site}"),
        (Language::Japanese, Some(site)) => format!("{site} のすべてのサブドメイン"),
    }
}

fn invalid(field: &'static str) -> impl Fn(Invalid) -> Status {
    move |Invalid(why)| emend_base::Error::invalid(field, why).into()
}

/// What a decision about something came to, as the page after it tells: in force (then `done`), awaiting review, or nothing.
fn came_to(visitor: &Visitor, feedback: &Feedback, (done, what): (&str, &str)) -> Result<Fields, Refused> {
    let outcome = feedback.outcome.clone().unwrap_or_default();
    let done = match outcome.state() {
        OutcomeState::Applied => done,
        OutcomeState::AwaitingReview => "generated",
        OutcomeState::NoEffect => return Ok(visitor.telling(Told::new("nothing").of(what))),
        OutcomeState::Refused | OutcomeState::Rejected => {
            let mut failure = Failure::new(
                StatusCode::CONFLICT,
                visitor.t("That can't be decided so.", "この決定はできません。"),
            );
            let why = visitor.language.reason(&outcome.reason);
            failure.details = vec![outcome.message, outcome.decision_reason, why];
            failure.details.retain(|detail| !detail.is_empty());
            return Err(Refused::Failed(failure));
        }
        _ => "submitted",
    };
    let told = Told::new(done).of(what).at_revision(outcome.revision);
    Ok(visitor.telling(told.undone_by(Undo::Correction {
        feedback: feedback.feedback_id.clone(),
    })))
}

async fn decide(
    visitor: &Visitor,
    fields: &Fields,
    form: Form,
    said: (&str, &str),
) -> Result<Fields, Refused> {
    let with = Said {
        reason: fields.get("reason"),
        ..Said::default()
    };
    let feedback = submit(visitor, form, with).await?;
    came_to(visitor, &feedback, said)
}

/// Decides about the pattern that the form or the path names. Rules are about sites: whoever gave the address of a page is asked
/// whether its whole site is meant.
pub(crate) async fn decide_domain(visitor: &Visitor, fields: &Fields) -> Result<Response, Refused> {
    let typed = fields.get("pattern");
    if is_page(typed) {
        return domains::ask(visitor, fields).await;
    }
    let pattern = match typed {
        "" => &*visitor.item,
        typed => domain_of(typed),
    };
    let decision = match fields.get("decision") {
        "trust" => fields.get("level"),
        decision => decision,
    };
    let rule = DomainRule::parse(decision).map_err(invalid("decision"))?;
    let done = match rule {
        DomainRule::Block => "blocked",
        DomainRule::Unblock(_) => "restored",
        DomainRule::SetTrust(_) | DomainRule::Clear => "set",
    };
    let form = domain_decision(pattern.to_owned(), rule);
    let covered = covered(visitor.language, pattern);
    let told = decide(visitor, fields, form, (done, &covered)).await?;
    let rules = visitor.to(Part::Evidence, &Fields::default());
    visitor.go_back(fields, &rules, &told)
}

/// Rejects or restores the claim that the path names.
pub(crate) async fn decide_claim(visitor: &Visitor, fields: &Fields) -> Result<Response, Refused> {
    let (state, done) = match fields.get("decision") {
        "restore" => (ClaimState::Restored, "restored"),
        "reject" => {
            let code = ReasonCode::parse(fields.get("reason_code")).map_err(invalid("reason_code"))?;
            (ClaimState::Rejected(code), "rejected")
        }
        _ => return Err(invalid("decision")(Invalid::new("must be reject or restore")).into()),
    };
    let form = claim_decision(visitor.item.clone(), &state);
    let told = decide(visitor, fields, form, (done, &visitor.item)).await?;
    let claim = visitor.within(Part::Evidence, &["claims", &visitor.item], &Fields::default());
    visitor.go_back(fields, &claim, &told)
}

/// Labels the edge that the path names, and goes on to the next one.
pub(crate) async fn label_edge(visitor: &Visitor, fields: &Fields) -> Result<Response, Refused> {
    let label = EdgeLabel::parse(fields.get("label")).map_err(invalid("label"))?;
    let form = edge_correction(visitor.item.clone(), label);
    let told = decide(visitor, fields, form, ("saved", &visitor.item)).await?;
    let kept = Fields::parse(fields.get("return").trim_start_matches('?').as_bytes());
    let told = kept
        .without(&["edge"])
        .with(told::FIELD, told.get(told::FIELD))
        .with("last", &visitor.item);
    visitor.go(&visitor.within(Part::Evidence, &["edges"], &told))
}

#[cfg(test)]
mod tests {
    use super::{domain_of, is_page};

    #[test]
    fn the_address_of_a_page_is_told_from_that_of_a_site() {
        for page in [
            "https://spam.example/a",
            "https://spam.example/?id=1",
            "spam.example/news#top",
            "http://user@spam.example:8080/a/",
        ] {
            assert!(is_page(page), "{page}");
        }
        for site in [
            "https://spam.example/",
            "https://spam.example",
            "spam.example",
            "spam.example:443",
            "*.spam.example",
            "no domain / at all",
            "",
        ] {
            assert!(!is_page(site), "{site}");
        }
    }

    #[test]
    fn an_address_is_read_as_its_domain() {
        for (typed, domain) in [
            ("https://spam.example/a?b#c", "spam.example"),
            (" http://user:pw@spam.example:8080 ", "spam.example"),
            ("www.spam.example/news/1", "www.spam.example"),
            ("spam.example:443", "spam.example"),
            ("*.spam.example", "*.spam.example"),
            ("spam.example", "spam.example"),
            ("日本.example", "日本.example"),
            ("no domain / at all", "no domain / at all"),
            ("https://", "https://"),
        ] {
            assert_eq!(domain_of(typed), domain, "{typed}");
        }
    }
}
