//! Builds a correction.
//!
//! Fields are sent unchecked: the server validates them and reports every violation at once.

use std::collections::HashMap;

use emend_core::{
    ClaimState, DomainRule, EdgeLabel, Relation, RequestId,
    search::{SearchRating, Tuning},
};
use emend_proto::{
    common::v1::{
        self as pb, Correction, EntityCorrection, PhraseMapping, Prohibition, Rating, Reporter, Scope,
        TermCorrection, VerbCorrection, correction::Correction as Form,
    },
    feedback::v1::{SubmitFeedbackRequest, Wait},
};
use emend_wire::kinds::{
    claim_decision, domain_decision, edge_correction, relation_number, search_rating_value, task_of,
    tuning_correction,
};

/// A correction to submit.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Submission(pub(super) SubmitFeedbackRequest);

impl Submission {
    fn new(namespace: impl Into<String>, form: Form) -> Self {
        Self(SubmitFeedbackRequest {
            request_id: String::new(),
            namespace: namespace.into(),
            reporter: None,
            query_id: String::new(),
            reason: String::new(),
            context: HashMap::new(),
            scope: Scope::Unspecified.into(),
            wait: Wait::Unspecified.into(),
            correction: Some(Correction {
                correction: Some(form),
            }),
        })
    }

    /// The wrong verb was chosen for what the user said; this is the right one.
    pub fn verb(namespace: impl Into<String>, input: impl Into<String>, verb: impl Into<String>) -> Self {
        Self::new(
            namespace,
            Form::Verb(VerbCorrection {
                original_input: input.into(),
                system_choice: String::new(),
                correct_choice: verb.into(),
            }),
        )
    }

    /// A phrase means a verb.
    pub fn phrase_mapping(
        namespace: impl Into<String>,
        phrase: impl Into<String>,
        verb: impl Into<String>,
    ) -> Self {
        Self::new(
            namespace,
            Form::PhraseMapping(PhraseMapping {
                phrase: phrase.into(),
                verb: verb.into(),
            }),
        )
    }

    /// The wrong entity was chosen for what the user said; this is the right one's id.
    pub fn entity(
        namespace: impl Into<String>,
        input: impl Into<String>,
        entity_id: impl Into<String>,
    ) -> Self {
        Self::new(
            namespace,
            Form::Entity(EntityCorrection {
                original_input: input.into(),
                system_choice: String::new(),
                correct_choice: entity_id.into(),
            }),
        )
    }

    /// Never offer this choice for this phrase.
    pub fn prohibition(
        namespace: impl Into<String>,
        phrase: impl Into<String>,
        choice: impl Into<String>,
    ) -> Self {
        Self::new(
            namespace,
            Form::Prohibition(Prohibition {
                phrase: phrase.into(),
                forbidden_choice: choice.into(),
            }),
        )
    }

    /// Other terms stand for this one: who searches for one finds the others. One to 32 of them; each has an outcome of its
    /// own in [`Outcome::effects`](emend_proto::common::v1::Outcome).
    pub fn synonyms(
        namespace: impl Into<String>,
        term: impl Into<String>,
        equivalents: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self::synonyms_related(namespace, term, equivalents, Relation::Equivalent)
    }

    /// Other terms stand for this one, in one direction only or as misspellings.
    pub fn synonyms_related(
        namespace: impl Into<String>,
        term: impl Into<String>,
        equivalents: impl IntoIterator<Item = impl Into<String>>,
        relation: Relation,
    ) -> Self {
        Self::new(
            namespace,
            Form::Term(TermCorrection {
                term: term.into(),
                equivalents: equivalents.into_iter().map(Into::into).collect(),
                relation: relation_number(relation).into(),
            }),
        )
    }

    /// What is decided about the sources that a pattern of domains covers: `example.org` with all its subdomains, or
    /// `*.example.org` for these alone. In force at once if the caller is entitled (policy; by default reviewers). The reason is
    /// required.
    pub fn domain(
        namespace: impl Into<String>,
        pattern: impl Into<String>,
        rule: DomainRule,
        reason: impl Into<String>,
    ) -> Self {
        Self::new(namespace, domain_decision(pattern.into(), rule)).reason(reason)
    }

