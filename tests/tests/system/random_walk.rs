//! After any sequence of operations, with restarts of either side in between, every node's state equals the database,
//! and the votes are what the feedback alone implies.

use std::collections::{BTreeMap, BTreeSet};

use emend_client::SubscriberEvent;
use emend_proto::{
    common::v1::{Scope, SynonymRelation, correction::Correction as Form, resource_value::Value},
    feedback::v1::{Feedback as StoredFeedback, SubmitFeedbackRequest},
    learning::v1::{
        ImportAs, ImportHeader, ImportMode, ImportRow, ListCandidatesRequest, Policy, UpdatePolicyRequest,
    },
};
use emend_tests::{
    audit::ledger,
    both_databases,
    harness::{
        Dice, NAMESPACE, StreamEvent, Subscriber, System, alias, answered,
        node::Node,
        phrase, prohibit, says,
        says::{
            alias_key, decides, domain_key, domain_value, entity_value, maps_to, phrase_key, prohibition_key,
            synonyms, verb_value,
        },
        verb,
    },
};

const STEPS: usize = 70;
const PHRASES: [&str; 4] = ["set up a csa", "close it", "jd", "book the trade"];
const CHOICES: [&str; 3] = ["one", "two", "three"];
const PATTERNS: [&str; 4] = ["spam.example", "*.spam.example", "www.spam.example", "github.io"];
const DECISIONS: [&str; 6] = ["block", "unblock", "unblock:low", "academic", "primary", "clear"];
const REPORTERS: [&str; 6] = ["jane", "ann", "tom", "eve", "bob", "kim"];

async fn walk(system: &mut System, seed: u64) {
    let dice = Dice::seeded(seed);
    let address = system.learning[0].front.address();
    let mut node = Node::start(address, "search-1").await;
    let mut steady = Subscriber::of_everything("steady");
    steady.begin(&system.learning().channel).await;
    let mut wandering = Subscriber::of_everything("wandering");
    let mut submitted: Vec<StoredFeedback> = Vec::new();

    for step in 0..STEPS {
        take_a_step(system, &dice, &mut submitted).await;
        if dice.chance(0.15) {
            // Connects, hears how the stream begins, and leaves in the middle of whatever follows.
            wandering
                .connect(&system.learning().channel)
                .await
                .expect("a stream");
            wandering.next().await;
            if dice.chance(0.5) {
                wandering.disconnect();
            }
        }
        if step % (STEPS / 4) == STEPS / 8 {
            restart(system, &dice, &mut steady).await;
        }
    }

    let feedback = system.feedback().all_delivered(NAMESPACE).await;
    let head = system.learning().head().await;
    let stored = system.stored().resources().await;
    assert_eq!(system.stored().head().await, head);
    steady.until(head).await;
    assert_eq!(*steady.held(), stored, "seed {seed}: the steady subscriber");
    wandering
        .connect(&system.learning().channel)
        .await
        .expect("a stream");
    wandering.next().await;
    wandering.until(head).await;
    assert_eq!(*wandering.held(), stored, "seed {seed}: the wandering subscriber");
    node.until(head).await;
    node.assert_answers_by(&stored, &PHRASES);
    for event in node.events_so_far().await {
        assert!(
            !matches!(&*event, SubscriberEvent::DigestMismatch { .. }),
            "seed {seed}: {event:?}"
        );
    }
    let late = Node::start(address, "search-2").await;
    late.until(head).await;
    late.assert_answers_by(&stored, &PHRASES);
    ledger::expect_sound(
        system,
        None,
        &[
            (&node).into(),
            (&late).into(),
            (&steady).into(),
            (&wandering).into(),
        ],
    )
    .await;
    assert_votes_follow(&feedback, system, seed).await;
    let log: Vec<i64> = system
        .learning()
        .revisions()
        .await
        .iter()
        .map(|revision| revision.revision)
        .collect();
    assert_eq!(
        log,
        (1..=head).rev().collect::<Vec<_>>(),
        "seed {seed}: no gap in the log"
    );
}

async fn restart(system: &mut System, dice: &Dice, steady: &mut Subscriber) {
    if dice.chance(0.5) {
        system.stop_feedback().await;
        system.start_feedback().await;
    } else {
        system.stop_learning().await;
        while steady.next().await != StreamEvent::End {}
        system.start_learning().await;
        let begun = steady.begin(&system.learning().channel).await;
        assert_eq!(begun, StreamEvent::Resumed, "a restart costs no snapshot");
    }
}

