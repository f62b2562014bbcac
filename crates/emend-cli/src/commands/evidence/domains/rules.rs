//! `emend evidence domains list` and `emend evidence domains blocked`.

use clap::ValueEnum;
use emend_core::{DomainDecision, DomainRule, Learned, TrustLevel, evidence::Layer};
use emend_proto::{
    common::v1::resource_value::Value,
    learning::v1::{BlockedDomain, DomainRuleRecord, ListBlockedDomainsRequest, ListDomainRulesRequest},
};

use crate::{
    context::Context,
    failure::Result,
    output::{Cell, Column, Output, Table},
    view,
};

/// Which decisions to list.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only those about this pattern
    #[arg(long, default_value = "", hide_default_value = true)]
    pattern: String,
    /// Only those of this layer: of people, the trust file, or what the system found in the evidence
    #[arg(long, value_enum)]
    layer: Option<Made>,
    /// Also those that have ended
    #[arg(long)]
    all: bool,
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: usize,
}

/// How many blocked domains to list.
#[derive(Debug, clap::Args)]
pub(super) struct BlockedArgs {
    /// List at most this many; 0 for all
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    limit: usize,
}

/// A layer of rules.
#[derive(Debug, Clone, Copy)]
struct Made(Layer);

impl ValueEnum for Made {
    fn value_variants<'a>() -> &'a [Self] {
        const LAYERS: [Made; 3] = [Made(Layer::Human), Made(Layer::File), Made(Layer::Verified)];
        &LAYERS
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

/// Lists decisions, the newest first.
pub(super) async fn list(args: ListArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let (rules, more) = context
        .list(
            &ListDomainRulesRequest {
                namespace: context.namespace(),
                pattern: args.pattern.clone(),
                layer: args
                    .layer
                    .map_or_else(String::new, |Made(layer)| layer.name().to_owned()),
                include_ended: args.all,
                ..ListDomainRulesRequest::default()
            },
            args.limit,
        )
        .await?;
    let is_filtered = !args.pattern.is_empty() || args.layer.is_some();
    let none = context.none_found("decisions about domains", is_filtered);
    output.list(&rules, more, view::domain_rule, table, &none)
}

fn table(rules: &[DomainRuleRecord]) -> Table {
    let cells = |record: &DomainRuleRecord| {
        let rule = rule_of(record);
        let by = record.actor.clone().unwrap_or_default();
        [
            Cell::whole(record.pattern.clone()),
            record.layer.clone().into(),
            rule.map_or_else(|| "?".into(), decision).into(),
            effective(record).into(),
            record.reason.clone().into(),
            if by.on_behalf_of.is_empty() {
                by.caller.into()
            } else {
                by.on_behalf_of.into()
            },
            view::short_time(record.created_at.as_ref()).into(),
            if record.active { "" } else { "ended" }.to_owned().into(),
        ]
    };
    Table::new([
        ("PATTERN", Column::Text),
        ("LAYER", Column::Fixed),
        ("DECISION", Column::Fixed),
        ("NOW", Column::Fixed),
        ("REASON", Column::Text),
        ("BY", Column::Text),
        ("DECIDED", Column::Time),
        ("", Column::Fixed),
    ])
    .with_rows(rules, cells)
}

/// What was decided, as files to import say it: `block`, `unblock`, `unblock:LEVEL` or a level.
fn decision(rule: DomainRule) -> String {
    let (decision, trust) = (rule.decision(), rule.trust());
    match decision {
        DomainDecision::SetTrust => trust.name().to_owned(),
        DomainDecision::Unblock if trust != TrustLevel::Unverified => {
            format!("{}:{}", decision.name(), trust.name())
        }
        _ => decision.name().to_owned(),
    }
}
/// How far what a pattern covers is trusted now, and by which layer if it is not the rule's own.
fn effective(record: &DomainRuleRecord) -> String {
    let level = view::evidence::level(record.effective_level).unwrap_or_default();
    match record.effective_layer.as_str() {
        "" => format!("{level} (default)"),
        layer if layer == record.layer => level,
        layer => format!("{level} ({layer})"),
    }
}

fn rule_of(record: &DomainRuleRecord) -> Option<DomainRule> {
    match emend_wire::kinds::learned(&Value::DomainRule(record.rule.clone()?)).ok()? {
        Learned::DomainRule(value) => Some(value.rule),
        _ => None,
    }
}

/// Lists blocked domains, those decided last first.
pub(super) async fn blocked(args: BlockedArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let (domains, more) = context
        .list(
            &ListBlockedDomainsRequest {
                namespace: context.namespace(),
                ..ListBlockedDomainsRequest::default()
            },
            args.limit,
        )
        .await?;
    let none = context.none_of("blocked domains");
    output.list(&domains, more, view::blocked_domain, blocked_table, &none)
}

fn blocked_table(domains: &[BlockedDomain]) -> Table {
    Table::new([
        ("DOMAIN", Column::Text),
        ("LAYER", Column::Fixed),
        ("BLOCKED", Column::Time),
        ("REASON", Column::Text),
        ("CLAIMS", Column::Text),
        ("OTHERWISE", Column::Fixed),
        ("CAUSE", Column::Text),
    ])
    .with_rows(domains, |blocked| {
        let level = TrustLevel::from_number(blocked.original_level);
        [
            Cell::whole(blocked.domain.clone()),
            blocked.layer.clone().into(),
            view::short_time(blocked.blocked_at.as_ref()).into(),
            blocked.reason.clone().into(),
            blocked.contradicting_claims.join(" ").into(),
            level.map_or("?", TrustLevel::name).to_owned().into(),
            blocked.cause_id.clone().into(),
        ]
    })
}
