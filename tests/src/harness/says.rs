//! One-line requests for these tests. The setting is fund administration, as in "set up a CSA" when an ISDA was meant.

use emend_core::{ClaimState, DomainRule, EdgeLabel, Kind, Learned, search::Tuning};
use emend_proto::{
    common::v1::{
        Correction, EdgeRelation, EntityAliasValue, EntityCorrection, InvocationPhraseValue, PhraseMapping,
        Prohibition, ProhibitionValue, PromptValue, Rating, Reporter, ResourceKey, ResourceKind,
        ResourceValue, SearchRating, SearchRatingValue, SynonymRelation, SynonymValue, TermCorrection,
        VerbCorrection, correction::Correction as Form, resource_value::Value,
    },
    feedback::v1::{SubmitFeedbackRequest, Wait},
    learning::v1::{
        EvidenceClaim, EvidenceEdge, EvidenceFragment, EvidencePage, NodeRef, UpsertEvidenceRequest,
        node_ref::Node,
    },
};

/// The namespace of most tests.
pub const NAMESPACE: &str = "fund-admin";

/// A phrase means a verb, as a correction of the system's choice.
pub fn verb(input: &str, choice: &str) -> Correction {
    form(Form::Verb(VerbCorrection {
        original_input: input.into(),
        system_choice: "the_systems_choice".into(),
        correct_choice: choice.into(),
    }))
}

/// A phrase means a verb.
pub fn phrase(phrase: &str, verb: &str) -> Correction {
    form(Form::PhraseMapping(PhraseMapping {
        phrase: phrase.into(),
        verb: verb.into(),
    }))
}

/// A name means an entity.
pub fn alias(alias: &str, entity: &str) -> Correction {
    form(Form::Entity(EntityCorrection {
        original_input: alias.into(),
        system_choice: String::new(),
        correct_choice: entity.into(),
    }))
}

/// A choice must never be offered for a phrase.
pub fn prohibit(phrase: &str, choice: &str) -> Correction {
    form(Form::Prohibition(Prohibition {
        phrase: phrase.into(),
        forbidden_choice: choice.into(),
    }))
}

/// Other terms stand for this one.
pub fn synonyms(term: &str, equivalents: &[&str], relation: SynonymRelation) -> Correction {
    form(Form::Term(TermCorrection {
        term: term.into(),
        equivalents: equivalents.iter().map(|&equivalent| equivalent.into()).collect(),
        relation: relation.into(),
    }))
}

/// A decision about a pattern of domains, in one word, with a reason: `block`, `unblock:low`, `academic`.
///
/// # Panics
/// If it is no decision.
pub fn decides(reporter: &str, pattern: &str, decision: &str) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        reason: "seen it".into(),
        ..says(reporter, domain(pattern, decision))
    }
}

/// The correction in it.
///
/// # Panics
/// If it is no decision.
pub fn domain(pattern: &str, decision: &str) -> Correction {
    let rule = DomainRule::parse(decision).expect("a decision");
    form(emend_wire::kinds::domain_decision(pattern.into(), rule))
}

/// A decision about a claim, in one word, with a reason: `rejected`, `rejected:SPAM`, `restored`.
///
/// # Panics
/// If it is no decision.
pub fn decides_claim(reporter: &str, claim_id: &str, decision: &str) -> SubmitFeedbackRequest {
    let state = ClaimState::parse(decision).expect("a decision");
    SubmitFeedbackRequest {
        reason: "seen it".into(),
        ..says(
            reporter,
            form(emend_wire::kinds::claim_decision(claim_id.into(), &state)),
        )
    }
}

/// The label that an edge should have: `supports`, `refutes`, `neutral`.
///
/// # Panics
/// If it is no label.
pub fn corrects_edge(reporter: &str, edge_id: &str, label: &str) -> SubmitFeedbackRequest {
    let label = EdgeLabel::parse(label).expect("a label");
    let correction = form(emend_wire::kinds::edge_correction(edge_id.into(), label));
    says(reporter, correction)
}

