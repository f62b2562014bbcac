//! What the system makes of the evidence: the status of claims, and what follows for the domains that support them.
//!
//! All of it is a function of the graph, of rulings and of the other layers, whose levels are read without the verified one;
//! edges of blocked domains count. So a rise or block ends when its cause ends, and nothing feeds back. That a claim is
//! contradicted blocks nobody: no edge that refutes enters here.

use super::{DomainPattern, Suffix, TrustLevel};
use crate::{
    evidence::{DomainRule, DomainRuleValue, Finding, RuleCause},
    violation::Invalid,
};

/// How many independent sources verify a claim.
pub const VERIFYING_SOURCES: u64 = 2;

/// What people decided about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimRuling {
    /// It is hidden from results.
    Rejected,
    /// It is returned to results, whatever was found in it.
    Restored,
}

/// What is known of a claim. There is no fourth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimStatus {
    /// Neither.
    Pending,
    /// Independent sources support it.
    Verified,
    /// A person rejected it, or it has a dangerous pattern.
    Rejected,
}

impl ClaimStatus {
    /// All statuses, in the order of their numbers on the wire.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Verified, Self::Rejected];

    /// The number on the wire and in databases.
    pub const fn number(self) -> i32 {
        match self {
            Self::Pending => 1,
            Self::Verified => 2,
            Self::Rejected => 3,
        }
    }

    /// The status with this number.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.number() == number)
    }

    /// The name that files and command lines use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Rejected => "rejected",
        }
    }
}

/// What decides about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ClaimFacts {
    /// The ruling in force.
    pub ruling: Option<ClaimRuling>,
    /// Whether the backend reported a pattern with it that the trust file names as dangerous.
    pub has_dangerous_pattern: bool,
    /// How many independent sources support it.
    pub supporting_sources: u64,
}

impl ClaimFacts {
    /// Its status.
    pub fn status(self) -> ClaimStatus {
        if self.ruling == Some(ClaimRuling::Rejected) || self.is_dangerous() {
            ClaimStatus::Rejected
        } else if self.supporting_sources >= VERIFYING_SOURCES {
            ClaimStatus::Verified
        } else {
            ClaimStatus::Pending
        }
    }

    /// Whether it has a dangerous pattern, and nobody restored it.
    pub fn is_dangerous(self) -> bool {
        self.has_dangerous_pattern && self.ruling != Some(ClaimRuling::Restored)
    }
}

/// When the system blocks a domain for its rejected claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockingPolicy {
    /// Below this many claims it does not, at least 1.
    min_claims: u32,
    /// It does where more of 1,000 claims are rejected.
    rejected_permille: u32,
}

impl Default for BlockingPolicy {
    fn default() -> Self {
        Self {
            min_claims: 5,
            rejected_permille: 300,
        }
    }
}

impl BlockingPolicy {
    /// Checks the bounds: 1 to 1,000,000 claims, and up to 1,000 of 1,000. The violation says which of the two it is about.
    pub fn new(min_claims: u32, rejected_permille: u32) -> Result<Self, Invalid> {
        if !(1..=1_000_000).contains(&min_claims) {
            return Err(Invalid::new(format!(
                "must be 1 to 1,000,000 claims, is {min_claims}"
            )));
        }
        if rejected_permille > 1_000 {
            return Err(Invalid::new(format!(
                "must be 0 to 1,000 of 1,000 claims, is {rejected_permille}"
            )));
        }
        Ok(Self {
            min_claims,
            rejected_permille,
        })
    }

    /// The share of rejected claims above which it does, in percent: `30`, `33.3`.
    pub fn rejected_percent(self) -> String {
        match (self.rejected_permille / 10, self.rejected_permille % 10) {
            (percent, 0) => percent.to_string(),
            (percent, tenths) => format!("{percent}.{tenths}"),
        }
    }

    /// Below this many claims it does not block.
    pub fn min_claims(self) -> u32 {
        self.min_claims
    }

    /// It blocks where more of 1,000 claims are rejected.
    pub fn rejected_permille(self) -> u32 {
        self.rejected_permille
    }

    /// Whether so many rejected claims block a domain: more than the share, not as many.
    pub fn blocks(self, rejected: u64, claims: u64) -> bool {
        claims >= self.min_claims.into()
            && u128::from(rejected) * 1_000 > u128::from(self.rejected_permille) * u128::from(claims)
    }
}

/// The claims of a registrable domain: those with a SUPPORTS edge from it, each once; and those that were found on its pages, which
/// alone can be dangerous for it: who quotes a claim did not make it. Of several claims that are a cause, the one with the least
/// id is named, so that the order in which they are added does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimsOfDomain {
    /// How many it supports.
    pub claims: u64,
    /// How many of these are rejected.
    pub rejected: u64,
    /// One that was found on its pages and is dangerous.
    pub dangerous: Option<String>,
    /// One that it supports and that is verified.
    pub verified: Option<String>,
}

