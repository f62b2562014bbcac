//! What nodes consume: a key and the value learned for it.

use std::{
    fmt,
    ops::{Range, RangeInclusive},
    sync::Arc,
};

use uuid::{Builder, Uuid};
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    ids::{AcceptOrder, CandidateId, ContestId, FeedbackId, Namespace, UserId, length_prefixed},
    kinds::{Form, HUMAN, Kind, Learned, Qualifier, Rule, Users},
    normalize::{MAX_KEY_CHARS, NormalizedKey},
    violation::{Invalid, Violations, bounded_line},
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
        let qualifier = rules.numbered_with.filter(|other| *other != self.qualifier)?;
        Some(Self {
            qualifier: qualifier.to_owned(),
            ..self.clone()
        })
    }

    /// The contest's id, derived from all parts of the key. It ends with the [`key_hash`] of the key alone; the other 98 bits are
    /// those of a SHA-1.
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
        ContestId(ending_with(key_hash(self.key.as_str()), *derived.as_bytes()))
    }
}

/// What the ids of all contests of a key and of their candidates end with, so that they are found by key alone: the first 24
/// bits of the key's XXH3-64. Two keys may share it.
pub fn key_hash(key: &str) -> i64 {
    (xxh3_64(key.as_bytes()) >> 40).cast_signed()
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

    /// Between which ids that of its contest lies, both included: a candidate's id repeats how its contest's begins.
    pub fn contests(self) -> RangeInclusive<ContestId> {
        let id = self.0.as_bytes();
        let ends = [0, u8::MAX].map(|rest| {
            let mut end = [rest; 16];
            end[..BEGINNING.len()].copy_from_slice(&id[BEGINNING]);
            ContestId(Uuid::from_bytes(end))
        });
        ends[0]..=ends[1]
    }

    /// Whether it may be a candidate of this contest: it ends with how that one's id begins and ends.
    pub fn may_be_of(self, contest: ContestId) -> bool {
        self.key_hash() == contest.key_hash() && self.contests().contains(&contest)
    }
}

/// The value of a resource or candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceValue {
    /// The key as people write it, before normalisation: at most 512 characters; empty where that is the key itself, see
    /// [`ResourceValue::written`].
    pub display: String,
    /// The version of the normalisation that produced the key; 0 where the key is no phrase.
    pub normalization_version: u32,
    /// What the key maps to.
    pub learned: Learned,
}

impl ResourceValue {
    /// A value of a key that people write as it is.
    pub fn of(learned: Learned) -> Self {
        Self::new(String::new(), learned)
    }

    /// A value with the current normalisation version, if the kind's keys are phrases.
    pub fn new(display: impl Into<String>, learned: Learned) -> Self {
        Self {
            display: display.into(),
            normalization_version: learned.kind().rules().key.normalization_version(),
            learned,
        }
    }

    /// The same without a display that is the key itself: it is stored and sent with each resource.
    #[must_use]
    pub fn at(mut self, key: &str) -> Self {
        if self.display == key {
            self.display = String::new();
        }
        self
    }

    /// How people write the key that it is the value of.
    pub fn written<'a>(&'a self, key: &'a str) -> &'a str {
        if self.display.is_empty() {
            key
        } else {
            &self.display
        }
    }

    /// Parses a display text: 1 to 512 characters, on one line and without what people do not see. Neither changes the key
    /// that it has under normalisation.
    pub fn parse_display(raw: &str) -> Result<String, Invalid> {
        bounded_line(raw, 1, MAX_KEY_CHARS)
    }

    /// The candidate that proposes this value in a contest decided by votes. How the key or qualifier is written does not
    /// distinguish candidates.
    pub fn candidate_id(&self, contest: ContestId) -> CandidateId {
        candidate_of(contest, &self.learned.canonical())
    }

    /// Whether both propose the same, however the key is written.
    pub fn is_same(&self, other: &Self) -> bool {
        self.learned == other.learned || self.learned.canonical() == other.learned.canonical()
    }
}