/// What a person or reporter might do next. Refusals included: what is refused must have no effect.
async fn take_a_step(system: &System, dice: &Dice, submitted: &mut Vec<StoredFeedback>) {
    let (feedback, learning) = (system.feedback(), system.learning());
    let (input, choice, reporter) = (
        *dice.one_of(&PHRASES),
        *dice.one_of(&CHOICES),
        *dice.one_of(&REPORTERS),
    );
    match dice.below(24) {
        0..=8 => {
            let correction = match dice.below(5) {
                0 => verb(input, choice),
                1 => phrase(input, choice),
                2 => alias(input, choice),
                3 => prohibit(input, choice),
                _ => {
                    let others = PHRASES.iter().filter(|phrase| **phrase != input);
                    let relation =
                        SynonymRelation::try_from(1 + i32::try_from(dice.below(3)).unwrap()).unwrap();
                    synonyms(
                        input,
                        &others.copied().collect::<Vec<_>>()[dice.below(3)..],
                        relation,
                    )
                }
            };
            let request = SubmitFeedbackRequest {
                scope: if dice.chance(0.2) {
                    Scope::User
                } else {
                    Scope::Global
                }
                .into(),
                ..says(reporter, correction)
            };
            submitted.push(feedback.submit(request).await);
        }
        9..=10 if !submitted.is_empty() => {
            let stored = dice.one_of(submitted).clone();
            feedback.retract(&stored).await;
        }
        11 => {
            learning.put(phrase_key(input), verb_value(choice)).await;
        }
        12 => {
            learning.put(alias_key(input), entity_value(choice)).await;
        }
        13 => {
            let key = match dice.below(3) {
                0 => phrase_key(input),
                1 => alias_key(input),
                _ => prohibition_key(input, choice),
            };
            // It may not exist.
            let _ = learning.delete(key).await;
        }
        14..=15 => {
            let candidates = learning.candidates_for(input).await;
            if !candidates.is_empty() {
                let candidate = dice.one_of(&candidates);
                // It may have that status already.
                let _ = if dice.chance(0.6) {
                    learning.approve(candidate).await
                } else {
                    learning.reject(candidate, "no").await
                };
            }
        }
        16 => {
            let head = learning.head().await;
            if head > 0 {
                let back = i64::try_from(dice.below(5)).unwrap();
                // Newer revisions of its keys may prevent it.
                let _ = learning.revert((head - back).max(1)).await;
            }
        }
        17 => {
            let rows = (1..4)
                .map(|line| (line, *dice.one_of(&PHRASES), *dice.one_of(&CHOICES)))
                .map(|(line, name, entity)| ImportRow {
                    line,
                    correction: Some(alias(name, entity)),
                    user_id: if dice.chance(0.2) {
                        "jane".into()
                    } else {
                        String::new()
                    },
                })
                .collect();
            let header = ImportHeader {
                namespace: NAMESPACE.into(),
                mode: ImportMode::SkipInvalid.into(),
                import_as: ImportAs::Decision.into(),
                ..ImportHeader::default()
            };
            // Two rows about one key may be refused.
            let _ = learning.import(header, rows).await;
        }
        18 => {
            let request = UpdatePolicyRequest {
                policy: Some(Policy {
                    namespace: NAMESPACE.into(),
                    kind: phrase_key(input).kind,
                    threshold: i32::try_from(1 + dice.below(4)).unwrap(),
                    ..Policy::default()
                }),
                ..UpdatePolicyRequest::default()
            };
            answered(learning.policies.clone().update_policy(request).await);
        }
        19..=21 => {
            let (pattern, decision) = (*dice.one_of(&PATTERNS), *dice.one_of(&DECISIONS));
            let request = decides(reporter, pattern, decision);
            submitted.push(feedback.submit(request).await);
        }
        22 => {
            let pattern = *dice.one_of(&PATTERNS);
            match dice.below(3) {
                0 => {
                    let decision = *dice.one_of(&DECISIONS[..5]);
                    learning.put(domain_key(pattern), domain_value(decision)).await;
                }
                // It may not exist.
                1 => drop(learning.delete(domain_key(pattern)).await),
                _ => {
                    let rulings = learning.candidates_for(pattern).await;
                    if !rulings.is_empty() {
                        // It may be effective, taken back or rejected already.
                        let ruling = dice.one_of(&rulings);
                        let _ = if dice.chance(0.5) {
                            learning.approve(ruling).await
                        } else {
                            learning.reject(ruling, "no").await
                        };
                    }
                }
            }
        }
        _ => {
            learning.verb_for(input).await;
        }
    }
}

