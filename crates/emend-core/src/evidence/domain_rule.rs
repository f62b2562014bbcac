//! What is decided about the sources that a pattern of domains covers, and why the system decided it.

use super::TrustLevel;
use crate::{normalize::parse_exact, violation::Invalid};

/// A decision about the sources that a pattern covers. Its level is never `Blocked`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DomainRule {
    /// They are not shown.
    Block,
    /// They are shown, whatever lower layers say. Without a level they keep the one given to the pattern before.
    Unblock(Option<TrustLevel>),
    /// They are trusted this far.
    SetTrust(TrustLevel),
    /// No rule: the default applies again. Never a resource.
    Clear,
}

/// A decision, and why where the system made it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainRuleValue {
    /// What was decided.
    pub rule: DomainRule,
    /// Why the system decided it; `None` where people or the trust file did.
    pub cause: Option<RuleCause>,
}

impl From<DomainRule> for DomainRuleValue {
    fn from(rule: DomainRule) -> Self {
        Self { rule, cause: None }
    }
}

/// Why the system decided about a domain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleCause {
    /// What it found.
    pub found: Finding,
    /// The claim it found it in, 1 to 512 characters; empty where no single claim is the cause.
    pub claim_id: String,
}

impl RuleCause {
    /// What was found, and in which claim.
    pub fn parse(found: Finding, claim_id: &str) -> Result<Self, Invalid> {
        let claim_id = match claim_id {
            "" => String::new(),
            id => parse_exact(id)?,
        };
        Ok(Self { found, claim_id })
    }
}

/// What the system found about a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finding {
    /// A claim with a dangerous pattern.
    DangerousPattern,
    /// Too many of its claims are rejected.
    RejectedShare,
    /// A claim that independent sources support.
    IndependentSupport,
}

impl Finding {
    /// All findings, in the order of their numbers on the wire.
    pub const ALL: [Self; 3] = [
        Self::DangerousPattern,
        Self::RejectedShare,
        Self::IndependentSupport,
    ];

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DangerousPattern => "dangerous_pattern",
            Self::RejectedShare => "rejected_share",
            Self::IndependentSupport => "independent_support",
        }
    }
}

/// What is decided about sources, without how far they are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DomainDecision {
    /// They are not shown.
    Block,
    /// They are shown, whatever lower layers say.
    Unblock,
    /// They are trusted this far.
    SetTrust,
    /// No rule: the default applies again. Never a resource.
    Clear,
}

impl DomainDecision {
    /// All decisions, in the order of their numbers on the wire.
    pub const ALL: [Self; 4] = [Self::Block, Self::Unblock, Self::SetTrust, Self::Clear];

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Unblock => "unblock",
            Self::SetTrust => "set_trust",
            Self::Clear => "clear",
        }
    }
}

impl DomainRule {
    /// A decision with its level. `SetTrust` needs one, `Unblock` may have one, the others have none; `Blocked` is none.
    pub fn new(decision: DomainDecision, level: Option<TrustLevel>) -> Result<Self, Invalid> {
        use DomainDecision::{Block, Clear, SetTrust, Unblock};
        match (decision, level) {
            (_, Some(TrustLevel::Blocked)) => {
                Err(Invalid::new("must not be BLOCKED: block the pattern instead"))
            }
            (SetTrust, None) => Err(Invalid::new("is required: how far the sources are trusted")),
            (Block | Clear, Some(_)) => Err(Invalid::new("must be empty with this decision")),
            (Block, None) => Ok(Self::Block),
            (Clear, None) => Ok(Self::Clear),
            (Unblock, level) => Ok(Self::Unblock(level)),
            (SetTrust, Some(level)) => Ok(Self::SetTrust(level)),
        }
    }

    /// What was decided.
    pub const fn decision(self) -> DomainDecision {
        match self {
            Self::Block => DomainDecision::Block,
            Self::Unblock(_) => DomainDecision::Unblock,
            Self::SetTrust(_) => DomainDecision::SetTrust,
            Self::Clear => DomainDecision::Clear,
        }
    }

    /// How far they are trusted, if it says so.
    pub const fn level(self) -> Option<TrustLevel> {
        match self {
            Self::Unblock(level) => level,
            Self::SetTrust(level) => Some(level),
            Self::Block | Self::Clear => None,
        }
    }

    /// The decision as one word: `block`, `unblock`, `unblock:academic`, `academic`, `clear`.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        let word = word.trim().to_ascii_lowercase();
        let (decision, level) = match word.split_once(':') {
            Some(("unblock", level)) => (DomainDecision::Unblock, Some(level)),
            _ => match word.as_str() {
                "block" => (DomainDecision::Block, None),
                "unblock" => (DomainDecision::Unblock, None),
                "clear" => (DomainDecision::Clear, None),
                level => (DomainDecision::SetTrust, Some(level)),
            },
        };
        let level = level.map(TrustLevel::parse).transpose();
        let level = level.map_err(|Invalid(why)| {
            Invalid::new(format!(
                "must be block, unblock, unblock:LEVEL, clear or a level; a level {why}"
            ))
        })?;
        Self::new(decision, level)
    }

    /// Whether it says that sources are shown, and not how far they are trusted.
    pub const fn leaves_level_open(self) -> bool {
        matches!(self, Self::Unblock(None))
    }

    /// How far a source that this rule decides about is trusted, if no other rule is known.
    pub fn trust(self) -> TrustLevel {
        match self {
            Self::Block => TrustLevel::Blocked,
            Self::Unblock(level) => level.unwrap_or_default(),
            Self::SetTrust(level) => level,
            Self::Clear => TrustLevel::default(),
        }
    }
}