impl ClaimsOfDomain {
    /// Counts a claim that was found on one of its pages.
    pub fn add_found(&mut self, claim_id: &str, facts: ClaimFacts) {
        if facts.is_dangerous() {
            keep_least(&mut self.dangerous, claim_id);
        }
    }

    /// Counts a claim that it supports.
    pub fn add(&mut self, claim_id: &str, facts: ClaimFacts) {
        let status = facts.status();
        self.claims += 1;
        self.rejected += u64::from(status == ClaimStatus::Rejected);
        if status == ClaimStatus::Verified {
            keep_least(&mut self.verified, claim_id);
        }
    }

    /// What the verified layer says of the domain; `None`: nothing. `level` is that of the domain without the verified layer,
    /// and `is_set` whether a rule of people or of the trust file covers it: what they set is never touched. Nor is a
    /// suffix below which others have names, such as `github.io`: a rule for it would be one for all of them.
    pub fn rule(
        &self,
        domain: &str,
        level: TrustLevel,
        is_set: bool,
        policy: BlockingPolicy,
    ) -> Option<DomainRuleValue> {
        let is_somebodys = DomainPattern::parse(domain).is_ok_and(|pattern| pattern.suffix() == Suffix::None);
        if is_set || !is_somebodys {
            return None;
        }
        let (rule, found, claim_id) = if let Some(claim) = &self.dangerous {
            (DomainRule::Block, Finding::DangerousPattern, claim.as_str())
        } else if policy.blocks(self.rejected, self.claims) {
            (DomainRule::Block, Finding::RejectedShare, "")
        } else if let (Some(claim), TrustLevel::Unverified) = (&self.verified, level) {
            let raised = DomainRule::SetTrust(TrustLevel::Low);
            (raised, Finding::IndependentSupport, claim.as_str())
        } else {
            return None;
        };
        Some(DomainRuleValue {
            rule,
            cause: Some(RuleCause {
                found,
                claim_id: claim_id.to_owned(),
            }),
        })
    }
}

