//! What people say is wrong, and what they propose to learn.

use crate::{
    evidence::{EdgeRelation, TrustLevel},
    ids::{CandidateId, FeedbackId, Namespace, UserId},
    kinds::{
        self, ClaimDecision, ClaimState, DomainDecision, DomainRule, EdgeLabel, FewShotSet, HUMAN, Kind,
        Learned, Relation, Rule, SearchTuning, Synonym, parse_choice,
    },
    normalize::NormalizedKey,
    outputs::{OwnTarget, RatedTexts, Rating, RatingFields},
    personal_data,
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

    /// The wire contract's field names for the input and the right choice, used in violations.
    const fn fields(self) -> (&'static str, &'static str) {
        match self {
            Self::Verb | Self::Entity => ("original_input", "correct_choice"),
            Self::PhraseMapping => ("phrase", "verb"),
            Self::Prohibition => ("phrase", "forbidden_choice"),
            Self::Term => ("equivalents", "term"),
            Self::DomainBlock | Self::DomainUnblock | Self::DomainClearOverride | Self::DomainSetTrust => {
                ("pattern", "level")
            }
            Self::Rating => ("target", "value"),
            Self::ClaimReject | Self::ClaimRestore => ("claim_id", "reason_code"),
            Self::EdgeCorrect => ("edge_id", "correct_relation"),
            Self::SearchRating => ("value", "value"),
            Self::Tuning => ("query_type", "tuning"),
        }
    }
}

/// The most equivalents in one correction of a term.
pub const MAX_EQUIVALENTS: usize = 32;

