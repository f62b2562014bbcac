//! `emend evidence domains`: what is decided about the sources of domains, and how far a source is trusted.

mod rules;

use std::collections::HashMap;

use clap::{Subcommand, ValueEnum};
use emend_core::{
    DomainRule, Invalid, Learned, TrustLevel,
    evidence::{Decided, Layer, Layers, RulesOfName, deciding, host, suffixes},
};
use emend_proto::{common::v1::Resource, learning::v1::ListResourcesRequest};
use emend_wire::kinds::domain_decision;
use serde_json::json;

use super::decision::{self, Why};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    view,
};

/// List, check or decide.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  emend evidence domains block spam.example --reason \"copies others\"
  emend evidence domains trust \"*.example.edu\" academic --reason \"a university\"
  emend evidence domains unblock docs.spam.example --level low --reason \"a mirror that is kept well\"
  emend evidence domains block mirror.example --reason \"copies others\" --task t-17
  emend evidence domains clear spam.example --reason \"a new owner\"
  emend evidence domains check www.spam.example
  emend evidence domains list --pattern spam.example --all
  emend evidence domains blocked

A decision is in force at once if you are entitled to decide; otherwise it awaits review (emend
candidates). The newest decision about a pattern is in force. A pattern is a domain, which covers
all its subdomains, or *.DOMAIN for the subdomains alone. What people decided comes before the
trust file, and that before what the system found in the evidence. In each of these layers the
pattern with the longest name decides, and of two with one name the one for subdomains.")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List decisions, the newest first
    List(rules::ListArgs),
    /// List the domains that are blocked, and why
    Blocked(rules::BlockedArgs),
    /// Show whether a host is blocked or how far it is trusted, and why
    Check {
        /// The host, for example www.example.org
        host: String,
    },
    /// Never show these sources
    Block(Decision),
    /// Show these sources again
    Unblock {
        #[command(flatten)]
        decision: Decision,
        /// How far they are trusted [default: as was decided about the pattern before]
        #[arg(long, value_enum)]
        level: Option<Level>,
    },
    /// End what was decided about a pattern; the default applies again
    Clear(Decision),
    /// Say how far these sources are trusted
    Trust {
        /// A domain, or *.DOMAIN for its subdomains alone
        pattern: String,
        /// How far
        #[arg(value_enum)]
        level: Level,
        #[command(flatten)]
        why: Why,
    },
}

#[derive(Debug, clap::Args)]
struct Decision {
    /// A domain, or *.DOMAIN for its subdomains alone
    pattern: String,
    #[command(flatten)]
    why: Why,
}

/// A level that people may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level(TrustLevel);

impl ValueEnum for Level {
    fn value_variants<'a>() -> &'a [Self] {
        const LEVELS: [Level; 6] = [
            Level(TrustLevel::Primary),
            Level(TrustLevel::Government),
            Level(TrustLevel::Academic),
            Level(TrustLevel::Trusted),
            Level(TrustLevel::Low),
            Level(TrustLevel::Unverified),
        ];
        &LEVELS
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

/// Lists or checks decisions, or submits one and prints the outcome.
pub(super) async fn run(args: Args, context: &Context, output: &mut Output<'_>) -> Result {
    let (pattern, rule, why) = match args.action {
        Action::List(args) => return rules::list(args, context, output).await,
        Action::Blocked(args) => return rules::blocked(args, context, output).await,
        Action::Check { host } => return check(context, &host, output).await,
        Action::Block(block) => (block.pattern, DomainRule::Block, block.why),
        Action::Clear(clear) => (clear.pattern, DomainRule::Clear, clear.why),
        Action::Unblock { decision, level } => {
            let level = level.map(|Level(level)| level);
            (decision.pattern, DomainRule::Unblock(level), decision.why)
        }
        Action::Trust { pattern, level, why } => (pattern, DomainRule::SetTrust(level.0), why),
    };
    decision::submit(
        domain_decision(pattern, rule),
        why.reason,
        why.by,
        context,
        output,
    )
    .await
}

/// The decisions in force about patterns that begin so.
async fn in_force(context: &Context, prefix: &str, limit: usize) -> Result<(Vec<Resource>, bool)> {
    let request = ListResourcesRequest {
        namespace: context.namespace(),
        kinds: vec![emend_core::Kind::DomainRule.number()],
        key_prefix: prefix.to_owned(),
        ..ListResourcesRequest::default()
    };
    context.list(&request, limit).await
}

fn rule_of(resource: &Resource) -> Option<DomainRule> {
    match view::learned(resource.value.as_ref())? {
        Learned::DomainRule(value) => Some(value.rule),
        _ => None,
    }
}

/// Asks for the decisions about each name above the host, and decides as a node does.
async fn check(context: &Context, raw: &str, output: &mut Output<'_>) -> Result {
    let host = host(raw).map_err(|Invalid(why)| {
        Failure::usage(format!(
            "HOST: {why}\n  Pass the name of one host, without scheme, port, path or wildcard: www.example.org"
        ))
    })?;
    let mut rules: HashMap<&str, RulesOfName<Resource>> = HashMap::new();
    for name in suffixes(&host) {
        for pattern in [name.to_owned(), format!("*.{name}")] {
            // Of each layer at most one; longer patterns that begin alike come after them.
            let (found, _) = in_force(context, &pattern, Layer::ALL.len()).await?;
            for resource in found {
                let key = resource.key.clone().unwrap_or_default();
                let rule = rule_of(&resource).filter(|_| key.key == pattern);
                if let (Some(rule), Ok(layer)) = (rule, Layer::parse(&key.qualifier)) {
                    let of_name = rules.entry(name).or_default();
                    of_name.set(&pattern, layer, Some((rule, resource)));
                }
            }
        }
    }
    let decided = deciding(&host, Layers::All, |name| rules.get(name));
    let level = decided.as_ref().map(|decided| decided.level).unwrap_or_default();
    let json = json!({
        "host": host,
        "level": level.name(),
        "weight": level.weight(),
        "blocked": level == TrustLevel::Blocked,
        "rule": decided.as_ref().map(|decided| view::message(&decided.with)),
    });
    output.result(&json, || text(&host, level, decided.as_ref()))
}

fn text(host: &str, level: TrustLevel, by: Option<&Decided<'_, Resource>>) -> String {
    let first = match level {
        TrustLevel::Blocked => format!("{host} is blocked"),
        level => format!("the trust of {host} is {level} (weight {:.2})", level.weight()),
    };
    let second = match by {
        Some(decided) => format!(
            "decided about {}: {} ({}, revision {})",
            decided.covering.pattern(),
            view::value_text(decided.with.value.as_ref()),
            match decided.layer {
                Layer::Human => "by people",
                Layer::File => "by the trust file",
                Layer::Verified => "by the evidence",
            },
            decided.with.revision,
        ),
        None => "nothing was decided about it".to_owned(),
    };
    format!("{first}\n{second}")
}