fn keep_least(kept: &mut Option<String>, id: &str) {
    if kept.as_deref().is_none_or(|kept| id < kept) {
        *kept = Some(id.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        ClaimRuling::{Rejected, Restored},
        *,
    };

    const PENDING: ClaimFacts = ClaimFacts {
        ruling: None,
        has_dangerous_pattern: false,
        supporting_sources: 1,
    };
    const REJECTED: ClaimFacts = ClaimFacts {
        ruling: Some(Rejected),
        ..PENDING
    };
    const VERIFIED: ClaimFacts = ClaimFacts {
        supporting_sources: 2,
        ..PENDING
    };
    const DANGEROUS: ClaimFacts = ClaimFacts {
        has_dangerous_pattern: true,
        ..PENDING
    };

    /// Claims that were found on a page of the domain that supports them.
    fn domain_of(claims: &[ClaimFacts]) -> ClaimsOfDomain {
        let mut domain = ClaimsOfDomain::default();
        for (index, facts) in claims.iter().enumerate() {
            domain.add(&format!("claim:{index}"), *facts);
            domain.add_found(&format!("claim:{index}"), *facts);
        }
        domain
    }

    /// The rule of an unverified domain that nobody decided about: decision, cause and claim.
    fn rule(claims: &ClaimsOfDomain) -> Option<String> {
        let value = claims.rule(
            "blog.example",
            TrustLevel::Unverified,
            false,
            BlockingPolicy::default(),
        );
        value.map(|DomainRuleValue { rule, cause }| {
            let cause = cause.unwrap();
            let words = [rule.trust().name(), cause.found.name(), &cause.claim_id];
            words.join(" ").trim_end().to_owned()
        })
    }

    #[test]
    fn rejection_comes_first_and_then_independent_support() {
        for (ruling, has_dangerous_pattern, supporting_sources, expected) in [
            (None, false, 0, ClaimStatus::Pending),
            (None, false, 1, ClaimStatus::Pending),
            (None, false, 2, ClaimStatus::Verified),
            (None, true, 2, ClaimStatus::Rejected),
            (Some(Rejected), false, 9, ClaimStatus::Rejected),
            (Some(Rejected), true, 9, ClaimStatus::Rejected),
            (Some(Restored), true, 1, ClaimStatus::Pending),
            (Some(Restored), true, 2, ClaimStatus::Verified),
        ] {
            let facts = ClaimFacts {
                ruling,
                has_dangerous_pattern,
                supporting_sources,
            };
            assert_eq!(facts.status(), expected, "{facts:?}");
        }
    }

    #[test]
    fn a_domain_is_blocked_for_more_than_the_share_of_at_least_five_claims() {
        for (rejected, claims, blocked) in [
            (3, 10, false),
            (4, 10, true),
            (2, 4, false),
            (4, 4, false),
            (2, 5, true),
            (1, 5, false),
            (300, 1_000, false),
            (301, 1_000, true),
            (0, 0, false),
            (u64::MAX, u64::MAX, true),
        ] {
            let domain = ClaimsOfDomain {
                claims,
                rejected,
                ..ClaimsOfDomain::default()
            };
            let expected = blocked.then_some("blocked rejected_share");
            assert_eq!(rule(&domain).as_deref(), expected, "{rejected} of {claims}");
        }
        assert!(BlockingPolicy::new(0, 300).is_err() && BlockingPolicy::new(5, 1_001).is_err());
        assert!(!BlockingPolicy::new(1, 1_000).unwrap().blocks(9, 9));
    }

    #[test]
    fn a_domain_is_blocked_for_a_dangerous_pattern_until_the_claim_is_restored() {
        let mut claims = [VERIFIED, DANGEROUS, DANGEROUS];
        assert_eq!(
            rule(&domain_of(&claims)).as_deref(),
            Some("blocked dangerous_pattern claim:1")
        );
        claims[1].ruling = Some(Rejected);
        assert_eq!(
            rule(&domain_of(&claims)).as_deref(),
            Some("blocked dangerous_pattern claim:1")
        );
        claims[1].ruling = Some(Restored);
        assert_eq!(
            rule(&domain_of(&claims)).as_deref(),
            Some("blocked dangerous_pattern claim:2")
        );
        claims[2].ruling = Some(Restored);
        assert_eq!(
            rule(&domain_of(&claims)).as_deref(),
            Some("low independent_support claim:0")
        );
    }

    #[test]
    fn a_dangerous_pattern_blocks_the_domain_that_the_claim_was_found_on_and_not_those_that_quote_it() {
        let mut newspaper = ClaimsOfDomain::default();
        newspaper.add("claim:1", DANGEROUS);
        assert_eq!(rule(&newspaper), None);
        let mut blog = ClaimsOfDomain::default();
        blog.add_found("claim:1", DANGEROUS);
        assert_eq!(rule(&blog).as_deref(), Some("blocked dangerous_pattern claim:1"));
    }

    #[test]
    fn an_unverified_domain_rises_while_a_claim_that_it_supports_is_verified() {
        assert_eq!(
            rule(&domain_of(&[PENDING, VERIFIED])).as_deref(),
            Some("low independent_support claim:1")
        );
        assert_eq!(rule(&domain_of(&[PENDING, REJECTED])), None);
        let risen =
            |level| domain_of(&[VERIFIED]).rule("blog.example", level, false, BlockingPolicy::default());
        for level in TrustLevel::ALL {
            assert_eq!(risen(level).is_some(), level == TrustLevel::Unverified, "{level}");
        }
    }

    #[test]
    fn what_people_or_the_file_set_and_suffixes_of_others_are_never_touched() {
        let claims = domain_of(&[DANGEROUS, REJECTED, REJECTED, REJECTED, REJECTED, VERIFIED]);
        let rule = |domain, is_set| {
            claims
                .rule(domain, TrustLevel::Unverified, is_set, BlockingPolicy::default())
                .is_some()
        };
        assert!(rule("blog.example", false) && rule("jane.github.io", false));
        assert!(!rule("blog.example", true));
        for suffix in ["github.io", "co.jp", "intranet"] {
            assert!(!rule(suffix, false), "{suffix}");
        }
    }

    #[test]
    fn an_academic_source_that_refutes_an_unverified_one_blocks_nobody() {
        // The claim of the blog is refuted; no count here says so, and its status stays.
        assert_eq!(PENDING.status(), ClaimStatus::Pending);
        assert_eq!(rule(&domain_of(&[PENDING; 9])), None);
    }

    proptest! {
        #[test]
        fn the_order_of_claims_does_not_matter(
            claims in proptest::collection::vec((0..1_000u32, 0..4usize), 0..20).prop_map(|claims| {
                claims.into_iter().map(|(id, facts)| (format!("c{id}"), [PENDING, REJECTED, VERIFIED, DANGEROUS][facts]))
                    .collect::<Vec<_>>()
            }),
        ) {
            let added = |claims: &mut dyn Iterator<Item = &(String, ClaimFacts)>| {
                let mut domain = ClaimsOfDomain::default();
                claims.for_each(|(id, facts)| {
                    domain.add(id, *facts);
                    domain.add_found(id, *facts);
                });
                domain
            };
            prop_assert_eq!(added(&mut claims.iter()), added(&mut claims.iter().rev()));
        }
    }
}