    /// What is decided about a claim: rejected, with a reason code or without, or restored. In force at once if the caller is
    /// entitled (policy; by default reviewers) and the claim is known. The reason is required.
    pub fn claim(
        namespace: impl Into<String>,
        claim_id: impl Into<String>,
        state: &ClaimState,
        reason: impl Into<String>,
    ) -> Self {
        let form = claim_decision(claim_id.into(), state);
        Self::new(namespace, form).reason(reason)
    }

    /// The label that an edge should have. In force as decisions about claims are; the reason is optional.
    pub fn edge(namespace: impl Into<String>, edge_id: impl Into<String>, label: EdgeLabel) -> Self {
        Self::new(namespace, edge_correction(edge_id.into(), label))
    }

    /// How queries of one type are searched. In force at once if the caller may set values (policy; by default operators).
    pub fn tuning(namespace: impl Into<String>, query_type: impl Into<String>, tuning: &Tuning) -> Self {
        Self::new(namespace, tuning_correction(query_type.into(), tuning))
    }

    /// What an AI made is good, or is not: the newest such ratings of a target are its examples.
    pub fn rating(namespace: impl Into<String>, rating: Rating) -> Self {
        Self::new(namespace, Form::Rating(rating))
    }

    /// What a search returned is good, or is not. The query is the one that its backend recorded under that id. Nothing is
    /// learned from it alone.
    pub fn search_rating(
        namespace: impl Into<String>,
        query_id: impl Into<String>,
        rating: SearchRating,
    ) -> Self {
        let value = search_rating_value(rating).into();
        Self::new(namespace, Form::SearchRating(pb::SearchRating { value })).query_id(query_id)
    }

    /// What the system chose. Applies to verb and entity corrections; others are left unchanged.
    pub fn system_choice(mut self, choice: impl Into<String>) -> Self {
        match self
            .0
            .correction
            .as_mut()
            .and_then(|correction| correction.correction.as_mut())
        {
            Some(Form::Verb(verb)) => verb.system_choice = choice.into(),
            Some(Form::Entity(entity)) => entity.system_choice = choice.into(),
            // The other forms have none.
            _ => {}
        }
        self
    }

    /// The research task in which it was said. Applies to what is decided about domains, claims and edges; others are left
    /// unchanged.
    pub fn task(mut self, id: impl Into<String>) -> Self {
        let form = self.0.correction.as_mut();
        if let Some(task) = form.and_then(|form| form.correction.as_mut()).and_then(task_of) {
            *task = id.into();
        }
        self
    }

    /// The person or agent behind the correction: a stable id, unique in the namespace. Without it, each session is one
    /// voter, and all of one caller's sessions together count as one (policy `max_derived_voters`, default 1).
    pub fn reporter(mut self, id: impl Into<String>) -> Self {
        self.reporter_mut().id = id.into();
        self
    }

    /// The session in which the correction was made.
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.reporter_mut().session_id = id.into();
        self
    }

    /// The client software, for example `web/4.2`.
    pub fn client(mut self, client: impl Into<String>) -> Self {
        self.reporter_mut().client = client.into();
        self
    }

    /// A keyed hash of the end user's address, made by the backend.
    pub fn client_key(mut self, key: impl Into<String>) -> Self {
        self.reporter_mut().client_key = key.into();
        self
    }

    /// The query that the correction is about.
    pub fn query_id(mut self, id: impl Into<String>) -> Self {
        self.0.query_id = id.into();
        self
    }

    /// Why, in the reporter's words.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = reason.into();
        self
    }

    /// Anything that helps a reviewer.
    pub fn context(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.context.insert(key.into(), value.into());
        self
    }

    /// Learn it for the reporter alone. Requires [`Submission::reporter`].
    pub fn for_reporter_only(mut self) -> Self {
        self.0.scope = Scope::User.into();
        self
    }

    /// Answer once the correction is evaluated, or after at most 2 s with the outcome PENDING. Default: once it is
    /// stored.
    pub fn wait_evaluated(mut self) -> Self {
        self.0.wait = Wait::Evaluated.into();
        self
    }

    /// Makes retries idempotent across processes too. Default: a random id for each submission.
    pub fn request_id(mut self, id: &RequestId) -> Self {
        self.0.request_id = id.to_string();
        self
    }

    fn reporter_mut(&mut self) -> &mut Reporter {
        self.0.reporter.get_or_insert_default()
    }
}

impl From<SubmitFeedbackRequest> for Submission {
    /// Takes the request unchanged; an empty `request_id` is filled in when it is sent.
    fn from(request: SubmitFeedbackRequest) -> Self {
        Self(request)
    }
}
