//! What a view answers, including while it is being changed.

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use emend_base::{Clock as _, ManualClock, SystemClock};
use emend_core::{EdgeRelation, Learned, Relation, ResourceValue, Synonym};
use jiff::SignedDuration;

use super::*;

mod domains;
mod expand;
mod near;
mod prompts;

fn fact<'a>(key: &'a str, kind: Kind, user_id: &'a str, value: &'a str, revision: i64) -> Fact<'a> {
    Fact {
        namespace: "fund-admin",
        kind,
        key,
        qualifier: if kind == Kind::Prohibition { value } else { "" },
        user_id,
        revision: Revision(revision),
        value: Some(Cow::Owned(ResourceValue::new(
            key,
            Learned::of(kind, value.to_owned()).unwrap(),
        ))),
    }
}

fn view() -> (Publisher, LearnedView) {
    LearnedView::new(&Entropy::seeded(1), SystemClock::shared())
}

fn namespace() -> Namespace {
    Namespace::parse("fund-admin").unwrap()
}

fn resolved(view: &LearnedView, phrase: &str, user: Option<&str>) -> Resolution {
    let user = user.map(|user| UserId::parse(user).unwrap());
    let candidates = [("create_isda", 0.7), ("create_csa", 0.6)];
    view.resolve(
        &namespace(),
        Kind::InvocationPhrase,
        phrase,
        user.as_ref(),
        candidates,
    )
    .unwrap()
}

#[test]
fn every_spelling_of_a_phrase_finds_what_was_learned() {
    let (mut publisher, view) = view();
    publisher.apply(
        [fact("set up a csa", Kind::InvocationPhrase, "", "create_csa", 7)],
        Revision(7),
    );
    for phrase in ["  Set up a CSA ", "set up a csa", "Ｓｅｔ　ｕｐ　ａ　ＣＳＡ"] {
        let found = resolved(&view, phrase, None);
        let answer = found.found.unwrap();
        assert_eq!(
            (answer.value.as_str(), answer.revision, answer.scope),
            ("create_csa", Revision(7), Scope::Global)
        );
        assert!((answer.score - 1.0).abs() < f64::EPSILON);
        assert_eq!(found.phrase.as_str(), "set up a csa");
        assert!(!found.feedback_hint);
    }
    assert!(
        view.resolve(&namespace(), Kind::InvocationPhrase, "  ", None, [])
            .is_err()
    );
    let other = Namespace::parse("other").unwrap();
    assert_eq!(
        view.resolve(&other, Kind::InvocationPhrase, "set up a csa", None, [])
            .unwrap()
            .found,
        None
    );
}

#[test]
fn a_reader_sees_every_update_and_frees_old_states() {
    let (mut publisher, view) = view();
    let mut reader = view.reader();
    let phrase = NormalizedKey::parse("a").unwrap();
    for revision in 1..5 {
        publisher.apply(
            [fact("a", Kind::EntityAlias, "", "e", revision)],
            Revision(revision),
        );
        let key = LookupKey {
            namespace: &namespace(),
            phrase: &phrase,
        };
        let found = reader
            .read()
            .lookup(key, Kind::EntityAlias, None)
            .found()
            .map(|found| found.revision);
        assert_eq!(found, Some(Revision(revision)));
    }
    publisher.advance(Revision(5));
    assert_eq!(reader.read().revision(), Revision(5));
    publisher.advance(Revision(6));
    assert_eq!(
        publisher.retired.len(),
        1,
        "the state that the reader still holds"
    );
    reader.read();
    publisher.advance(Revision(6));
    assert!(publisher.retired.is_empty());
}

#[test]
fn a_users_own_answer_comes_before_the_global_one() {
    let (mut publisher, view) = view();
    publisher.apply(
        [
            fact("a", Kind::InvocationPhrase, "", "global", 1),
            fact("a", Kind::InvocationPhrase, "jane", "own", 2),
        ],
        Revision(2),
    );
    let value = |user| {
        resolved(&view, "a", user)
            .found
            .map(|found| (found.value, found.scope))
    };
    assert_eq!(value(Some("jane")), Some(("own".into(), Scope::User)));
    assert_eq!(value(Some("john")), Some(("global".into(), Scope::Global)));
    assert_eq!(value(None), Some(("global".into(), Scope::Global)));
}

