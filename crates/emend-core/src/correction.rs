//! What people say is wrong, and what they propose to learn.

use std::slice;

use crate::{
    evidence::{DomainRule, EdgeRelation, TrustLevel},
    ids::{CandidateId, FeedbackId, Namespace, UserId},
    kinds::{
        self, ClaimState, EdgeLabel, HUMAN, Kind, Learned, ReasonCode, Relation, Rule, SearchTuning, Synonym,
    },
    normalize::parse_choice,
    personal_data,
    ratings::{FewShotSet, OwnTarget, RatedTexts, Rating, RatingFields, RefusedRating},
    resource::{Key, ResourceKey, ResourceValue, proposal_of, ruling_of},
    search::SearchRating,
    violation::{Invalid, Violations},
};

/// Who a correction is learned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// Everybody in the namespace.
    #[default]
    Global,
    /// The reporter alone.
    User,
}

/// The form of a correction. Forms that teach the same kind vote in the same contests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// The wrong verb was chosen.
    Verb,
    /// A phrase means this verb.
    PhraseMapping,
    /// The wrong entity was chosen.
    Entity,
    /// A choice must never be offered.
    Prohibition,
    /// Other terms stand for this one.
    Term,
    /// The sources of a domain must not be shown.
    DomainBlock,
    /// The sources of a domain are shown, whatever blocked them.
    DomainUnblock,
    /// What people decided about a domain no longer applies.
    DomainClearOverride,
    /// The sources of a domain are trusted this far.
    DomainSetTrust,
    /// What an AI made is good, or is not.
    Rating,
    /// A claim is hidden from results.
    ClaimReject,
    /// A claim is shown, whatever speaks against it.
    ClaimRestore,
    /// An edge has this label.
    EdgeCorrect,
    /// What a search found is good, or is not.
    SearchRating,
    /// Queries of one type are searched so.
    Tuning,
}

impl Form {
    /// All forms, in the order of their numbers on the wire.
    pub const ALL: [Self; 15] = [
        Self::Verb,
        Self::PhraseMapping,
        Self::Entity,
        Self::Prohibition,
        Self::Term,
        Self::DomainBlock,
        Self::DomainUnblock,
        Self::DomainClearOverride,
        Self::DomainSetTrust,
        Self::Rating,
        Self::ClaimReject,
        Self::ClaimRestore,
        Self::EdgeCorrect,
        Self::SearchRating,
        Self::Tuning,
    ];

    /// The kind of resource it teaches; none of a rating of a search answer, from which alone nothing is learned.
    pub const fn kind(self) -> Option<Kind> {
        Some(match self {
            Self::SearchRating => return None,
            Self::Verb | Self::PhraseMapping => Kind::InvocationPhrase,
            Self::Entity => Kind::EntityAlias,
            Self::Prohibition => Kind::Prohibition,
            Self::Term => Kind::Synonym,
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride | Self::DomainSetTrust => {
                Kind::DomainRule
            }
            Self::Rating => Kind::FewShotSet,
            Self::ClaimReject | Self::ClaimRestore => Kind::ClaimState,
            Self::EdgeCorrect => Kind::EdgeLabel,
            Self::Tuning => Kind::SearchTuning,
        })
    }