/// How queries of a type should be searched, as one line.
///
/// # Panics
/// If the line says no tuning.
pub fn tunes(reporter: &str, query_type: &str, line: &str) -> SubmitFeedbackRequest {
    let tuning = Tuning::parse(line).expect("a tuning");
    says(
        reporter,
        form(emend_wire::kinds::tuning_correction(query_type.into(), &tuning)),
    )
}

/// Evidence: a fragment of a page of this host supports the claim, by the model with this confidence. The page, fragment and edge
/// have this number; all of it belongs to the task `t1`.
pub fn supports(number: usize, host: &str, claim_id: &str, confidence: f64) -> UpsertEvidenceRequest {
    let node = |node| Some(NodeRef { node: Some(node) });
    UpsertEvidenceRequest {
        namespace: NAMESPACE.into(),
        pages: vec![EvidencePage {
            page_id: format!("p{number}"),
            domain: host.into(),
            ..EvidencePage::default()
        }],
        fragments: vec![EvidenceFragment {
            fragment_id: format!("f{number}"),
            page_id: format!("p{number}"),
            text: format!("what fragment {number} says"),
        }],
        claims: vec![EvidenceClaim {
            claim_id: claim_id.into(),
            task_id: "t1".into(),
            text: format!("what {claim_id} says"),
            ..EvidenceClaim::default()
        }],
        edges: vec![EvidenceEdge {
            edge_id: format!("e{number}"),
            relation: EdgeRelation::Supports.into(),
            source: node(Node::FragmentId(format!("f{number}"))),
            target: node(Node::ClaimId(claim_id.into())),
            task_id: "t1".into(),
            nli_confidence: Some(confidence),
            ..EvidenceEdge::default()
        }],
        replace: false,
    }
}

/// A rating of an output for `SUMMARIZE_DAILY`: `GOOD`, `NEUTRAL` or `BAD`.
pub fn rates(reporter: &str, target_id: &str, value: &str) -> SubmitFeedbackRequest {
    let rating = Rating {
        target: "SUMMARIZE_DAILY".into(),
        value: value.into(),
        target_id: target_id.into(),
        input_text: "what happened today".into(),
        output_text: format!("a summary, {target_id}"),
        ..Rating::default()
    };
    says(reporter, form(Form::Rating(rating)))
}

/// A rating of what a search returned.
pub fn search_rates(reporter: &str, query_id: &str, value: SearchRatingValue) -> SubmitFeedbackRequest {
    let value = value.into();
    SubmitFeedbackRequest {
        query_id: query_id.into(),
        ..says(reporter, form(Form::SearchRating(SearchRating { value })))
    }
}

/// A rating that says what is wrong with the output.
pub fn finds_fault(reporter: &str, target_id: &str, fault: &str) -> SubmitFeedbackRequest {
    let mut request = rates(reporter, target_id, "BAD");
    if let Some(Form::Rating(rating)) = request
        .correction
        .as_mut()
        .and_then(|correction| correction.correction.as_mut())
    {
        rating.issues.push(fault.into());
        rating.corrected_text = "forty tickets".into();
        rating.prompt_version = "1".into();
    }
    request
}

/// The key of the prompt for daily summaries under a label.
pub fn prompt_key(label: &str) -> ResourceKey {
    ResourceKey {
        namespace: NAMESPACE.into(),
        kind: ResourceKind::Prompt.into(),
        key: "SUMMARIZE_DAILY".into(),
        qualifier: label.into(),
        ..ResourceKey::default()
    }
}

/// A prompt without variables.
pub fn prompt_value(text: &str) -> ResourceValue {
    ResourceValue {
        value: Some(Value::Prompt(PromptValue {
            text: text.into(),
            ..PromptValue::default()
        })),
        ..ResourceValue::default()
    }
}

fn form(form: Form) -> Correction {
    Correction {
        correction: Some(form),
    }
}

