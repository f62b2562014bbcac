//! Decisions about domains by layer, and the domains that are blocked.

use askama::Template;
use emend_proto::learning::v1::{
    BlockedDomain, DomainRuleRecord, ListBlockedDomainsRequest, ListDomainRulesRequest,
};
use http::StatusCode;

use super::{covered, domain_of, may_decide, tabs, words};
use crate::{
    failure::Failure,
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{Choice, links, tabs::Tab},
    server::own_address,
    text::{Language, Moment, moment},
};

const PAGE: i32 = 50;

/// The page of decisions.
#[derive(Debug, Template)]
#[template(path = "domains.html")]
struct Domains {
    page: Page,
    tabs: Vec<Tab>,
    pattern: String,
    layers: Vec<Choice>,
    include_ended: bool,
    rules: Vec<Rule>,
    levels: Vec<(&'static str, &'static str)>,
    first: Option<String>,
    next: Option<String>,
    may_decide: bool,
    is_filtered: bool,
    /// What the form is filled in with.
    form: Form,
    /// What has to be known before it is sent again.
    asked: Option<Failure>,
}

/// The form that decides about a site.
#[derive(Debug)]
struct Form {
    pattern: String,
    level: String,
    reason: String,
    /// Where it leads back to.
    back: String,
}

/// A decision.
#[derive(Debug)]
struct Rule {
    id: String,
    pattern: String,
    layer: String,
    decision: String,
    is_block: bool,
    is_human: bool,
    active: bool,
    status: &'static str,
    effective: &'static str,
    effective_layer: String,
    reason: String,
    who: String,
    at: Moment,
    review: String,
}

fn rule(visitor: &Visitor, record: DomainRuleRecord) -> Rule {
    let language = visitor.language;
    let value = record.rule.unwrap_or_default();
    let item = Fields::default()
        .with("status", "any")
        .with("item", &record.rule_id);
    Rule {
        review: visitor.to(Part::Review, &item),
        layer: words::layer(language, &record.layer),
        decision: language.rule(&value),
        is_block: value.decision() == emend_proto::common::v1::DomainDecision::Block,
        is_human: record.layer == "human",
        active: record.active,
        status: language.status(record.status),
        effective: language.level(record.effective_level),
        effective_layer: words::layer(language, &record.effective_layer),
        reason: record.reason,
        who: language.actor(record.actor.as_ref()),
        at: moment(record.created_at.as_ref()),
        id: record.rule_id,
        pattern: record.pattern,
    }
}

fn levels(visitor: &Visitor) -> Vec<(&'static str, &'static str)> {
    words::LEVELS
        .map(|(name, level)| (name, visitor.language.level(level as i32)))
        .to_vec()
}

/// Lists decisions.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let form = Form {
        pattern: domain_of(fields.get("pattern")).to_owned(),
        level: String::new(),
        reason: String::new(),
        back: visitor.here(),
    };
    render(visitor, fields, form, None).await
}

/// Asks who gave the address of a page whether its whole site is meant; nothing was decided.
pub(super) async fn ask(visitor: &Visitor, sent: &Fields) -> Answer {
    let typed = sent.get("pattern");
    let site = domain_of(typed);
    let title = visitor.t(
        "Not decided yet: that is the address of one page, and decisions are about whole sites.",
        "まだ決定していません。入力されたのは1つのページの URL ですが、決定はサイト全体に適用されます。",
    );
    let mut asked = Failure::new(StatusCode::BAD_REQUEST, title);
    let covered = covered(visitor.language, site);
    asked.details = vec![match visitor.language {
        Language::English => format!("{typed} is a page of {site}. The decision would cover {covered}."),
        Language::Japanese => format!("{typed} は {site} のページです。決定の対象: {covered}"),
    }];
    let pressed = match sent.get("decision") {
        "block" => visitor.t("Block the site", "サイトをブロック"),
        "unblock" => visitor.t("Show it again", "ブロックを解除"),
        "clear" => visitor.t("Take the decision back", "決定を取り消す"),
        _ => visitor.t("Set trust", "信頼レベルを設定"),
    };
    asked.details.push(match visitor.language {
        Language::English => format!("Press “{pressed}” again if you mean all of it."),
        Language::Japanese => format!("サイト全体でよければ、もう一度「{pressed}」を押してください。"),
    });
    let back = own_address(sent.get("return")).to_owned();
    let shown = Fields::parse(back.split_once('?').map_or("", |(_, query)| query).as_bytes());
    let form = Form {
        pattern: site.to_owned(),
        level: sent.get("level").to_owned(),
        reason: sent.text("reason").to_owned(),
        back,
    };
    render(visitor, &shown.without(&TOLD), form, Some(asked)).await
}