    /// The name of its field on the wire, also the label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verb => "verb",
            Self::PhraseMapping => "phrase_mapping",
            Self::Entity => "entity",
            Self::Prohibition => "prohibition",
            Self::Term => "term",
            Self::DomainBlock => "domain_block",
            Self::DomainUnblock => "domain_unblock",
            Self::DomainClearOverride => "domain_clear_override",
            Self::DomainSetTrust => "domain_set_trust",
            Self::Rating => "rating",
            Self::ClaimReject => "claim_reject",
            Self::ClaimRestore => "claim_restore",
            Self::EdgeCorrect => "edge_correct",
            Self::SearchRating => "search_rating",
            Self::Tuning => "tuning",
        }
    }

    /// Whether the reporter has to say why.
    pub const fn needs_reason(self) -> bool {
        match self {
            Self::Verb
            | Self::PhraseMapping
            | Self::Entity
            | Self::Prohibition
            | Self::Term
            | Self::Rating
            | Self::EdgeCorrect
            | Self::SearchRating
            | Self::Tuning => false,
            Self::DomainBlock
            | Self::DomainUnblock
            | Self::DomainClearOverride
            | Self::DomainSetTrust
            | Self::ClaimReject
            | Self::ClaimRestore => true,
        }
    }

    /// Whether it may be learned for the reporter alone. What is not decided by votes is decided for everybody.
    pub const fn may_be_for_a_user(self) -> bool {
        match self.kind() {
            Some(kind) => matches!(kind.rules().rule, Rule::Votes { .. }),
            None => false,
        }
    }

    /// Checks that it may be said with that scope.
    pub fn check_scope(self, scope: Scope) -> Result<(), Invalid> {
        if scope == Scope::Global || self.may_be_for_a_user() {
            return Ok(());
        }
        let why = match self.kind() {
            Some(_) => "it is decided for everybody",
            None => "nothing is learned from it alone",
        };
        Err(Invalid::new(format!(
            "must be GLOBAL with {}: {why}",
            self.name()
        )))
    }

    /// The wire contract's name of the field that says what it is about, used in violations.
    const fn subject_field(self) -> &'static str {
        match self {
            Self::Verb | Self::Entity => "original_input",
            Self::PhraseMapping | Self::Prohibition => "phrase",
            Self::Term => "equivalents",
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride | Self::DomainSetTrust => {
                "pattern"
            }
            Self::Rating => "target",
            Self::ClaimReject | Self::ClaimRestore => "claim_id",
            Self::EdgeCorrect => "edge_id",
            Self::SearchRating => "value",
            Self::Tuning => "query_type",
        }
    }
}

/// The most equivalents in one correction of a term.
pub const MAX_EQUIVALENTS: usize = 32;

/// What a correction is about: as people write it, and the key that this is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subject {
    written: String,
    key: Key,
}

impl Subject {
    /// Parses the text at `field`, of whose keys `form` is the form.
    fn parse(violations: &mut Violations, field: &str, form: kinds::Form, raw: &str) -> Option<Self> {
        let written = violations.check(field, ResourceValue::parse_display(raw))?;
        let key = violations.check(field, Key::parse(form, raw))?;
        Some(Self { written, key })
    }

    /// What people write, before normalisation.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// The same in the form of the kind's keys.
    pub const fn key(&self) -> &Key {
        &self.key
    }
}

/// A valid correction: one variant for each [`Form`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are described where the forms are")]
pub enum Correction {
    Verb {
        phrase: Subject,
        system_choice: Option<String>,
        verb: String,
    },
    PhraseMapping {
        phrase: Subject,
        verb: String,
    },
    Entity {
        alias: Subject,
        system_choice: Option<String>,
        entity: String,
    },
    Prohibition {
        phrase: Subject,
        forbidden: String,
    },
    Term {
        term: Subject,
        equivalents: Vec<Subject>,
        relation: Relation,
    },
    DomainBlock {
        pattern: Subject,
        task: Option<String>,
    },
    DomainUnblock {
        pattern: Subject,
        level: Option<TrustLevel>,
        task: Option<String>,
    },
    DomainClearOverride {
        pattern: Subject,
        task: Option<String>,
    },
    DomainSetTrust {
        pattern: Subject,
        level: TrustLevel,
        task: Option<String>,
    },
    Rating {
        target: Subject,
        rating: Box<Rating>,
    },
    ClaimReject {
        claim: Subject,
        reason_code: Option<ReasonCode>,
        task: Option<String>,
    },
    ClaimRestore {
        claim: Subject,
        task: Option<String>,
    },
    EdgeCorrect {
        edge: Subject,
        label: EdgeLabel,
        task: Option<String>,
    },
    SearchRating(SearchRating),
    Tuning {
        query_type: Subject,
        tuning: SearchTuning,
    },
}

/// One thing that a correction asserts: what an input means.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assertion {
    /// What the user says, as written: the key before normalisation.
    pub input: String,
    /// `input` in the form of the kind's keys.
    pub key: Key,
    /// The qualifier of the key, in its form; empty if the kind has none.
    pub qualifier: String,
    /// What it maps to; of a rating, a set without examples: only all ratings together say what there is to show.
    pub learned: Learned,
}

/// What a correction does to one contest: it proposes a value there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The contest.
    pub key: ResourceKey,
    /// The proposed value.
    pub value: ResourceValue,
    /// What the system chose, shown with the candidate.
    pub system_choice: Option<String>,
    /// Personal data was found in the key or value, and the scope is GLOBAL. Keys that are ids of the application are not
    /// searched: their digits only look like somebody's number.
    pub personal_data: bool,
    /// The rating, where the kind is decided by a window of ratings. `value` is then a set without examples.
    pub rating: Option<Box<Rating>>,
    /// The research task in which it was said, if known.
    pub task: Option<String>,
}