#[test]
fn a_prohibited_choice_is_never_returned_and_the_answer_says_so() {
    let (mut publisher, view) = view();
    publisher.apply(
        [
            fact("a", Kind::InvocationPhrase, "jane", "create_isda", 1),
            fact("a", Kind::Prohibition, "", "create_isda", 2),
            fact("a", Kind::Prohibition, "jane", "other", 2),
        ],
        Revision(2),
    );
    let found = resolved(&view, "a", Some("jane"));
    assert_eq!((found.found, found.found_prohibited), (None, true));
    assert_eq!(found.prohibited, ["create_isda", "other"]);
    assert!(!found.feedback_hint, "one candidate is left");
    assert_eq!(resolved(&view, "a", None).prohibited, ["create_isda"]);

    let gone = Fact {
        value: None,
        ..fact("a", Kind::Prohibition, "", "create_isda", 3)
    };
    publisher.apply([gone], Revision(3));
    assert_eq!(
        resolved(&view, "a", Some("jane")).found.unwrap().value,
        "create_isda"
    );
}

#[test]
fn a_backends_choice_is_prohibited_in_either_encoding() {
    let (mut publisher, view) = view();
    publisher.apply(
        [fact("coffee", Kind::Prohibition, "", "caf\u{e9}", 1)],
        Revision(1),
    );
    for cafe in ["caf\u{e9}", "cafe\u{301}"] {
        let candidates = [(cafe, 0.5), ("tea", 0.5)];
        let found = view.resolve(&namespace(), Kind::InvocationPhrase, "coffee", None, candidates);
        assert!(
            !found.unwrap().feedback_hint,
            "one choice is left, so there is no doubt"
        );
    }
}

#[test]
fn the_user_is_asked_when_nothing_was_learned_and_the_backend_is_unsure() {
    let (_publisher, view) = view();
    let found = resolved(&view, "not learned", None);
    assert_eq!((found.found, found.feedback_hint), (None, true));
}

#[test]
fn merges_keep_what_was_learned() {
    let (mut publisher, view) = view();
    let total: i64 = 20_000;
    for revision in 1..=total {
        let (key, value) = (format!("phrase {revision}"), format!("verb {}", revision % 10));
        publisher.apply(
            [fact(&key, Kind::InvocationPhrase, "", &value, revision)],
            Revision(revision),
        );
        if revision % 3 == 0 {
            let gone = format!("phrase {}", revision - 1);
            let gone = Fact {
                value: None,
                ..fact(&gone, Kind::InvocationPhrase, "", "", revision)
            };
            publisher.apply([gone], Revision(revision));
        }
    }
    let reading = view.read();
    assert!(reading.state.table.len() > 10_000, "most were merged");
    for revision in 1..=total {
        let phrase = NormalizedKey::parse(&format!("phrase {revision}")).unwrap();
        let key = LookupKey {
            namespace: &namespace(),
            phrase: &phrase,
        };
        let found = reading
            .lookup(key, Kind::InvocationPhrase, None)
            .found()
            .map(|found| found.value);
        let gone = revision % 3 == 2 && revision < total;
        assert_eq!(
            found,
            (!gone).then_some(format!("verb {}", revision % 10).as_str()),
            "{revision}"
        );
    }
}

#[test]
fn readers_see_whole_updates_while_they_are_applied() {
    const PHRASES: usize = 20;
    let (mut publisher, view) = view();
    let phrases: Vec<_> = (0..PHRASES).map(|id| format!("phrase {id}")).collect();
    let update = |publisher: &mut Publisher, revision: i64| {
        let value = revision.to_string();
        let facts = phrases
            .iter()
            .map(|phrase| fact(phrase, Kind::EntityAlias, "", &value, revision));
        publisher.apply(facts, Revision(revision));
    };
    update(&mut publisher, 1);
    let stop = AtomicBool::new(false);
    let keys: Vec<_> = phrases
        .iter()
        .map(|phrase| NormalizedKey::parse(phrase).unwrap())
        .collect();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut last, mut seen) = (0, 0);
                    while !stop.load(Ordering::Relaxed) || seen < 10 {
                        let reading = view.read();
                        let namespace = namespace();
                        let revisions = keys.iter().map(|phrase| {
                            let key = LookupKey {
                                namespace: &namespace,
                                phrase,
                            };
                            reading
                                .lookup(key, Kind::EntityAlias, None)
                                .found()
                                .unwrap()
                                .revision
                                .0
                        });
                        let revisions: Vec<_> = revisions.collect();
                        assert!(
                            revisions.iter().all(|revision| *revision == revisions[0]),
                            "{revisions:?}"
                        );
                        assert!(revisions[0] >= last, "revisions never go back");
                        assert_eq!(revisions[0], reading.revision().0);
                        last = revisions[0];
                        seen += 1;
                    }
                })
            })
            .collect();
        for revision in 2..2_000 {
            update(&mut publisher, revision);
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    publisher.advance(Revision(2_000));
    assert!(publisher.retired.len() <= 1, "states that nobody reads are freed");
}

