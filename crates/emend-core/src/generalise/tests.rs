//! What holds of an index whatever is learned.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// Phrases of a few intents in as many wordings.
fn phrases() -> Vec<(String, &'static str)> {
    let intents = [
        ("card_lost", ["lost my card", "card is gone", "card was stolen"]),
        (
            "top_up",
            ["top up my account", "add money", "money onto the account"],
        ),
        (
            "rate",
            [
                "exchange rate for euros",
                "what rate do i get",
                "rate of exchange",
            ],
        ),
    ];
    let around = ["", "please ", "hello, ", "i ask again: ", "today ", "quickly "];
    let mut phrases = Vec::new();
    for (choice, wordings) in intents {
        for wording in wordings {
            phrases.extend(around.map(|before| (format!("{before}{wording}"), choice)));
        }
    }
    phrases
}

fn learned<'p>(phrases: impl IntoIterator<Item = &'p (String, &'static str)>) -> Index {
    let mut index = Index::new(Method::Lexical);
    for (phrase, choice) in phrases {
        index.learn(phrase, choice);
    }
    index
}

fn fitted() -> Index {
    let mut index = learned(&phrases());
    index.adopt(index.refit());
    index
}

fn near(index: &Index, phrase: &str) -> Option<Near> {
    index.near(phrase, &|_| false, 0.0)
}

#[test]
fn another_wording_is_answered_with_its_reasons() {
    let index = fitted();
    let near = near(&index, "somebody has stolen the card").unwrap();
    assert_eq!(&*near.choice, "card_lost");
    assert!(near.confidence > 0.5 && near.confidence < 1.0, "{near:?}");
    assert_eq!(near.because.len(), 3);
    assert!(near.because.iter().all(|reason| *reason.choice == *near.choice));
    assert!(
        near.because
            .is_sorted_by(|one, other| one.similarity >= other.similarity)
    );
    assert_eq!(index.near("somebody has stolen the card", &|_| false, 1.0), None);
}

#[test]
fn nothing_is_answered_before_the_first_fit_or_from_too_few_phrases() {
    let index = learned(&phrases());
    assert!(index.is_behind());
    assert_eq!(near(&index, "my card is lost"), None);
    let mut few = learned(&phrases()[..10]);
    few.adopt(few.refit());
    assert!(!few.is_behind());
    assert_eq!(near(&few, "my card is lost"), None);
}

#[test]
fn what_has_no_word_is_not_answered_and_a_huge_phrase_is_bounded() {
    let index = fitted();
    for phrase in ["", " ", "?!", "\u{200d}"] {
        assert_eq!(near(&index, phrase), None, "{phrase:?}");
    }
    assert!(near(&index, &"lost card ".repeat(100_000)).is_some());
}

#[test]
fn what_is_learned_and_forgotten_after_a_fit_counts_at_once() {
    let mut index = fitted();
    let before = index.revision();
    index.learn("where is the nearest atm", "atm");
    assert!(index.is_behind() && index.revision() != before);
    let answer = near(&index, "where is the nearest atm?").unwrap();
    assert_eq!(
        (&*answer.choice, &*answer.because[0].phrase),
        ("atm", "where is the nearest atm")
    );
    index.forget("where is the nearest atm", "another");
    assert_eq!(
        near(&index, "where is the nearest atm?").unwrap().choice,
        answer.choice
    );
    index.forget("where is the nearest atm", "atm");
    assert_eq!(index.revision(), before);
    assert_ne!(
        near(&index, "where is the nearest atm?").map(|near| near.choice),
        Some("atm".into())
    );
    for (phrase, choice) in phrases().iter().filter(|(_, choice)| *choice == "rate") {
        index.forget(phrase, choice);
    }
    let answer = near(&index, "what rate do i get now");
    assert_ne!(
        answer.map(|near| near.choice),
        Some("rate".into()),
        "no phrase has it any more"
    );
}

#[test]
fn what_is_replaced_answers_as_what_was_learned_one_by_one() {
    let mut index = fitted();
    let mut phrases = phrases();
    let removed = phrases.remove(3);
    phrases[5].1 = "card_eaten";
    phrases.push(("where is the nearest atm".into(), "atm"));
    let pairs = phrases.iter().map(|(phrase, choice)| (&**phrase, *choice));
    index.replace(pairs);
    assert_eq!(index.len(), phrases.len());
    let mut other = fitted();
    other.forget(&removed.0, removed.1);
    other.learn(&phrases[5].0, "card_eaten");
    other.learn("where is the nearest atm", "atm");
    assert_eq!(index.revision(), other.revision());
    for asked in [
        "where is the nearest atm?",
        "my card is gone",
        "what rate do i get",
    ] {
        assert_eq!(near(&index, asked), near(&other, asked), "{asked}");
    }
    index.replace([]);
    assert!(index.is_empty());
    assert_eq!(
        near(&index, "my card is gone"),
        None,
        "nothing is learned any more"
    );
}

#[test]
fn what_came_and_went_since_a_fit_is_not_held() {
    let mut index = fitted();
    let (bytes, answer) = (index.bytes(), near(&index, "somebody has stolen the card"));
    for number in 0..100 {
        let passing = format!("a passing phrase with the number {number}");
        index.learn(&passing, "passing");
        index.forget(&passing, "passing");
    }
    assert_eq!(index.bytes(), bytes);
    assert_eq!(near(&index, "somebody has stolen the card"), answer);
}