impl Proposal {
    /// The candidate that a feedback proposes: of votes the one with this value, of rulings and for review the feedback's own;
    /// ratings propose none.
    pub fn candidate_of(&self, feedback: FeedbackId) -> Option<CandidateId> {
        let contest = self.key.contest_id();
        match self.key.kind.rules().rule {
            Rule::Votes { .. } => Some(self.value.candidate_id(contest)),
            Rule::Ruling(_) => Some(ruling_of(contest, feedback)),
            Rule::Window(_) => None,
            Rule::Review(_) => Some(proposal_of(contest, 0, feedback.0.as_bytes())),
        }
    }
}

impl Correction {
    /// Parses the fields of a correction of a verb: what the system chose, or nothing, and what is right.
    pub fn parse_verb(original_input: &str, system_choice: &str, verb: &str) -> Result<Self, Violations> {
        let parsed = corrected_choice(Kind::InvocationPhrase, original_input, system_choice, verb)?;
        let (phrase, system_choice, verb) = parsed;
        Ok(Self::Verb {
            phrase,
            system_choice,
            verb,
        })
    }

    /// The same of an entity.
    pub fn parse_entity(original_input: &str, system_choice: &str, entity: &str) -> Result<Self, Violations> {
        let parsed = corrected_choice(Kind::EntityAlias, original_input, system_choice, entity)?;
        let (alias, system_choice, entity) = parsed;
        Ok(Self::Entity {
            alias,
            system_choice,
            entity,
        })
    }

    /// Parses the fields of a phrase mapping.
    pub fn parse_phrase_mapping(phrase: &str, verb: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::InvocationPhrase.rules().key;
        let phrase = Subject::parse(&mut violations, "phrase", form, phrase);
        let verb = violations.check("verb", parse_choice(verb));
        let parsed = phrase.zip(verb);
        violations.finish(parsed.map(|(phrase, verb)| Self::PhraseMapping { phrase, verb }))
    }

    /// Parses the fields of a prohibition.
    pub fn parse_prohibition(phrase: &str, forbidden_choice: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::Prohibition.rules().key;
        let phrase = Subject::parse(&mut violations, "phrase", form, phrase);
        let forbidden = violations.check("forbidden_choice", parse_choice(forbidden_choice));
        let parsed = phrase.zip(forbidden);
        violations.finish(parsed.map(|(phrase, forbidden)| Self::Prohibition { phrase, forbidden }))
    }