#[tokio::test(start_paused = true)]
async fn a_view_says_how_stale_it_is_and_can_be_waited_for() {
    let clock = ManualClock::default();
    let (_publisher, view) = LearnedView::new(&Entropy::seeded(1), clock.shared());
    let stale = view.staleness();
    assert_eq!(
        (stale.origin, stale.age, stale.connected),
        (Origin::Nothing, None, false)
    );

    let waiting = tokio::spawn({
        let view = view.clone();
        async move { view.wait_for_revision(Revision(5)).await }
    });
    for revision in [4, 5] {
        assert!(!waiting.is_finished());
        let now = clock.now();
        view.update_status(|status| {
            status.revision = Revision(revision);
            status.origin = Origin::Stream;
            status.current_at = Some(now);
        });
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(Duration::from_secs(1), waiting)
        .await
        .unwrap()
        .unwrap();
    tokio::time::timeout(Duration::from_secs(1), view.wait_until_filled())
        .await
        .unwrap();
    clock.advance(SignedDuration::from_secs(90));
    assert_eq!(view.staleness().age, Some(SignedDuration::from_secs(90)));
}

/// That `term` stands for `representative`, or, without a relation, that it does no longer.
fn synonym<'a>(
    term: &'a str,
    representative: &'a str,
    relation: Option<Relation>,
    revision: i64,
) -> Fact<'a> {
    Fact {
        qualifier: representative,
        value: relation.map(|relation| {
            let representative = representative.to_uppercase();
            let learned = Learned::Synonym(Synonym {
                relation,
                representative,
            });
            Cow::Owned(ResourceValue::new(term.to_uppercase(), learned))
        }),
        ..fact(term, Kind::Synonym, "", "", revision)
    }
}

fn expanded(view: &LearnedView, term: &str) -> Vec<String> {
    view.synonyms(&namespace(), term, None).unwrap()
}

#[test]
fn a_term_expands_to_its_representative_and_the_set() {
    const EQUIVALENT: Option<Relation> = Some(Relation::Equivalent);
    let facts = [
        synonym("follow", "follower", EQUIVALENT, 1),
        synonym("folower", "follower", Some(Relation::Typo), 1),
        synonym("minion", "follower", Some(Relation::OneWay), 1),
        synonym("unit", "follower", EQUIVALENT, 1),
        synonym("unit", "module", EQUIVALENT, 1),
        synonym("part", "module", EQUIVALENT, 1),
        synonym("follower", "fan", EQUIVALENT, 1),
    ];
    let (mut snapshot, replaced) = view();
    snapshot.replace(facts.len(), facts.clone(), Revision(1));
    let (mut updates, applied) = view();
    updates.apply(facts, Revision(1));
    for view in [&replaced, &applied] {
        assert_eq!(expanded(view, "Follow"), ["FOLLOWER", "UNIT"]);
        // What leads to a set in one direction is not found from it.
        assert_eq!(expanded(view, "folower"), ["FOLLOWER", "FOLLOW", "UNIT"]);
        assert_eq!(expanded(view, "minion"), ["FOLLOWER", "FOLLOW", "UNIT"]);
        // Of several representatives the union; the sets are not joined for others.
        assert_eq!(expanded(view, "unit"), ["FOLLOWER", "MODULE", "FOLLOW", "PART"]);
        assert_eq!(expanded(view, "part"), ["MODULE", "UNIT"]);
        // A representative expands to its own set, and to that of what it stands for.
        assert_eq!(expanded(view, "follower"), ["FAN", "FOLLOW", "UNIT"]);
        assert_eq!(expanded(view, "fan"), ["FOLLOWER"]);
        assert_eq!(expanded(view, "unknown"), [""; 0]);
    }
    updates.apply(
        [
            synonym("unit", "follower", None, 2),
            synonym("follow", "follower", Some(Relation::OneWay), 2),
            synonym("minion", "follower", EQUIVALENT, 2),
        ],
        Revision(2),
    );
    assert_eq!(expanded(&applied, "follow"), ["FOLLOWER", "MINION"]);
    assert_eq!(expanded(&applied, "unit"), ["MODULE", "PART"]);
}