#[test]
fn a_phrase_that_means_something_else_now_is_a_reason_for_that_alone() {
    let mut index = fitted();
    index.learn("card is gone", "card_eaten");
    assert_eq!(index.len(), phrases().len());
    let answer = near(&index, "card is gone").unwrap();
    for reason in &answer.because {
        assert!(
            &*reason.phrase != "card is gone" || &*reason.choice == "card_eaten",
            "{answer:?}"
        );
    }
}

#[test]
fn where_there_is_too_much_the_phrases_of_the_smallest_hashes_are_fitted() {
    let index = learned(&phrases());
    let all: Vec<Learned> = index.learned.iter().map(super::learned).collect();
    let characters: usize = all.iter().map(|learned| learned.phrase.chars().count()).sum();
    let kept = |most_phrases, most_characters| {
        let limit = limit(&all, most_phrases, most_characters);
        let kept = all.iter().filter(|learned| place(&learned.phrase) <= limit);
        let lengths: Vec<usize> = kept.map(|learned| learned.phrase.chars().count()).collect();
        (lengths.len(), lengths.iter().sum::<usize>())
    };
    assert_eq!(limit(&all, all.len(), characters), u64::MAX);
    assert_eq!(kept(10, characters).0, 10);
    let (count, half) = kept(all.len(), characters / 2);
    assert!(count < all.len() && half <= characters / 2, "{count} {half}");
    assert_eq!(
        kept(count + 1, characters).0,
        count + 1,
        "one more would be too much"
    );
    assert!(kept(count + 1, characters).1 > characters / 2);
}

/// Vectors of a phrase's length and its first letter.
#[derive(Debug)]
struct Made;

impl Vectors for Made {
    fn hash(&self) -> &'static str {
        "made"
    }

    fn vector(&self, phrase: &str) -> Option<Vec<f32>> {
        let first = phrase.bytes().next()?;
        Some(vec![1.0, f32::from(first) / 100.0])
    }
}

#[test]
fn other_vectors_make_another_revision() {
    let mut index = Index::new(Method::Vectors(Arc::new(Made)));
    for (phrase, choice) in phrases() {
        index.learn(&phrase, choice);
    }
    index.adopt(index.refit());
    let answer = near(&index, "i lost the card").unwrap();
    assert_eq!(&*answer.choice, "card_lost");
    assert_ne!(answer.revision, fitted().revision());
}

/// Vectors of nothing that is learned.
#[derive(Debug)]
struct OfNothingLearned;

impl Vectors for OfNothingLearned {
    fn hash(&self) -> &'static str {
        "of nothing learned"
    }

    fn vector(&self, phrase: &str) -> Option<Vec<f32>> {
        Made.vector(phrase)
    }

    fn of_learned(&self, _: &str) -> Option<Vec<f32>> {
        None
    }
}

#[test]
fn where_nothing_learned_has_a_vector_that_of_a_phrase_says_nothing() {
    let mut index = Index::new(Method::Vectors(Arc::new(OfNothingLearned)));
    for (phrase, choice) in phrases() {
        index.learn(&phrase, choice);
    }
    index.adopt(index.refit());
    let (answer, by_words) = (
        near(&index, "i lost the card"),
        near(&fitted(), "i lost the card"),
    );
    let answered = |near: Option<Near>| near.map(|near| (near.choice, near.confidence, near.because));
    assert_eq!(answered(answer), answered(by_words));
}

/// One index for all cases: fitting is what takes time.
static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = fitted();
    index.learn("cash machine", "card_lost");
    index
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// In any order, with anything learned and forgotten in between: equal answers, byte for byte.
    #[test]
    fn equal_phrases_give_equal_answers(
        order in Just(phrases()).prop_shuffle(),
        later in 0_usize..20,
        passing in "[a-z ]{1,30}",
        asked in "(lost|card|money|rate|euros|hello|now| ){1,9}",
    ) {
        let (first, rest) = order.split_at(order.len() - later);
        let mut one = learned(first);
        one.learn(&passing, "passing");
        one.forget(&passing, "passing");
        one.adopt(one.refit());
        let mut sorted: Vec<_> = first.to_vec();
        sorted.sort();
        let mut other = learned(&sorted);
        other.adopt(other.refit());
        for (phrase, choice) in rest {
            one.learn(phrase, choice);
        }
        for (phrase, choice) in rest.iter().rev() {
            other.learn(phrase, choice);
        }
        prop_assert_eq!(one.revision(), other.revision());
        let (one, other) = (near(&one, &asked), near(&other, &asked));
        prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }

    #[test]
    fn a_prohibited_choice_is_never_answered(asked in "\\PC{0,60}", prohibited in 0_usize..3) {
        let prohibited = ["card_lost", "top_up", "rate"][prohibited];
        for phrase in [asked.as_str(), "cash machine", "lost my card", "add money rate"] {
            let answer = INDEX.near(phrase, &|choice| choice == prohibited, 0.0);
            prop_assert!(answer.is_none_or(|near| *near.choice != *prohibited));
        }
    }
}