    /// Parses the fields of a correction of a term: what else stands for it, and how. One assertion for each equivalent.
    pub fn parse_term<'a>(
        term: &str,
        equivalents: impl ExactSizeIterator<Item = &'a str>,
        relation: Relation,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::Synonym.rules().key;
        let term = Subject::parse(&mut violations, "term", form, term);
        let count = equivalents.len();
        if !(1..=MAX_EQUIVALENTS).contains(&count) {
            violations.add(
                "equivalents",
                format!("must have 1 to {MAX_EQUIVALENTS} entries, has {count}"),
            );
        }
        let mut parsed: Vec<Subject> = Vec::with_capacity(count.min(MAX_EQUIVALENTS));
        for (index, equivalent) in equivalents.take(MAX_EQUIVALENTS).enumerate() {
            let field = format!("equivalents[{index}]");
            let Some(equivalent) = Subject::parse(&mut violations, &field, form, equivalent) else {
                continue;
            };
            let Some(term) = &term else { continue };
            if equivalent.key == term.key {
                violations.add(field, "must differ from term: there is nothing to learn");
            } else if parsed.iter().any(|other| other.key == equivalent.key) {
                violations.add(field, "is there twice, perhaps in another spelling");
            } else {
                parsed.push(equivalent);
            }
        }
        violations.finish(term.map(|term| Self::Term {
            term,
            equivalents: parsed,
            relation,
        }))
    }

    /// Parses what is decided about the sources that a pattern of domains covers. A wrong rule is a violation of its level.
    pub fn parse_domain(
        pattern: &str,
        rule: Result<DomainRule, Invalid>,
        task_id: &str,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::DomainRule.rules().key;
        let pattern = Subject::parse(&mut violations, "pattern", form, pattern);
        let rule = violations.check("level", rule);
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = pattern.zip(rule).zip(task);
        violations.finish(parsed.map(|((pattern, rule), task)| match rule {
            DomainRule::Block => Self::DomainBlock { pattern, task },
            DomainRule::Unblock(level) => Self::DomainUnblock { pattern, level, task },
            DomainRule::SetTrust(level) => Self::DomainSetTrust { pattern, level, task },
            DomainRule::Clear => Self::DomainClearOverride { pattern, task },
        }))
    }

    /// Parses the fields of a claim's rejection, with a reason code or an empty one.
    pub fn parse_claim_reject(claim_id: &str, reason_code: &str, task_id: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::ClaimState.rules().key;
        let claim = Subject::parse(&mut violations, "claim_id", form, claim_id);
        let reason_code = violations.check("reason_code", ReasonCode::parse(reason_code));
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = claim.zip(reason_code).zip(task);
        violations.finish(parsed.map(|((claim, reason_code), task)| Self::ClaimReject {
            claim,
            reason_code,
            task,
        }))
    }

    /// Parses the fields of a claim's restoration.
    pub fn parse_claim_restore(claim_id: &str, task_id: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::ClaimState.rules().key;
        let claim = Subject::parse(&mut violations, "claim_id", form, claim_id);
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = claim.zip(task);
        violations.finish(parsed.map(|(claim, task)| Self::ClaimRestore { claim, task }))
    }

    /// Parses the fields of an edge's correction. Violations of `relation` are those of the caller's own parsing, too.
    pub fn parse_edge(
        edge_id: &str,
        relation: Result<EdgeRelation, Invalid>,
        task_id: &str,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::EdgeLabel.rules().key;
        let edge = Subject::parse(&mut violations, "edge_id", form, edge_id);
        let label = violations.check("correct_relation", relation.and_then(EdgeLabel::new));
        let task = violations.check("task_id", parse_task(task_id));
        let parsed = edge.zip(label).zip(task);
        violations.finish(parsed.map(|((edge, label), task)| Self::EdgeCorrect { edge, label, task }))
    }

    /// Parses the fields of a tuning. Violations of `tuning` are those of the caller's own parsing, within its message; `None`
    /// clears what is set, which no correction does.
    pub fn parse_tuning(
        query_type: &str,
        tuning: Result<Option<SearchTuning>, Violations>,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let tuning = violations.part("tuning", tuning);
        let form = Kind::SearchTuning.rules().key;
        let query_type = Subject::parse(&mut violations, "query_type", form, query_type);
        if tuning == Some(None) {
            violations.add("tuning", "must be set: only an operator clears it");
        }
        let parsed = query_type.zip(tuning.flatten());
        violations.finish(parsed.map(|(query_type, tuning)| Self::Tuning { query_type, tuning }))
    }

    /// Parses the fields of a rating as it was stored or travels.
    pub fn parse_rating(fields: RatingFields<'_>) -> Result<Self, Violations> {
        Rating::parse(fields).and_then(Self::rated)
    }

    /// Parses the fields of a rating as somebody gives it, where the application has these targets of its own.
    pub fn parse_new_rating(fields: RatingFields<'_>, own: &[OwnTarget]) -> Result<Self, RefusedRating> {
        Ok(Self::rated(Rating::parse_new(fields, own)?)?)
    }

    fn rated(rating: Rating) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let form = Kind::FewShotSet.rules().key;
        let target = Subject::parse(&mut violations, "target", form, &rating.target);
        let rating = Box::new(rating);
        violations.finish(target.map(|target| Self::Rating { target, rating }))
    }

    /// The rating of what a search returned that it is, if it is one.
    pub const fn search_rating(&self) -> Option<SearchRating> {
        match self {
            Self::SearchRating(rating) => Some(*rating),
            _ => None,
        }
    }

    /// The rating that it is, if it is one.
    pub fn rating(&self) -> Option<&Rating> {
        match self {
            Self::Rating { rating, .. } => Some(rating),
            _ => None,
        }
    }

    /// The same with personal data masked in what can be erased. Keys and values are never masked.
    #[must_use]
    pub fn masked(self) -> Self {
        match self {
            Self::Rating { target, rating } => Self::Rating {
                target,
                rating: Box::new(rating.masked()),
            },
            other => other,
        }
    }

    /// The same without what can be erased.
    #[must_use]
    pub fn without_personal_parts(self) -> Self {
        self.with_texts(RatedTexts::default())
    }

    /// The same with these texts, if it is a rating.
    #[must_use]
    pub fn with_texts(mut self, texts: RatedTexts) -> Self {
        if let Self::Rating { rating, .. } = &mut self {
            rating.texts = texts;
        }
        self
    }

    /// Checks what makes a new correction invalid, though one that was stored before is not: what its keys may be is said
    /// by lists that change. Violations name the field within the form's message.
    pub fn check_new(&self) -> Result<(), Violations> {
        let mut violations = Violations::new();
        let form = self.form();
        let (subjects, qualifier) = self.subjects();
        for (kind, subject) in form
            .kind()
            .iter()
            .flat_map(|kind| subjects.iter().map(move |subject| (kind, subject)))
        {
            let allowed = (kind.rules().allows)(subject.key.as_str(), qualifier);
            violations.check(form.subject_field(), allowed);
        }
        violations.finish(Some(()))
    }

    /// The form it has.
    pub const fn form(&self) -> Form {
        match self {
            Self::Verb { .. } => Form::Verb,
            Self::PhraseMapping { .. } => Form::PhraseMapping,
            Self::Entity { .. } => Form::Entity,
            Self::Prohibition { .. } => Form::Prohibition,
            Self::Term { .. } => Form::Term,
            Self::DomainBlock { .. } => Form::DomainBlock,
            Self::DomainUnblock { .. } => Form::DomainUnblock,
            Self::DomainClearOverride { .. } => Form::DomainClearOverride,
            Self::DomainSetTrust { .. } => Form::DomainSetTrust,
            Self::Rating { .. } => Form::Rating,
            Self::ClaimReject { .. } => Form::ClaimReject,
            Self::ClaimRestore { .. } => Form::ClaimRestore,
            Self::EdgeCorrect { .. } => Form::EdgeCorrect,
            Self::SearchRating(_) => Form::SearchRating,
            Self::Tuning { .. } => Form::Tuning,
        }
    }

    /// What it asserts: at least one thing, all of one kind, each about a key of its own; nothing if it is a rating of a search
    /// answer.
    pub fn assertions(&self) -> Vec<Assertion> {
        let (subjects, qualifier) = self.subjects();
        let learned = self.learned();
        let learned = learned.map(|learned| std::iter::repeat_n(learned, subjects.len()));
        let assertions = subjects.iter().zip(learned.into_iter().flatten());
        assertions
            .map(|(subject, learned)| Assertion {
                input: subject.written.clone(),
                key: subject.key.clone(),
                qualifier: qualifier.to_owned(),
                learned,
            })
            .collect()
    }

    /// What it is about, each a key of its own, and the qualifier that these keys share.
    fn subjects(&self) -> (&[Subject], &str) {
        match self {
            Self::Verb { phrase: subject, .. }
            | Self::PhraseMapping { phrase: subject, .. }
            | Self::Entity { alias: subject, .. }
            | Self::Rating { target: subject, .. }
            | Self::ClaimReject { claim: subject, .. }
            | Self::ClaimRestore { claim: subject, .. }
            | Self::EdgeCorrect { edge: subject, .. }
            | Self::Tuning {
                query_type: subject, ..
            } => (slice::from_ref(subject), ""),
            Self::DomainBlock { pattern, .. }
            | Self::DomainUnblock { pattern, .. }
            | Self::DomainClearOverride { pattern, .. }
            | Self::DomainSetTrust { pattern, .. } => (slice::from_ref(pattern), HUMAN),
            Self::Prohibition { phrase, forbidden } => (slice::from_ref(phrase), forbidden),
            Self::Term {
                term, equivalents, ..
            } => (equivalents, term.key.as_str()),
            Self::SearchRating(_) => (&[], ""),
        }
    }

    /// What each subject maps to; nothing if it is a rating of a search answer.
    fn learned(&self) -> Option<Learned> {
        Some(match self {
            Self::Verb { verb, .. } | Self::PhraseMapping { verb, .. } => Learned::Verb(verb.clone()),
            Self::Entity { entity, .. } => Learned::Entity(entity.clone()),
            Self::Prohibition { forbidden, .. } => Learned::Forbidden(forbidden.clone()),
            Self::Term { term, relation, .. } => Learned::Synonym(Synonym {
                relation: *relation,
                representative: term.written.clone(),
            }),
            Self::DomainBlock { .. } => Learned::DomainRule(DomainRule::Block.into()),
            Self::DomainUnblock { level, .. } => Learned::DomainRule(DomainRule::Unblock(*level).into()),
            Self::DomainClearOverride { .. } => Learned::DomainRule(DomainRule::Clear.into()),
            Self::DomainSetTrust { level, .. } => Learned::DomainRule(DomainRule::SetTrust(*level).into()),
            Self::Rating { .. } => Learned::FewShotSet(FewShotSet::default()),
            Self::ClaimReject { reason_code, .. } => {
                Learned::ClaimState(Some(ClaimState::Rejected(reason_code.clone())))
            }
            Self::ClaimRestore { .. } => Learned::ClaimState(Some(ClaimState::Restored)),
            Self::EdgeCorrect { label, .. } => Learned::EdgeLabel(Some(*label)),
            Self::SearchRating(_) => return None,
            Self::Tuning { tuning, .. } => Learned::SearchTuning(Some(tuning.clone())),
        })
    }

    /// What the system chose, if known.
    pub fn system_choice(&self) -> Option<&str> {
        match self {
            Self::Verb { system_choice, .. } | Self::Entity { system_choice, .. } => system_choice.as_deref(),
            _ => None,
        }
    }

    /// The research task in which it was said, if known.
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::DomainBlock { task, .. }
            | Self::DomainUnblock { task, .. }
            | Self::DomainClearOverride { task, .. }
            | Self::DomainSetTrust { task, .. }
            | Self::ClaimReject { task, .. }
            | Self::ClaimRestore { task, .. }
            | Self::EdgeCorrect { task, .. } => task.as_deref(),
            Self::Verb { .. }
            | Self::PhraseMapping { .. }
            | Self::Entity { .. }
            | Self::Prohibition { .. }
            | Self::Term { .. }
            | Self::Rating { .. }
            | Self::SearchRating(_)
            | Self::Tuning { .. } => None,
        }
    }

    /// What it proposes in `namespace`, for everybody or for one user: its effects, each in a contest of its own. A rating of a
    /// search answer has none.
    pub fn effects(&self, namespace: &Namespace, user: Option<&UserId>) -> Vec<Proposal> {
        let rating = match self {
            Self::Rating { rating, .. } => Some(rating),
            _ => None,
        };
        let proposal = |assertion: Assertion| {
            let Assertion {
                input,
                key,
                qualifier,
                learned,
            } = assertion;
            let kind = learned.kind();
            let personal_data = user.is_none()
                && kind.rules().key != kinds::Form::Exact
                && (personal_data::found_in(&input) || personal_data::found_in(learned.maps_to()));
            Proposal {
                value: ResourceValue::new(input, learned).at(key.as_str()),
                key: ResourceKey {
                    namespace: namespace.clone(),
                    kind,
                    key,
                    qualifier,
                    user: user.cloned(),
                },
                system_choice: self.system_choice().map(str::to_owned),
                rating: rating.cloned(),
                task: self.task().map(str::to_owned),
                personal_data,
            }
        };
        self.assertions().into_iter().map(proposal).collect()
    }
}

