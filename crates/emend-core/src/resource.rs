//! What nodes consume: a key and the value learned for it.

use std::{fmt, sync::Arc};

use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    ids::{AcceptOrder, CandidateId, ContestId, FeedbackId, Namespace, UserId},
    kinds::{Form, HUMAN, Kind, Learned, Qualifier, Rule, Users},
    normalize::{MAX_KEY_CHARS, NormalizedKey},
    violation::{Invalid, Violations, bounded_prose},
};

/// The UUID namespace that contest ids are derived in, so that all replicas derive the same ids.
const CONTESTS: Uuid = Uuid::from_u128(0x3f0f_4ab1_5c1e_4c43_9a55_7d2b_9b1c_0e01);

/// A look-up key in the form of its kind: 1 to 512 characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key in this form.
    pub fn parse(form: Form, raw: &str) -> Result<Self, Invalid> {
        form.parse(raw).map(|key| Self(key.into()))
    }

    /// What a key of any of these kinds may be for a text that does not say its kind: one for each form, where valid.
    pub fn of_any(kinds: &[Kind], raw: &str) -> Result<Vec<Self>, Invalid> {
        let mut forms: Vec<Form> = Vec::new();
        for kind in kinds {
            let form = kind.rules().key;
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        let mut keys = Vec::with_capacity(forms.len());
        let mut invalid = None;
        for form in forms {
            match Self::parse(form, raw) {
                Ok(key) if keys.contains(&key) => {}
                Ok(key) => keys.push(key),
                Err(why) => invalid = invalid.or(Some(why)),
            }
        }
        match invalid {
            Some(why) if keys.is_empty() => Err(why),
            _ => Ok(keys),
        }
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<NormalizedKey> for Key {
    fn from(phrase: NormalizedKey) -> Self {
        Self(phrase.into())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", &self.0)
    }
}

/// Identifies one resource, and its contest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// The search application.
    pub namespace: Namespace,
    /// What the resource is about.
    pub kind: Kind,
    /// The look-up key, in the form of the kind.
    pub key: Key,
    /// Distinguishes resources with the same key if the kind allows several; empty otherwise.
    pub qualifier: String,
    /// The user whose own preference it is; `None` for everybody's (scope GLOBAL).
    pub user: Option<UserId>,
}

impl ResourceKey {
    /// Parses the parts of a key. `key` may be in any form; the qualifier is required if the kind has one and must be
    /// empty otherwise.
    pub fn parse(
        namespace: &str,
        kind: Option<Kind>,
        key: &str,
        qualifier: &str,
        user_id: &str,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let namespace = violations.check("namespace", Namespace::parse(namespace));
        if kind.is_none() {
            violations.add("kind", "is required and must be a kind that this version knows");
        }
        let form = kind.map_or(Form::Phrase, |kind| kind.rules().key);
        let key = violations.check("key", Key::parse(form, key));
        let qualifier = match kind.and_then(|kind| kind.rules().qualifier) {
            Some(Qualifier {
                default: Some(default),
                ..
            }) if qualifier.trim().is_empty() => Some(default.to_owned()),
            Some(Qualifier { form, meaning, .. }) => violations.check(
                "qualifier",
                form.parse(qualifier)
                    .map_err(|Invalid(why)| Invalid(format!("{why} ({meaning})"))),
            ),
            None if qualifier.is_empty() => Some(String::new()),
            None => {
                violations.add("qualifier", "must be empty: this kind has none");
                None
            }
        };
        let user = if user_id.is_empty() {
            Some(None)
        } else {
            violations.check("user_id", UserId::parse(user_id)).map(Some)
        };
        let parsed = (|| {
            Some(Self {
                namespace: namespace?,
                kind: kind?,
                key: key?,
                qualifier: qualifier?,
                user: user?,
            })
        })();
        violations.finish(parsed)
    }

    /// The user's id; empty for everybody's.
    pub fn user_id(&self) -> &str {
        self.user.as_ref().map_or("", UserId::as_str)
    }

    /// Checks that new decisions may name this key, which the form alone does not say. What was stored before is not
    /// checked again: what is allowed may change with the version of a list.
    pub fn check_new(&self) -> Result<(), (&'static str, Invalid)> {
        let kind = self.kind;
        match (self.user.is_some(), kind.rules().rule.users()) {
            (true, Users::No) => Err((
                "user_id",
                Invalid::new(format!("must be empty: {kind} is decided for everybody")),
            )),
            (false, Users::Only) => Err((
                "user_id",
                Invalid::new(format!("is required: each {kind} is a user's own")),
            )),
            _ => Ok(()),
        }?;
        (self.kind.rules().allows)(self.key.as_str(), &self.qualifier).map_err(|invalid| ("key", invalid))
    }

    /// Checks that people may write to this key; the violation is of the qualifier.
    pub fn check_by_hand(&self) -> Result<(), Invalid> {
        if self.kind == Kind::DomainRule && self.qualifier != HUMAN {
            return Err(Invalid::new(format!(
                "must be {HUMAN}: only the system writes the layer {}",
                self.qualifier
            )));
        }
        Ok(())
    }

    /// The key of the contest that counts the versions of this one, if it is another.
    pub fn numbered_with(&self) -> Option<Self> {
        let Rule::Review(rules) = self.kind.rules().rule else {
            return None;
        };
        let qualifier = rules.numbered_with.filter(|of| *of != self.qualifier)?;
        Some(Self {
            qualifier: qualifier.to_owned(),
            ..self.clone()
        })
    }

    /// The contest's id, derived from all parts of the key. It ends with the [`key_hash`] of the key alone.
    pub fn contest_id(&self) -> ContestId {
        let kind = self.kind.number().to_le_bytes();
        let parts: [&[u8]; 5] = [
            self.namespace.as_str().as_bytes(),
            &kind,
            self.key.as_str().as_bytes(),
            self.qualifier.as_bytes(),
            self.user_id().as_bytes(),
        ];
        let derived = Uuid::new_v5(&CONTESTS, &length_prefixed(&parts));
        ContestId(ending_with(key_hash(self.key.as_str()), derived))
    }
}

/// What the ids of all contests of a key and of their candidates end with, so that they are found by key alone: the first 48
/// bits of the key's XXH3-64. Two keys may share it.
pub fn key_hash(key: &str) -> i64 {
    (xxh3_64(key.as_bytes()) >> 16).cast_signed()
}

impl ContestId {
    /// The [`key_hash`] of its key.
    pub fn key_hash(self) -> i64 {
        key_hash_of(self.0)
    }
}

impl CandidateId {
    /// The [`key_hash`] of its contest's key.
    pub fn key_hash(self) -> i64 {
        key_hash_of(self.0)
    }
}

/// Joins fields unambiguously: each is preceded by its length (u32 little-endian).
pub(crate) fn length_prefixed(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 4).sum());
    for part in parts {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// The value of a resource or candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceValue {
    /// The key as people write it, before normalisation: 1 to 512 characters.
    pub display: String,
    /// The version of the normalisation that produced the key; 0 where the key is no phrase.
    pub normalization_version: u32,
    /// What the key maps to.
    pub learned: Learned,
}