/// A submission by `reporter` that applies to everybody and waits until it is evaluated.
pub fn says(reporter: &str, correction: Correction) -> SubmitFeedbackRequest {
    SubmitFeedbackRequest {
        namespace: NAMESPACE.into(),
        reporter: Some(Reporter {
            id: reporter.into(),
            ..Reporter::default()
        }),
        wait: Wait::Evaluated.into(),
        correction: Some(correction),
        ..SubmitFeedbackRequest::default()
    }
}

/// The key of what everybody gets for a phrase.
pub fn phrase_key(phrase: &str) -> ResourceKey {
    key(ResourceKind::InvocationPhrase, phrase)
}

/// The key of what everybody gets for a name.
pub fn alias_key(alias: &str) -> ResourceKey {
    key(ResourceKind::EntityAlias, alias)
}

/// The key of a prohibition for everybody.
pub fn prohibition_key(phrase: &str, choice: &str) -> ResourceKey {
    ResourceKey {
        qualifier: choice.into(),
        ..key(ResourceKind::Prohibition, phrase)
    }
}

fn key(kind: ResourceKind, key: &str) -> ResourceKey {
    ResourceKey {
        namespace: NAMESPACE.into(),
        kind: kind.into(),
        key: key.into(),
        ..ResourceKey::default()
    }
}

/// A verb as a value.
pub fn verb_value(verb: &str) -> ResourceValue {
    value(Value::InvocationPhrase(InvocationPhraseValue {
        verb: verb.into(),
    }))
}

/// An entity as a value.
pub fn entity_value(entity: &str) -> ResourceValue {
    value(Value::EntityAlias(EntityAliasValue {
        entity_id: entity.into(),
    }))
}

/// A forbidden choice as a value.
pub fn forbidden_value(choice: &str) -> ResourceValue {
    value(Value::Prohibition(ProhibitionValue {
        forbidden_choice: choice.into(),
    }))
}

/// The key of a synonym for everybody: a term, and what it stands for.
pub fn synonym_key(term: &str, representative: &str) -> ResourceKey {
    ResourceKey {
        qualifier: representative.into(),
        ..key(ResourceKind::Synonym, term)
    }
}

/// What a term stands for, as a value: each finds what the other finds.
pub fn synonym_value(representative: &str) -> ResourceValue {
    value(Value::Synonym(SynonymValue {
        relation: SynonymRelation::Equivalent.into(),
        representative: representative.into(),
    }))
}

/// The key of what people decided about a pattern of domains.
pub fn domain_key(pattern: &str) -> ResourceKey {
    ResourceKey {
        qualifier: "human".into(),
        ..key(ResourceKind::DomainRule, pattern)
    }
}

/// A decision about a domain as a value.
///
/// # Panics
/// If it is no decision.
pub fn domain_value(decision: &str) -> ResourceValue {
    value_of(Kind::DomainRule, decision)
}

/// The key of what people decided about a claim.
pub fn claim_key(claim_id: &str) -> ResourceKey {
    key(ResourceKind::ClaimState, claim_id)
}

/// The key of the label that a person gave an edge.
pub fn edge_key(edge_id: &str) -> ResourceKey {
    key(ResourceKind::EdgeLabel, edge_id)
}

/// The key of how queries of a type are searched.
pub fn tuning_key(query_type: &str) -> ResourceKey {
    key(ResourceKind::SearchTuning, query_type)
}

/// What one word of a file says, as a value of that kind.
///
/// # Panics
/// If no word of that kind is this one.
pub fn value_of(kind: Kind, word: &str) -> ResourceValue {
    let learned = Learned::of(kind, word.to_owned()).expect("a word of the kind");
    value(emend_wire::kinds::value(&learned))
}

fn value(value: Value) -> ResourceValue {
    ResourceValue {
        value: Some(value),
        ..ResourceValue::default()
    }
}

/// What a value maps to, whatever its kind; empty if it has none.
pub fn maps_to(value: Option<&ResourceValue>) -> String {
    let learned = value.and_then(|value| emend_wire::kinds::learned(value.value.as_ref()?).ok());
    learned.map_or_else(String::new, |learned| learned.maps_to().to_owned())
}