/// The fields of a correction that says what is right in place of what the system chose, if that is known.
fn corrected_choice(
    kind: Kind,
    input: &str,
    system_choice: &str,
    correct_choice: &str,
) -> Result<(Subject, Option<String>, String), Violations> {
    let mut violations = Violations::new();
    let subject = Subject::parse(&mut violations, "original_input", kind.rules().key, input);
    let choice = violations.check("correct_choice", parse_choice(correct_choice));
    let system_choice = if system_choice.trim().is_empty() {
        Some(None)
    } else {
        violations
            .check("system_choice", parse_choice(system_choice))
            .map(Some)
    };
    if let (Some(Some(system)), Some(right)) = (&system_choice, &choice)
        && system == right
    {
        violations.add(
            "correct_choice",
            "must differ from system_choice: there is nothing to correct",
        );
    }
    let parsed = subject.zip(system_choice).zip(choice);
    violations.finish(parsed.map(|((subject, system_choice), choice)| (subject, system_choice, choice)))
}

/// The research task in which something is said, by the application's own id: at most 256 characters, compared byte for byte.
/// Empty: none.
fn parse_task(raw: &str) -> Result<Option<String>, Invalid> {
    match raw.trim() {
        "" => Ok(None),
        task => kinds::Form::Exact.parse(task).map(Some),
    }
}

/// The user a correction with that scope is learned for. USER scope without a reporter id is invalid.
pub fn scope_user(
    scope: Scope,
    reporter: Option<&crate::ids::ReporterId>,
) -> Result<Option<UserId>, Invalid> {
    match (scope, reporter) {
        (Scope::Global, _) => Ok(None),
        (Scope::User, Some(reporter)) => Ok(Some(reporter.into())),
        (Scope::User, None) => Err(Invalid::new("is required with scope USER")),
    }
}

#[cfg(test)]
mod tests;