impl ResourceValue {
    /// A value with the current normalisation version, if the kind's keys are phrases.
    pub fn new(display: impl Into<String>, learned: Learned) -> Self {
        Self {
            display: display.into(),
            normalization_version: learned.kind().rules().key.normalization_version(),
            learned,
        }
    }

    /// Parses a display text: 1 to 512 characters.
    pub fn parse_display(raw: &str) -> Result<String, Invalid> {
        bounded_prose(raw, 1, MAX_KEY_CHARS)
    }

    /// The candidate that proposes this value in a contest decided by votes. How the key or qualifier is written does not
    /// distinguish candidates.
    pub fn candidate_id(&self, contest: ContestId) -> CandidateId {
        candidate_of(contest, &self.learned.canonical())
    }
}

/// The candidate of a contest that is made of these bytes.
fn candidate_of(contest: ContestId, bytes: &[u8]) -> CandidateId {
    let derived = Uuid::new_v5(&contest.0, bytes);
    CandidateId(ending_with(contest.key_hash(), derived))
}

/// A UUID of version 8 (RFC 9562) whose last 48 bits are a key's hash. All others are those of a UUID of version 5: people name ids by
/// how they begin.
fn ending_with(key_hash: i64, derived: Uuid) -> Uuid {
    let mut bytes = *derived.as_bytes();
    bytes[10..].copy_from_slice(&key_hash.to_be_bytes()[2..]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

fn key_hash_of(id: Uuid) -> i64 {
    (id.as_u64_pair().1 & 0xFFFF_FFFF_FFFF).cast_signed()
}

/// The candidate that a ruling is: each correction's is one of its own.
pub fn ruling_of(contest: ContestId, feedback: FeedbackId) -> CandidateId {
    let parts = length_prefixed(&[b"ruling", feedback.0.as_bytes()]);
    candidate_of(contest, &parts)
}

/// The candidate that a proposal under review is: by the version it was made for, and the proposal's own bytes.
pub fn proposal_of(contest: ContestId, base: u32, proposal: &[u8]) -> CandidateId {
    let parts = length_prefixed(&[b"proposal", &base.to_le_bytes(), proposal]);
    candidate_of(contest, &parts)
}

/// The candidate that an operator's write to a contest decided by rulings is, by its accept order.
pub fn ruling_at(contest: ContestId, order: AcceptOrder) -> CandidateId {
    let parts = length_prefixed(&[b"written", &order.0.to_le_bytes()]);
    candidate_of(contest, &parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: Kind, key: &str, qualifier: &str, user: &str) -> Result<ResourceKey, Violations> {
        ResourceKey::parse("fund-admin", Some(kind), key, qualifier, user)
    }

    #[test]
    fn every_part_of_the_key_changes_the_contest() {
        let ids = [
            key(Kind::InvocationPhrase, "a", "", "").unwrap().contest_id(),
            key(Kind::EntityAlias, "a", "", "").unwrap().contest_id(),
            key(Kind::InvocationPhrase, "ab", "", "").unwrap().contest_id(),
            key(Kind::InvocationPhrase, "a", "", "b").unwrap().contest_id(),
            key(Kind::Prohibition, "a", "b", "").unwrap().contest_id(),
            key(Kind::Prohibition, "a", "b", "c").unwrap().contest_id(),
            key(Kind::Prohibition, "a", "bc", "").unwrap().contest_id(),
        ];
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(
            ids[0],
            key(Kind::InvocationPhrase, "  A ", "", "").unwrap().contest_id()
        );
    }

    #[test]
    fn contest_ids_never_change() {
        let id = key(Kind::InvocationPhrase, "set up a csa", "", "")
            .unwrap()
            .contest_id();
        assert_eq!(id.to_string(), "80da4c11-386b-8fd4-b272-3294c057fbf6");
    }

    #[test]
    fn the_ids_of_a_key_end_with_its_hash() {
        for text in ["a", "set up a csa", "手札", "example.org"] {
            let ids = [
                key(Kind::InvocationPhrase, text, "", "").unwrap().contest_id(),
                key(Kind::InvocationPhrase, text, "", "b").unwrap().contest_id(),
                key(Kind::Prohibition, text, "c", "").unwrap().contest_id(),
            ];
            for id in ids {
                let candidates = [ruling_of(id, FeedbackId::none()), proposal_of(id, 1, b"text")];
                for id in [id.0].into_iter().chain(candidates.map(|id| id.0)) {
                    assert_eq!(id.as_bytes()[10..], xxh3_64(text.as_bytes()).to_be_bytes()[..6]);
                    assert_eq!(id.get_version_num(), 8);
                }
                assert_eq!(id.key_hash(), key_hash(text));
                assert_eq!(candidates.map(CandidateId::key_hash), [key_hash(text); 2]);
            }
        }
    }

    #[test]
    fn candidate_ids_never_change() {
        for (kind, phrase, choice, id) in [
            (
                Kind::InvocationPhrase,
                "set up a csa",
                "create_csa",
                "1607d65a-44d6-8635-acc1-3294c057fbf6",
            ),
            (
                Kind::EntityAlias,
                "j. smith",
                "person:jane",
                "22ef8b26-7e73-8780-8db2-b24c2c988f9e",
            ),
            (
                Kind::Prohibition,
                "wind down",
                "delete_fund",
                "69716c53-6a1e-859a-ae81-51518049ee0b",
            ),
        ] {
            let learned = Learned::of(kind, choice.to_owned()).unwrap();
            let qualifier = learned.qualifier_of_key().unwrap().unwrap();
            let contest = key(kind, phrase, &qualifier, "").unwrap().contest_id();
            let value = ResourceValue::new(phrase, learned);
            assert_eq!(value.candidate_id(contest).to_string(), id, "{kind}");
        }
    }

    #[test]
    fn people_write_no_rules_of_layers_of_the_system() {
        for (layer, by_hand) in [("human", true), ("file", false), ("verified", false)] {
            let key = key(Kind::DomainRule, "example.org", layer, "").unwrap();
            assert_eq!(key.check_by_hand().is_ok(), by_hand, "{layer}");
        }
        assert!(key(Kind::DomainRule, "example.org", "default", "").is_err());
    }

    #[test]
    fn every_invalid_part_is_named_at_once() {
        let wrong = ResourceKey::parse("Not OK", None, " ", "x", &"u".repeat(129))
            .unwrap_err()
            .into_vec();
        let fields: Vec<_> = wrong.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["namespace", "kind", "key", "qualifier", "user_id"]);
        assert!(key(Kind::Prohibition, "a", "", "").is_err());
    }
}