async fn render(visitor: &Visitor, fields: &Fields, form: Form, asked: Option<Failure>) -> Answer {
    let (pattern, layer) = (domain_of(fields.get("pattern")), fields.get("layer"));
    let include_ended = fields.has("ended");
    let request = visitor.services.call(ListDomainRulesRequest {
        namespace: visitor.namespace.clone(),
        pattern: pattern.to_owned(),
        layer: layer.to_owned(),
        include_ended,
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
    });
    let answer = visitor.services.evidence().list_domain_rules(request).await?;
    let answer = answer.into_inner();
    let address = visitor.to(Part::Evidence, &Fields::default());
    let (first, next) = links(&address, fields, &answer.next_page_token);
    let layers = ["human", "file", "verified"].map(|name| Choice {
        value: name.to_owned(),
        label: words::layer(visitor.language, name),
        is_chosen: name == layer,
    });
    let rules = answer.rules.into_iter();
    let status = asked.as_ref().map_or(StatusCode::OK, |asked| asked.status);
    let shown = Domains {
        tabs: tabs(visitor, ""),
        pattern: pattern.to_owned(),
        layers: layers.to_vec(),
        include_ended,
        rules: rules.map(|record| rule(visitor, record)).collect(),
        levels: levels(visitor),
        first,
        next,
        may_decide: may_decide(visitor),
        is_filtered: !pattern.is_empty() || !layer.is_empty(),
        page: visitor.page(Part::Evidence, visitor.t("Domains", "ドメイン"), fields),
        form,
        asked,
    };
    Ok(html(status, &shown))
}

/// The page of what is blocked.
#[derive(Debug, Template)]
#[template(path = "blocked.html")]
struct Blocked {
    page: Page,
    tabs: Vec<Tab>,
    domains: Vec<BlockedRow>,
    first: Option<String>,
    next: Option<String>,
    may_decide: bool,
}

/// A blocked domain.
#[derive(Debug)]
struct BlockedRow {
    domain: String,
    layer: String,
    reason: String,
    /// Address and id of each claim.
    claims: Vec<(String, String)>,
    original: &'static str,
    can_restore: bool,
    cause: String,
    at: Moment,
}

fn blocked_row(visitor: &Visitor, blocked: BlockedDomain) -> BlockedRow {
    let claims = blocked.contradicting_claims.into_iter();
    BlockedRow {
        layer: words::layer(visitor.language, &blocked.layer),
        claims: claims
            .map(|id| (super::claims::address(visitor, &id), id))
            .collect(),
        original: visitor.language.level(blocked.original_level),
        at: moment(blocked.blocked_at.as_ref()),
        domain: blocked.domain,
        reason: blocked.reason,
        can_restore: blocked.can_restore,
        cause: blocked.cause_id,
    }
}

/// Lists what is blocked, and why.
pub(crate) async fn blocked(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.call(ListBlockedDomainsRequest {
        namespace: visitor.namespace.clone(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
    });
    let answer = visitor.services.evidence().list_blocked_domains(request).await?;
    let answer = answer.into_inner();
    let address = visitor.within(Part::Evidence, &["blocked"], &Fields::default());
    let (first, next) = links(&address, fields, &answer.next_page_token);
    let domains = answer.domains.into_iter();
    let shown = Blocked {
        tabs: tabs(visitor, "blocked"),
        domains: domains.map(|domain| blocked_row(visitor, domain)).collect(),
        first,
        next,
        may_decide: may_decide(visitor),
        page: visitor.page(
            Part::Evidence,
            visitor.t("Blocked domains", "ブロック中のドメイン"),
            fields,
        ),
    };
    Ok(html(StatusCode::OK, &shown))
}