/// A valid correction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Correction {
    form: Form,
    assertions: Vec<Assertion>,
    system_choice: Option<String>,
    rating: Option<Box<Rating>>,
    search_rating: Option<SearchRating>,
    task: Option<String>,
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
    /// Parses the fields of a correction that maps one input to one choice. An empty `system_choice` means none.
    pub fn parse(form: Form, input: &str, system_choice: &str, choice: &str) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let (input_field, choice_field) = form.fields();
        let written = written(&mut violations, input_field, input);
        let parsed_choice = violations.check(choice_field, parse_choice(choice));
        let system_choice = if system_choice.trim().is_empty() {
            Some(None)
        } else {
            violations
                .check("system_choice", parse_choice(system_choice))
                .map(Some)
        };
        if let (Some(Some(system)), Some(right)) = (&system_choice, &parsed_choice)
            && system == right
        {
            violations.add(
                choice_field,
                "must differ from system_choice: there is nothing to correct",
            );
        }
        let learned = form
            .kind()
            .zip(parsed_choice)
            .and_then(|(kind, choice)| violations.check(choice_field, Learned::of(kind, choice)));
        let qualifier = learned
            .as_ref()
            .and_then(Learned::qualifier_of_key)
            .and_then(|qualifier| violations.check(choice_field, qualifier));
        let parsed = (|| {
            let (input, key) = written?;
            Some(Self {
                form,
                assertions: vec![Assertion {
                    input,
                    key,
                    qualifier: qualifier?,
                    learned: learned?,
                }],
                system_choice: system_choice?,
                rating: None,
                search_rating: None,
                task: None,
            })
        })();
        violations.finish(parsed)
    }

    /// Parses the fields of a correction of a term: what else stands for it, and how. One assertion for each equivalent.
    pub fn parse_term<'a>(
        term: &str,
        equivalents: impl ExactSizeIterator<Item = &'a str>,
        relation: Relation,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let term = written(&mut violations, "term", term);
        let count = equivalents.len();
        if !(1..=MAX_EQUIVALENTS).contains(&count) {
            violations.add(
                "equivalents",
                format!("must have 1 to {MAX_EQUIVALENTS} entries, has {count}"),
            );
        }
        let mut assertions: Vec<Assertion> = Vec::new();
        for (index, equivalent) in equivalents.take(MAX_EQUIVALENTS).enumerate() {
            let field = format!("equivalents[{index}]");
            let Some((input, key)) = written(&mut violations, &field, equivalent) else {
                continue;
            };
            let Some((representative, qualifier)) = &term else {
                continue;
            };
            if key.as_str() == qualifier.as_str() {
                violations.add(field, "must differ from term: there is nothing to learn");
            } else if assertions.iter().any(|other| other.key == key) {
                violations.add(field, "is there twice, perhaps in another spelling");
            } else {
                assertions.push(Assertion {
                    input,
                    key,
                    qualifier: qualifier.as_str().to_owned(),
                    learned: Learned::Synonym(Synonym {
                        relation,
                        representative: representative.clone(),
                    }),
                });
            }
        }
        violations.finish(Some(Self {
            form: Form::Term,
            assertions,
            system_choice: None,
            rating: None,
            search_rating: None,
            task: None,
        }))
    }

    /// Parses the fields of a decision about the sources that a pattern of domains covers.
    pub fn parse_domain(form: Form, pattern: &str, level: Option<TrustLevel>) -> Result<Self, Violations> {
        let decision = match form {
            Form::DomainBlock => DomainDecision::Block,
            Form::DomainUnblock => DomainDecision::Unblock,
            Form::DomainSetTrust => DomainDecision::SetTrust,
            _ => DomainDecision::Clear,
        };
        let rule = DomainRule::new(decision, level).map(|rule| Learned::DomainRule(rule.into()));
        Self::decision(form, pattern, HUMAN, rule)
    }

    /// Parses the fields of a claim's rejection, with a reason code or an empty one.
    pub fn parse_claim_reject(claim_id: &str, reason_code: &str) -> Result<Self, Violations> {
        let state = ClaimState::new(ClaimDecision::Rejected, reason_code).map(Learned::ClaimState);
        Self::decision(Form::ClaimReject, claim_id, "", state)
    }

    /// Parses the field of a claim's restoration.
    pub fn parse_claim_restore(claim_id: &str) -> Result<Self, Violations> {
        let state = ClaimState::new(ClaimDecision::Restored, "").map(Learned::ClaimState);
        Self::decision(Form::ClaimRestore, claim_id, "", state)
    }

    /// Parses the fields of an edge's correction. Violations of `relation` are those of the caller's own parsing, too.
    pub fn parse_edge(edge_id: &str, relation: Result<EdgeRelation, Invalid>) -> Result<Self, Violations> {
        let label = relation.and_then(EdgeLabel::new).map(Learned::EdgeLabel);
        Self::decision(Form::EdgeCorrect, edge_id, "", label)
    }

    /// Parses the fields of a tuning. Violations of `tuning` are those of the caller's own parsing, within its message.
    pub fn parse_tuning(
        query_type: &str,
        tuning: Result<SearchTuning, Violations>,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let tuning = violations.part("tuning", tuning);
        let set = match tuning {
            Some(tuning) if tuning.tuning().is_none() => {
                Err(Invalid::new("must be set: only an operator clears it"))
            }
            Some(tuning) => Ok(tuning),
            None => Ok(SearchTuning::cleared()),
        };
        let parsed = Self::decision(Form::Tuning, query_type, "", set.map(Learned::SearchTuning));
        let parsed = violations.part("", parsed);
        violations.finish(parsed)
    }

    /// What is decided about the one thing that `target` names.
    fn decision(
        form: Form,
        target: &str,
        qualifier: &str,
        learned: Result<Learned, Invalid>,
    ) -> Result<Self, Violations> {
        let mut violations = Violations::new();
        let (target_field, value_field) = form.fields();
        let input = violations.check(target_field, ResourceValue::parse_display(target));
        let kind = form.kind().filter(|_| input.is_some());
        let key = kind.and_then(|kind| violations.check(target_field, Key::parse(kind.rules().key, target)));
        let learned = violations.check(value_field, learned);
        let parsed = (|| {
            Some(Self {
                form,
                assertions: vec![Assertion {
                    input: input?,
                    key: key?,
                    qualifier: qualifier.to_owned(),
                    learned: learned?,
                }],
                system_choice: None,
                rating: None,
                search_rating: None,
                task: None,
            })
        })();
        violations.finish(parsed)
    }

    /// Parses the fields of a rating, where the application has these targets of its own.
    pub fn parse_rating(fields: RatingFields<'_>, own: &[OwnTarget]) -> Result<Self, Violations> {
        let rating = Rating::parse(fields, own)?;
        let mut violations = Violations::new();
        let key = violations.check("target", Key::parse(Kind::FewShotSet.rules().key, &rating.target));
        let parsed = key.map(|key| Self {
            form: Form::Rating,
            assertions: vec![Assertion {
                input: rating.target.clone(),
                key,
                qualifier: String::new(),
                learned: Learned::FewShotSet(FewShotSet::default()),
            }],
            system_choice: None,
            rating: Some(Box::new(rating)),
            search_rating: None,
            task: None,
        });
        violations.finish(parsed)
    }

    /// A rating of what a search returned. It asserts nothing.
    pub fn of_search_rating(rating: SearchRating) -> Self {
        Self {
            form: Form::SearchRating,
            assertions: Vec::new(),
            system_choice: None,
            rating: None,
            search_rating: Some(rating),
            task: None,
        }
    }

    /// The rating of what a search returned that it is, if it is one.
    pub fn search_rating(&self) -> Option<SearchRating> {
        self.search_rating
    }

    /// The rating that it is, if it is one.
    pub fn rating(&self) -> Option<&Rating> {
        self.rating.as_deref()
    }

    /// The same with personal data masked in what can be erased. Keys and values are never masked.
    #[must_use]
    pub fn masked(mut self) -> Self {
        self.rating = self.rating.map(|rating| Box::new(rating.masked()));
        self
    }

    /// The same without what can be erased.
    #[must_use]
    pub fn without_personal_parts(self) -> Self {
        self.with_texts(RatedTexts::default())
    }

    /// The same with these texts, if it is a rating.
    #[must_use]
    pub fn with_texts(mut self, texts: RatedTexts) -> Self {
        if let Some(rating) = &mut self.rating {
            rating.texts = texts;
        }
        self
    }

    /// Checks what makes a new correction invalid, though one that was stored before is not: what its keys may be is said
    /// by lists that change. The application has these targets of its own, which can be rated. Violations name the field
    /// within the form's message.
    pub fn check_new(&self, own_targets: &[OwnTarget]) -> Result<(), Violations> {
        let mut violations = Violations::new();
        for (kind, assertion) in self
            .form
            .kind()
            .iter()
            .flat_map(|kind| self.assertions.iter().map(move |of| (kind, of)))
        {
            let allowed = (kind.rules().allows)(assertion.key.as_str(), &assertion.qualifier);
            violations.check(self.form.fields().0, allowed);
        }
        if let Some(rating) = &self.rating {
            violations.part("", rating.check_new(own_targets));
        }
        violations.finish(Some(()))
    }

    /// The form it has.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// What it asserts: at least one thing, all of one kind, each about a key of its own; nothing if it is a rating of a search
    /// answer.
    pub fn assertions(&self) -> &[Assertion] {
        &self.assertions
    }

    /// What the system chose, if known.
    pub fn system_choice(&self) -> Option<&str> {
        self.system_choice.as_deref()
    }

    /// Parses the research task in which something is said, by the application's own id: at most 256 characters, compared
    /// byte for byte. Empty: none.
    pub fn parse_task(raw: &str) -> Result<Option<String>, Invalid> {
        match raw.trim() {
            "" => Ok(None),
            task => kinds::Form::Exact.parse(task).map(Some),
        }
    }

    /// The same, said in this research task.
    #[must_use]
    pub fn in_task(mut self, task: Option<String>) -> Self {
        self.task = task;
        self
    }

    /// The research task in which it was said, if known.
    pub fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// What it proposes in `namespace`, for everybody or for one user: its effects, each in a contest of its own. A rating of a
    /// search answer has none.
    pub fn effects(&self, namespace: &Namespace, user: Option<&UserId>) -> Vec<Proposal> {
        let Some(kind) = self.form.kind() else {
            return Vec::new();
        };
        self.assertions
            .iter()
            .map(|assertion| Proposal {
                key: ResourceKey {
                    namespace: namespace.clone(),
                    kind,
                    key: assertion.key.clone(),
                    qualifier: assertion.qualifier.clone(),
                    user: user.cloned(),
                },
                value: ResourceValue::new(&*assertion.input, assertion.learned.clone())
                    .at(assertion.key.as_str()),
                system_choice: self.system_choice.clone(),
                rating: self.rating.clone(),
                task: self.task.clone(),
                personal_data: user.is_none()
                    && kind.rules().key != kinds::Form::Exact
                    && (personal_data::found_in(&assertion.input)
                        || personal_data::found_in(assertion.learned.maps_to())),
            })
            .collect()
    }
}

/// A text as people write it, and in normal form.
fn written(violations: &mut Violations, field: &str, raw: &str) -> Option<(String, Key)> {
    let display = violations.check(field, ResourceValue::parse_display(raw))?;
    let key = violations.check(field, NormalizedKey::parse(raw))?;
    Some((display, key.into()))
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