#[test]
fn a_users_own_synonyms_add_to_everybodys() {
    let (mut publisher, view) = view();
    let own = Fact {
        user_id: "jane",
        ..synonym("field", "lawn", Some(Relation::Equivalent), 1)
    };
    publisher.apply(
        [synonym("field", "board", Some(Relation::Equivalent), 1), own],
        Revision(1),
    );
    let jane = UserId::parse("jane").unwrap();
    let of_jane = view.synonyms(&namespace(), "field", Some(&jane)).unwrap();
    assert_eq!(of_jane, ["LAWN", "BOARD"]);
    assert_eq!(expanded(&view, "field"), ["BOARD"]);
    assert_eq!(
        view.synonyms(&namespace(), "board", Some(&jane)).unwrap(),
        ["FIELD"]
    );
}

#[test]
fn the_examples_for_a_target_are_found_by_any_spelling_of_it_and_go_below_a_prompt() {
    use emend_core::{Example, FeedbackId, FewShotSet, Language, RatedId, outputs::render};

    let (mut publisher, view) = view();
    let set = FewShotSet {
        language: Language::En,
        good: vec![Example {
            feedback: FeedbackId::none(),
            rated: RatedId(FeedbackId::none().0),
            input: "in".into(),
            output: "out".into(),
            corrected: String::new(),
            issues: Vec::new(),
        }],
        bad: Vec::new(),
    };
    let value = ResourceValue::new("INTERPRET", Learned::FewShotSet(set.clone()));
    let fact = |value: Option<ResourceValue>, revision| Fact {
        namespace: "fund-admin",
        kind: Kind::FewShotSet,
        key: "INTERPRET",
        qualifier: "",
        user_id: "",
        revision: Revision(revision),
        value: value.map(Cow::Owned),
    };
    publisher.apply([fact(Some(value), 1)], Revision(1));
    assert_eq!(*view.few_shot_set(&namespace(), "INTERPRET"), set);
    assert_eq!(*view.few_shot_set(&namespace(), "interpret"), set);
    let none = view.few_shot_set(&namespace(), "SUMMARIZE_DAILY");
    assert_eq!(render("prompt", &none, none.language), "prompt");
    publisher.apply([fact(None, 2)], Revision(2));
    assert!(view.few_shot_set(&namespace(), "INTERPRET").is_empty());
}

#[test]
fn a_claim_and_an_edge_are_found_by_their_exact_ids_even_where_these_are_equal() {
    let (mut publisher, view) = view();
    let claim = fact("C1", Kind::ClaimState, "", "rejected:SPAM", 1);
    let edge = fact("C1", Kind::EdgeLabel, "", "refutes", 2);
    let gone = |fact: &Fact<'static>| Fact {
        value: None,
        ..fact.clone()
    };
    publisher.replace(2, [claim.clone(), edge.clone()], Revision(2));
    let namespace = namespace();
    let decided = view.claim_state(&namespace, " C1").unwrap();
    assert!(decided.state.is_rejected());
    assert_eq!(
        (decided.state.reason_code(), decided.revision),
        ("SPAM", Revision(1))
    );
    let labelled = view.edge_label(&namespace, "C1").unwrap();
    assert_eq!(
        (labelled.relation, labelled.revision),
        (EdgeRelation::Refutes, Revision(2))
    );
    assert_eq!(view.claim_state(&namespace, "c1"), None);
    publisher.apply([gone(&claim)], Revision(3));
    assert_eq!(view.claim_state(&namespace, "C1"), None);
    assert!(view.edge_label(&namespace, "C1").is_some());
    publisher.apply([gone(&edge)], Revision(4));
    assert_eq!(view.edge_label(&namespace, "C1"), None);
}

#[test]
fn results_are_ordered_by_score_times_trust_without_blocked_sources() {
    let (mut publisher, view) = view();
    let rules = [
        domains::domain_fact("spam.example", Some("block"), 1),
        domains::domain_fact("nature.example", Some("primary"), 1),
        domains::domain_fact("blog.example", Some("low"), 1),
    ];
    publisher.apply(rules, Revision(1));
    let results = [
        (1, "WWW.spam.example", 1.0),
        (2, "unknown.example", 0.8),
        (3, "nature.example.", 0.3),
        (4, "blog.example", 0.5),
        (5, "no host", f64::NAN),
        (6, "no host", 0.8),
    ];
    let ranked = view.rank(&namespace(), results);
    let order: Vec<_> = ranked.iter().map(|(result, ..)| *result).collect();
    assert_eq!(order, [3, 2, 6, 4, 5], "{ranked:?}");
}