/// The bytes of an id that are the key's hash.
const HASH: Range<usize> = 13..16;
/// The bytes of a candidate's id that are the first ones of its contest's.
const BEGINNING: Range<usize> = 11..13;

/// The candidate of a contest that is made of these bytes. 82 bits are derived: two candidates with one id are 2^41 attempts
/// away, so what depends on an id compares what it stands for.
fn candidate_of(contest: ContestId, bytes: &[u8]) -> CandidateId {
    let mut id = *Uuid::new_v5(&contest.0, bytes).as_bytes();
    id[BEGINNING].copy_from_slice(&contest.0.as_bytes()[..BEGINNING.len()]);
    CandidateId(ending_with(contest.key_hash(), id))
}

/// A UUID of version 8 (RFC 9562) that ends with a key's hash. What is derived comes first: people name ids by how they begin.
fn ending_with(key_hash: i64, mut id: [u8; 16]) -> Uuid {
    id[HASH].copy_from_slice(&key_hash.to_be_bytes()[5..]);
    Builder::from_custom_bytes(id).into_uuid()
}

fn key_hash_of(id: Uuid) -> i64 {
    (id.as_u64_pair().1 & 0xFF_FFFF).cast_signed()
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
        assert_eq!(id.to_string(), "80da4c11-386b-8fd4-b272-f7b5e83294c0");
    }

    #[test]
    fn the_ids_of_a_key_end_with_its_hash() {
        for text in ["a", "set up a csa", "手札", "example.org"] {
            let ids = [
                key(Kind::InvocationPhrase, text, "", "").unwrap().contest_id(),
                key(Kind::InvocationPhrase, text, "", "b").unwrap().contest_id(),
                key(Kind::Prohibition, text, "c", "").unwrap().contest_id(),
            ];
            for contest in ids {
                let candidates = [
                    ruling_of(contest, FeedbackId::none()),
                    proposal_of(contest, 1, b"text"),
                ];
                for id in [contest.0].into_iter().chain(candidates.map(|id| id.0)) {
                    assert_eq!(id.as_bytes()[13..], xxh3_64(text.as_bytes()).to_be_bytes()[..3]);
                    assert_eq!(id.get_version_num(), 8);
                }
                assert_eq!(contest.key_hash(), key_hash(text));
                for candidate in candidates {
                    assert_eq!(candidate.key_hash(), key_hash(text));
                    assert!(
                        candidate.contests().contains(&contest),
                        "{candidate} of {contest}"
                    );
                    let others = ids.iter().filter(|other| candidate.may_be_of(**other));
                    assert_eq!(others.collect::<Vec<_>>(), [&contest]);
                }
            }
        }
    }

    #[test]
    fn an_id_of_a_candidate_names_few_of_the_contests_of_a_key() {
        let of_users: Vec<ContestId> = (0..10_000)
            .map(|user| key(Kind::Profile, "learning_goals", "rust", &format!("user {user}")))
            .map(|key| key.unwrap().contest_id())
            .collect();
        for contest in of_users.iter().step_by(1_000) {
            let candidate = ruling_of(*contest, FeedbackId::none());
            let named = of_users
                .iter()
                .filter(|other| candidate.may_be_of(**other))
                .count();
            assert!((1..=3).contains(&named), "{named}");
        }
    }

    #[test]
    fn candidate_ids_never_change() {
        for (kind, phrase, choice, id) in [
            (
                Kind::InvocationPhrase,
                "set up a csa",
                "create_csa",
                "0e939fab-e5c7-8140-b875-9d80da3294c0",
            ),
            (
                Kind::EntityAlias,
                "j. smith",
                "person:jane",
                "e2a046aa-42d1-836a-b11d-3b6ad6b24c2c",
            ),
            (
                Kind::Prohibition,
                "wind down",
                "delete_fund",
                "cfe478ad-d95a-80e7-9669-e6fdbd515180",
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
