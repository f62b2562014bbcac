//! Near answers: what they depend on, and when they are there.

use emend_core::{Learned, NearLookup, generalise::Vectors};

use super::*;

const LOST: &str = "report_lost_card";
const BALANCE: &str = "show_balance";

/// Enough phrases of two verbs for a model.
fn taught() -> Vec<(String, &'static str)> {
    let things = [
        "card",
        "bank card",
        "credit card",
        "debit card",
        "red card",
        "card from you",
    ];
    let lost = things.iter().flat_map(|thing| {
        [
            format!("i lost my {thing}"),
            format!("my {thing} was stolen"),
            format!("please block the {thing}"),
        ]
    });
    let accounts = [
        "account",
        "bank account",
        "savings",
        "current account",
        "second account",
        "deposit",
    ];
    let balance = accounts.iter().flat_map(|account| {
        [
            format!("what is the balance of my {account}"),
            format!("how much money is in my {account}"),
            format!("show me my {account} balance"),
        ]
    });
    let lost = lost.map(|phrase| (phrase, LOST));
    lost.chain(balance.map(|phrase| (phrase, BALANCE))).collect()
}

fn facts(taught: &[(String, &'static str)]) -> Vec<Fact<'static>> {
    let taught = taught.iter().cloned();
    let facts = taught.map(|(phrase, verb)| {
        let phrase: &'static str = phrase.leak();
        fact(phrase, Kind::InvocationPhrase, "", verb, 1)
    });
    facts.collect()
}

/// A view that has been taught all of it, with its models made.
fn fitted() -> (Publisher, LearnedView) {
    let (mut publisher, view) = view();
    view.keep_near();
    let facts = facts(&taught());
    publisher.replace(facts.len(), facts, Revision(1));
    publisher.fit_near();
    (publisher, view)
}

fn near(view: &LearnedView, phrase: &str, user: Option<&str>) -> Resolution {
    let user = user.map(|user| UserId::parse(user).unwrap());
    view.resolve_near(&namespace(), Kind::InvocationPhrase, phrase, user.as_ref(), [])
        .unwrap()
}

fn choice(view: &LearnedView, phrase: &str, user: Option<&str>) -> Option<String> {
    near(view, phrase, user).near.map(|near| near.choice.to_string())
}

fn setting(line: &str) -> Fact<'static> {
    let near: NearLookup = line.parse().unwrap();
    Fact {
        key: "invocation_phrase",
        kind: Kind::NearLookup,
        value: Some(Cow::Owned(ResourceValue::new(
            "invocation_phrase",
            Learned::NearLookup(Some(near)),
        ))),
        ..fact("", Kind::InvocationPhrase, "", "", 2)
    }
}

#[test]
fn a_phrase_that_nobody_corrected_means_what_similar_ones_mean() {
    let (_publisher, view) = fitted();
    let found = near(&view, "I think I lost my Card", None);
    assert_eq!((found.found, found.near_status), (None, NearStatus::Ready));
    let answer = found.near.unwrap();
    assert_eq!(&*answer.choice, LOST);
    assert!((0.8..1.0).contains(&answer.confidence), "{answer:?}");
    assert!(answer.because.iter().all(|learned| *learned.choice == *LOST));
    assert!(!answer.because.is_empty());

    let exact = near(&view, "I lost my card", None);
    assert_eq!(exact.found.unwrap().value, LOST);
    assert_eq!(exact.near, None);
    // Nobody asked.
    let unasked = resolved(&view, "i think i lost my card", None);
    assert_eq!((unasked.near, unasked.near_status), (None, NearStatus::NotAsked));
}

#[test]
fn what_is_prohibited_for_everybody_or_the_user_is_no_near_answer() {
    let (mut publisher, view) = fitted();
    let phrase = "i think i lost my card";
    publisher.apply([fact(phrase, Kind::Prohibition, "joe", LOST, 2)], Revision(2));
    assert_ne!(choice(&view, phrase, Some("joe")).as_deref(), Some(LOST));
    assert_eq!(choice(&view, phrase, Some("ann")).as_deref(), Some(LOST));
    publisher.apply([fact(phrase, Kind::Prohibition, "", LOST, 3)], Revision(3));
    assert_ne!(choice(&view, phrase, Some("ann")).as_deref(), Some(LOST));
}

#[test]
fn what_one_user_taught_changes_nothing_for_others() {
    let (mut publisher, view) = fitted();
    let before = near(&view, "i think i lost my card", None).near.unwrap();
    publisher.apply(
        [fact(
            "i think i lost it",
            Kind::InvocationPhrase,
            "joe",
            BALANCE,
            2,
        )],
        Revision(2),
    );
    publisher.fit_near();
    assert_eq!(near(&view, "i think i lost my card", None).near.unwrap(), before);
}

#[test]
fn what_is_learned_and_forgotten_counts_with_its_update() {
    let (mut publisher, view) = fitted();
    let asked = "kindly freeze that plastic thing of mine now";
    assert_eq!(choice(&view, asked, None), None);
    let learned = "kindly freeze that plastic thing of mine";
    publisher.apply([fact(learned, Kind::InvocationPhrase, "", LOST, 2)], Revision(2));
    let counted = near(&view, asked, None);
    assert_eq!(counted.revision, Revision(2));
    assert_eq!(&*counted.near.unwrap().choice, LOST);
    let gone = Fact {
        value: None,
        ..fact(learned, Kind::InvocationPhrase, "", LOST, 3)
    };
    publisher.apply([gone], Revision(3));
    assert_eq!(choice(&view, asked, None), None);
}

#[test]
fn equal_resources_give_equal_answers_whatever_their_order() {
    let (_, one) = fitted();
    let (mut publisher, other) = view();
    other.keep_near();
    for (revision, fact) in (1..).zip(facts(&taught()).into_iter().rev()) {
        publisher.apply([fact], Revision(revision));
        if revision % 7 == 0 {
            publisher.fit_near();
        }
    }
    publisher.fit_near();
    for phrase in [
        "i think i lost my card",
        "what is in my savings account",
        "a red balance",
    ] {
        assert_eq!(
            near(&one, phrase, None).near,
            near(&other, phrase, None).near,
            "{phrase}"
        );
    }
}

#[test]
fn the_first_call_that_asks_has_the_models_made_in_the_background() {
    let (mut publisher, view) = view();
    let facts = facts(&taught());
    publisher.replace(facts.len(), facts.clone(), Revision(1));
    assert!(!publisher.refresh_near(), "nobody wants them");
    let first = near(&view, "i think i lost my card", None);
    assert_eq!((first.near, first.near_status), (None, NearStatus::Fitting));
    assert!(publisher.refresh_near(), "all must be told anew");
    publisher.relearn(facts);
    while near(&view, "x", None).near_status == NearStatus::Fitting {
        assert!(!publisher.refresh_near());
        thread::yield_now();
    }
    assert_eq!(
        choice(&view, "i think i lost my card", None).as_deref(),
        Some(LOST)
    );
}

#[test]
fn a_setting_says_from_when_on_and_whether() {
    let (mut publisher, view) = fitted();
    let phrase = "i think i lost my card";
    let confidence = near(&view, phrase, None).near.unwrap().confidence;
    publisher.apply([setting("min_confidence=1")], Revision(2));
    assert!(confidence < 1.0);
    assert_eq!(near(&view, phrase, None).near_status, NearStatus::Ready);
    assert_eq!(choice(&view, phrase, None), None);
    let vectors = format!("vectors={} min_confidence=0", "a".repeat(64));
    publisher.apply([setting(&vectors)], Revision(3));
    let without = near(&view, phrase, None);
    assert_eq!(without.near_status, NearStatus::WithoutVectors);
    assert!(without.near.is_some(), "by words alone");
    publisher.apply([setting("method=off")], Revision(4));
    let off = near(&view, phrase, None);
    assert_eq!((off.near, off.near_status), (None, NearStatus::Off));
    assert!(view.0.status.borrow().near_is_current, "nothing is to be fitted");
    publisher.apply([setting("min_confidence=0")], Revision(5));
    assert!(publisher.refresh_near(), "all must be told anew");
    let mut all = facts(&taught());
    all.push(setting("min_confidence=0"));
    publisher.relearn(all);
    publisher.fit_near();
    assert_eq!(choice(&view, phrase, None).as_deref(), Some(LOST));
}

#[test]
fn a_snapshot_is_answered_from_at_once_and_nothing_is_fitted_anew_where_nothing_differs() {
    let (mut publisher, view) = fitted();
    let before = near(&view, "i think i lost my card", None);
    let mut taught = taught();
    let all = facts(&taught);
    publisher.replace(all.len(), all, Revision(2));
    let same = near(&view, "i think i lost my card", None);
    assert_eq!((same.near_status, same.near), (NearStatus::Ready, before.near));
    assert!(
        view.0.status.borrow().near_is_current,
        "its models are of all of it"
    );

    // One choice is gone, and a phrase of another kind came, while the node was away.
    taught.retain(|(_, verb)| *verb == LOST);
    let learned = "kindly freeze that plastic thing of mine";
    taught.push((learned.into(), "freeze_card"));
    let all = facts(&taught);
    publisher.replace(all.len(), all, Revision(3));
    assert!(!view.0.status.borrow().near_is_current);
    let asked = "kindly freeze that plastic thing of mine now";
    assert_eq!(choice(&view, asked, None).as_deref(), Some("freeze_card"));
    let setting = setting("min_confidence=0");
    publisher.apply([setting], Revision(4));
    for phrase in ["what is the balance of the account", "how much money is in it"] {
        assert_ne!(choice(&view, phrase, None).as_deref(), Some(BALANCE), "{phrase}");
    }
    publisher.replace(0, [], Revision(5));
    let nothing = near(&view, asked, None);
    assert_eq!((nothing.near_status, nothing.near), (NearStatus::Ready, None));
    assert!(
        view.0.status.borrow().near_is_current,
        "nothing is left to be fitted"
    );
}

/// Vectors of a phrase's first letters.
#[derive(Debug)]
struct Made(String);

impl Vectors for Made {
    fn hash(&self) -> &str {
        &self.0
    }

    fn vector(&self, phrase: &str) -> Option<Vec<f32>> {
        let letters = phrase.bytes().take(4);
        let mut vector: Vec<f32> = letters.map(|letter| f32::from(letter) / 100.0).collect();
        vector.resize(4, 0.0);
        Some(vector)
    }
}

#[test]
fn vectors_are_added_where_a_setting_names_just_these() {
    let hash = "b".repeat(64);
    let vectors: Arc<dyn Vectors> = Arc::new(Made(hash.clone()));
    let clock = ManualClock::default();
    let (mut publisher, view) = LearnedView::with_vectors(&Entropy::seeded(1), clock.shared(), Some(vectors));
    view.keep_near();
    let first = facts(&taught());
    publisher.replace(first.len(), first, Revision(1));
    publisher.fit_near();
    let phrase = "i think i lost my card";
    let by_words = near(&view, phrase, None);
    assert_eq!(by_words.near_status, NearStatus::Ready);
    let set = |hash: &str| setting(&format!("vectors={hash} min_confidence=0"));
    publisher.apply([set(&hash)], Revision(2));
    assert!(
        !view.0.status.borrow().near_is_current,
        "a model with them is to be made"
    );
    assert_eq!(near(&view, phrase, None).near_status, NearStatus::WithoutVectors);
    publisher.fit_near();
    let with = near(&view, phrase, None);
    assert_eq!(with.near_status, NearStatus::Ready);
    assert_ne!(with.near.unwrap().revision, by_words.near.unwrap().revision);
    // Told anew, as after a snapshot, the setting may come last.
    let again: Vec<_> = facts(&taught()).into_iter().chain([set(&hash)]).collect();
    publisher.replace(again.len(), again, Revision(3));
    publisher.fit_near();
    assert_eq!(near(&view, phrase, None).near_status, NearStatus::Ready);
    publisher.apply([set(&"c".repeat(64))], Revision(4));
    publisher.fit_near();
    assert_eq!(near(&view, phrase, None).near_status, NearStatus::WithoutVectors);
}