/// Checks the votes against those computed from nothing but the feedback: of each reporter's corrections in a contest
/// that were not retracted, the newest counts.
async fn assert_votes_follow(feedback: &[StoredFeedback], system: &System, seed: u64) {
    type Contest = (i32, String, String, String);
    let mut newest: BTreeMap<(Contest, String), (i64, String)> = BTreeMap::new();
    let mut occurrences: BTreeMap<(Contest, String), i64> = BTreeMap::new();
    for stored in feedback.iter().filter(|stored| stored.retracted_at.is_none()) {
        let reporter = stored.reporter.as_ref().unwrap().id.clone();
        let user = if stored.scope() == Scope::User {
            reporter.clone()
        } else {
            String::new()
        };
        let correction = stored.correction.as_ref().unwrap().correction.as_ref().unwrap();
        for (kind, key, qualifier, value) in effects(correction) {
            let contest = (kind, key.to_owned(), qualifier.to_owned(), user.clone());
            *occurrences.entry((contest.clone(), value.clone())).or_default() += 1;
            let vote = newest.entry((contest, reporter.clone())).or_default();
            if stored.accept_order > vote.0 {
                *vote = (stored.accept_order, value);
            }
        }
    }
    let mut expected: BTreeMap<(Contest, String), i64> = BTreeMap::new();
    for ((contest, _), (_, value)) in newest {
        *expected.entry((contest, value)).or_default() += 1;
    }
    let all = system
        .learning()
        .list_candidates(ListCandidatesRequest {
            namespace: NAMESPACE.into(),
            page_size: 500,
            ..ListCandidatesRequest::default()
        })
        .await;
    let mut proposals = BTreeSet::new();
    for candidate in &all {
        if candidate.ruling.is_some() {
            // Each is one of its own: what is in force is compared by the audit.
            continue;
        }
        let key = candidate.key.clone().unwrap();
        let value = match candidate.value.as_ref().and_then(|value| value.value.as_ref()) {
            Some(Value::Synonym(synonym)) => synonym.relation().as_str_name().to_owned(),
            _ => maps_to(candidate.value.as_ref()),
        };
        let proposal = ((key.kind, key.key, key.qualifier, key.user_id), value);
        let supporters = expected.get(&proposal).copied().unwrap_or_default();
        assert_eq!(candidate.reporter_count, supporters, "seed {seed}: {proposal:?}");
        let times = occurrences.get(&proposal).copied().unwrap_or_default();
        assert_eq!(candidate.occurrence_count, times, "seed {seed}: {proposal:?}");
        assert!(proposals.insert(proposal), "seed {seed}: one candidate each");
    }
    assert!(
        expected.keys().all(|proposal| proposals.contains(proposal)),
        "seed {seed}: none is missing"
    );
}

/// What a correction does: the kind, the key, the qualifier, and what tells the candidate from its rivals.
fn effects(correction: &Form) -> Vec<(i32, &str, &str, String)> {
    fn one<'a>(
        kind: i32,
        key: &'a str,
        qualifier: &'a str,
        value: &str,
    ) -> Vec<(i32, &'a str, &'a str, String)> {
        vec![(kind, key, qualifier, value.to_owned())]
    }
    match correction {
        Form::Verb(verb) => one(1, &verb.original_input, "", &verb.correct_choice),
        Form::PhraseMapping(mapping) => one(1, &mapping.phrase, "", &mapping.verb),
        Form::Entity(entity) => one(2, &entity.original_input, "", &entity.correct_choice),
        Form::Prohibition(prohibition) => {
            let choice = &prohibition.forbidden_choice;
            one(3, &prohibition.phrase, choice, choice)
        }
        Form::Term(term) => {
            let relation = term.relation().as_str_name().to_owned();
            let pair = |equivalent| (4, equivalent, &*term.term, relation.clone());
            term.equivalents.iter().map(String::as_str).map(pair).collect()
        }
        // Rulings and ratings are no votes.
        Form::DomainBlock(_)
        | Form::DomainUnblock(_)
        | Form::DomainClearOverride(_)
        | Form::DomainSetTrust(_)
        | Form::ClaimReject(_)
        | Form::ClaimRestore(_)
        | Form::EdgeCorrect(_)
        | Form::Rating(_)
        | Form::SearchRating(_)
        | Form::Tuning(_) => Vec::new(),
    }
}

both_databases! {
    async fn every_node_equals_the_database_after_a_walk_of_seed_1(system) {
        walk(system, 1).await;
    }

    async fn every_node_equals_the_database_after_a_walk_of_seed_2(system) {
        walk(system, 2).await;
    }

    async fn every_node_equals_the_database_after_a_walk_of_seed_3(system) {
        walk(system, 3).await;
    }
}
