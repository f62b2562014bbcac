//! What a node makes of a query's text: with synonyms, and by which tuning it searches.

use std::{collections::BTreeMap, sync::mpsc};

use emend_core::search::{ExpandMode, ExpandedText, Tuning};
use proptest::prelude::*;

use super::*;

const EQUIVALENT: Option<Relation> = Some(Relation::Equivalent);

/// A term that stands for another one, or no longer; both as people write them.
fn stands_for(term: &str, representative: &str, relation: Option<Relation>, revision: i64) -> Fact<'static> {
    let key = |text: &str| -> &'static str { NormalizedKey::parse(text).unwrap().as_str().to_owned().leak() };
    let value = relation.map(|relation| {
        ResourceValue::new(
            term,
            Learned::Synonym(Synonym {
                relation,
                representative: representative.to_owned(),
            }),
        )
    });
    Fact {
        namespace: "fund-admin",
        kind: Kind::Synonym,
        key: key(term),
        qualifier: key(representative),
        user_id: "",
        revision: Revision(revision),
        value: value.map(Cow::Owned),
    }
}

fn expand(view: &LearnedView, text: &str) -> ExpandedText {
    view.expand(&namespace(), text, ExpandMode::Keyword, None)
}

fn rendered(view: &LearnedView, text: &str) -> String {
    expand(view, text).render()
}

/// Publishes that nothing changed until no term is new to the large matchers, at most 30 seconds.
fn settle(publisher: &mut Publisher, from: i64) {
    for revision in from..from + 30_000 {
        publisher.advance(Revision(revision));
        if publisher.new_terms() == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("the large matcher never came");
}

#[test]
fn a_query_is_expanded_with_the_next_state() {
    let (mut publisher, view) = view();
    assert_eq!(rendered(&view, "フォローを破壊"), "フォローを破壊");
    publisher.apply(
        [
            stands_for("フォロー", "フォロワー", EQUIVALENT, 1),
            stands_for("フォロワ", "フォロワー", EQUIVALENT, 1),
            stands_for("ボード", "フィールド", EQUIVALENT, 1),
            stands_for("場", "フィールド", EQUIVALENT, 1),
        ],
        Revision(1),
    );
    assert_eq!(rendered(&view, "フォロー"), "フォロワー OR フォロー OR フォロワ");
    assert_eq!(
        rendered(&view, "登場するキーボード"),
        "登場するキーボード",
        "no term stands there"
    );
    let expanded = expand(&view, "場のﾌｫﾛｰ");
    assert_eq!(
        expanded.render(),
        "(フィールド OR 場 OR ボード) の (フォロワー OR ﾌｫﾛｰ OR フォロワ)"
    );
    assert_eq!(&expanded.original[expanded.groups[1].span.clone()], "ﾌｫﾛｰ");
    let embedded = view.expand(&namespace(), "場のﾌｫﾛｰ", ExpandMode::Embedding, None);
    assert_eq!(embedded.render(), "場のﾌｫﾛｰ フィールド フォロワー");

    publisher.apply([stands_for("場", "フィールド", None, 2)], Revision(2));
    assert_eq!(rendered(&view, "場"), "場");
    assert_eq!(rendered(&view, "ボード"), "フィールド OR ボード");
    let other = Namespace::parse("other").unwrap();
    assert!(
        view.expand(&other, "ボード", ExpandMode::Keyword, None)
            .is_unchanged()
    );
}

#[test]
fn a_representative_is_never_lost_where_the_text_writes_it_otherwise() {
    let (mut publisher, view) = view();
    publisher.apply(
        [
            stands_for("フォロー", "フォロワー", EQUIVALENT, 1),
            stands_for("アイフォン", "iPhone", EQUIVALENT, 1),
        ],
        Revision(1),
    );
    assert_eq!(rendered(&view, "ﾌｫﾛﾜｰ"), "フォロワー OR ﾌｫﾛﾜｰ OR フォロー");
    assert_eq!(
        rendered(&view, "ＩＰＨＯＮＥのケース"),
        "(iPhone OR ＩＰＨＯＮＥ OR アイフォン) のケース"
    );
    assert_eq!(rendered(&view, "iPhone"), "iPhone OR アイフォン");
}

#[test]
fn a_term_of_kanji_or_hiragana_is_found_only_as_a_word() {
    let (mut publisher, view) = view();
    publisher.apply(
        [
            stands_for("うに", "海胆", EQUIVALENT, 1),
            stands_for("都", "京都", EQUIVALENT, 1),
        ],
        Revision(1),
    );
    assert_eq!(rendered(&view, "東京都ではどのように"), "東京都ではどのように");
    assert_eq!(rendered(&view, "京都のうに"), "(京都 OR 都) の (海胆 OR うに)");
}

#[test]
fn nobody_is_led_to_a_misspelling_or_against_one_way() {
    let (mut publisher, view) = view();
    publisher.replace(
        3,
        [
            stands_for("felder", "field", Some(Relation::OneWay), 1),
            stands_for("feild", "field", Some(Relation::Typo), 1),
            stands_for("board", "field", EQUIVALENT, 1),
            stands_for("boardd", "lawn", Some(Relation::Typo), 1),
        ],
        Revision(1),
    );
    assert_eq!(rendered(&view, "Feild"), "field OR Feild OR board");
    assert_eq!(rendered(&view, "felder"), "field OR felder OR board");
    assert_eq!(rendered(&view, "field"), "field OR board");
    assert_eq!(
        rendered(&view, "lawn"),
        "lawn",
        "only a misspelling stands for it"
    );
}

#[test]
fn a_users_own_synonyms_expand_only_that_users_queries() {
    let (mut publisher, view) = view();
    let own = |term, representative, revision| Fact {
        user_id: "jane",
        ..stands_for(term, representative, EQUIVALENT, revision)
    };
    publisher.apply(
        [
            stands_for("field", "board", EQUIVALENT, 1),
            own("field", "area", 1),
            own("field of play", "board", 1),
        ],
        Revision(1),
    );
    let jane = UserId::parse("jane").unwrap();
    let rendered = |text, mode, user| view.expand(&namespace(), text, mode, user).render();
    let (all, hers) = (None, Some(&jane));
    assert_eq!(rendered("field", ExpandMode::Keyword, all), "board OR field");
    assert_eq!(
        rendered("field", ExpandMode::Keyword, hers),
        "area OR board OR field OR \"field of play\""
    );
    assert_eq!(rendered("field", ExpandMode::Embedding, hers), "field area");
    // The longer term is hers alone, and hides the shorter one only from her.
    assert_eq!(
        rendered("field of play", ExpandMode::Keyword, all),
        "(board OR field) of play"
    );
    assert_eq!(
        rendered("field of play", ExpandMode::Keyword, hers),
        "board OR \"field of play\" OR field"
    );
}

#[test]
fn new_terms_are_found_at_once_while_a_large_matcher_is_built() {
    let (mut publisher, view) = view();
    let term = |id: usize| format!("term {id}x");
    let fact =
        |id: usize, relation, revision| stands_for(&term(id), &format!("set {}", id % 7), relation, revision);
    publisher.replace(5_000, (0..5_000).map(|id| fact(id, EQUIVALENT, 1)), Revision(1));
    assert_eq!(publisher.new_terms(), 0);
    for round in 0..4_i64 {
        let from = 5_000 + usize::try_from(round).unwrap() * 400;
        let added = (from..from + 400).map(|id| fact(id, EQUIVALENT, round + 2));
        let gone = (from - 5_000..from - 4_900).map(|id| fact(id, None, round + 2));
        publisher.apply(added.chain(gone), Revision(round + 2));
        // Other updates do not wait for the matcher, either.
        publisher.apply([fact_of_verb(round)], Revision(round + 2));
        assert_eq!(
            resolved(&view, "verb", None).found.unwrap().value,
            format!("choice_{round}")
        );
        for id in [from, from + 399, 4_999] {
            assert_eq!(expand(&view, &term(id)).groups.len(), 1, "{id} is found");
        }
        assert!(
            expand(&view, &term(from - 5_000)).is_unchanged(),
            "that one is gone"
        );
    }
    assert!(publisher.new_terms() > 0);
    settle(&mut publisher, 10);
    for id in (500..6_600).step_by(61) {
        let gone = (0..100).any(|place| id == 400 + place)
            || (800..900).contains(&id)
            || (1_200..1_300).contains(&id);
        assert_eq!(expand(&view, &term(id)).is_unchanged(), gone, "{id}");
    }
}

fn fact_of_verb(round: i64) -> Fact<'static> {
    let choice: &'static str = format!("choice_{round}").leak();
    fact("verb", Kind::InvocationPhrase, "", choice, round + 2)
}

#[test]
fn ninety_thousand_terms_are_found_and_kept_when_the_state_is_replaced() {
    let (mut publisher, view) = view();
    let facts =
        || (0..90_000).map(|id| stands_for(&format!("語{id}番"), &format!("組{}", id % 900), EQUIVALENT, 1));
    publisher.replace(90_000, facts(), Revision(1));
    let named: Vec<_> = (0..90_000).step_by(977).map(|id| format!("語{id}番")).collect();
    let text = named.join("と、");
    let found = expand(&view, &text);
    assert_eq!(found.groups.len(), 93);
    for group in &found.groups {
        assert_eq!(group.alternatives.len(), 101);
    }
    let before = publisher.large_matcher("fund-admin").unwrap();
    publisher.replace(90_000, facts(), Revision(2));
    assert!(
        Arc::ptr_eq(&before, &publisher.large_matcher("fund-admin").unwrap()),
        "they are the same terms"
    );
    assert_eq!(expand(&view, &text), found);
}

#[test]
fn a_large_matcher_is_built_in_the_background_and_taken_only_by_what_may_be_slow() {
    let (mut publisher, _view) = view();
    let fact = |id: usize| stands_for(&format!("term {id}x"), &format!("set {}", id % 7), EQUIVALENT, 1);
    publisher.replace(1_000, (0..1_000).map(fact), Revision(1));
    assert!(!publisher.is_slow(0));
    assert!(!publisher.is_slow(200), "none of them is known to be a term");
    publisher.apply([fact(1_000)], Revision(2));
    assert!(publisher.is_slow(200), "they may be terms enough for a matcher");
    publisher.apply((1_001..1_200).map(fact), Revision(3));
    let (builder, _) = publisher.builder().unwrap();
    assert_eq!(builder.name(), Some("emend-terms"));
    assert_ne!(builder.id(), thread::current().id());
    for _ in 0..30_000 {
        if publisher.builder().is_some_and(|(_, is_ready)| is_ready) {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    assert!(publisher.is_slow(0), "it takes the matcher");
    // Decided before the matcher was ready.
    let new = publisher.new_terms();
    publisher.leave_large(true);
    publisher.advance(Revision(4));
    publisher.apply([fact(1_000)], Revision(5));
    assert_eq!(publisher.new_terms(), new, "it is left");
    assert!(publisher.is_slow(0));
    publisher.leave_large(false);
    publisher.advance(Revision(6));
    assert_eq!((publisher.new_terms(), publisher.is_slow(0)), (0, false));
}

#[test]
fn what_a_reader_held_last_is_freed_by_the_publisher() {
    let (mut publisher, view) = view();
    let facts = |prefix: &'static str| {
        (0..21_000).map(move |id| {
            stands_for(
                &format!("{prefix} {id}x"),
                &format!("set {}", id % 500),
                EQUIVALENT,
                1,
            )
        })
    };
    publisher.replace(21_000, facts("one"), Revision(1));
    let before = Arc::downgrade(&publisher.large_matcher("fund-admin").unwrap());
    let (holds, held) = mpsc::channel();
    let (replaced, is_replaced) = mpsc::channel();
    thread::scope(|scope| {
        let (view, before) = (&view, &before);
        let reader = scope.spawn(move || {
            let reading = view.read();
            let found = |reading: &Reading<'_>| {
                reading
                    .expand(&namespace(), "one 7x", ExpandMode::Keyword, None)
                    .groups
                    .len()
            };
            assert_eq!(found(&reading), 1);
            holds.send(()).unwrap();
            is_replaced.recv().unwrap();
            assert_eq!((reading.revision(), found(&reading)), (Revision(1), 1));
            drop(reading);
            assert!(
                before.upgrade().is_some(),
                "dropping the last reading frees nothing"
            );
        });
        held.recv().unwrap();
        publisher.replace(21_000, facts("other"), Revision(2));
        assert!(!publisher.is_slow(0), "what is held is not freed");
        replaced.send(()).unwrap();
        reader.join().unwrap();
    });
    assert!(publisher.is_slow(0), "it frees the matcher");
    publisher.leave_large(true);
    publisher.advance(Revision(2));
    assert!(before.upgrade().is_some(), "it is left");
    publisher.leave_large(false);
    publisher.advance(Revision(2));
    assert!(before.upgrade().is_none());
    assert!(!publisher.is_slow(0));
}

#[test]
fn a_reading_expands_as_of_its_own_revision() {
    let (mut publisher, view) = view();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !ended.load(Ordering::Relaxed) || seen == 0 {
                let reading = view.read();
                let revision = reading.revision();
                let expanded = reading.expand(&namespace(), "term", ExpandMode::Embedding, None);
                let expected = match revision {
                    Revision(0) => "term".to_owned(),
                    Revision(number) if number % 3 == 0 => "term".to_owned(),
                    Revision(number) => format!("term r{number}"),
                };
                assert_eq!(expanded.render(), expected);
                seen = revision.0;
            }
        });
        for revision in 1..400 {
            let is_gone = revision % 3 == 0;
            let mut facts: Vec<Fact<'_>> = Vec::new();
            if revision > 1 {
                facts.push(stands_for("term", &format!("r{}", revision - 1), None, revision));
            }
            if !is_gone {
                facts.push(stands_for("term", &format!("r{revision}"), EQUIVALENT, revision));
            }
            publisher.apply(facts, Revision(revision));
        }
        ended.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_changed_view_expands_as_a_new_one_does(
        steps in proptest::collection::vec(
            proptest::collection::vec((0usize..6, 0usize..6, 0usize..4, any::<bool>()), 1..6),
            1..12,
        ),
    ) {
        const TERMS: [&str; 6] = ["場", "盤面", "ボード", "キーボード", "set up", "set"];
        const TEXT: &str = "盤面と場でキーボード、ﾎﾞｰﾄﾞをSet  Up upset set";
        let (mut publisher, changed) = view();
        let mut model: BTreeMap<(usize, usize, bool), Relation> = BTreeMap::new();
        let to_fact = |(term, other, own): (usize, usize, bool), relation, revision| Fact {
            user_id: if own { "jane" } else { "" },
            ..stands_for(TERMS[term], TERMS[other], relation, revision)
        };
        let jane = UserId::parse("jane").unwrap();
        for (revision, step) in (1..).zip(steps) {
            let mut facts = Vec::new();
            for (term, other, relation, own) in step {
                if term == other {
                    continue;
                }
                let key = (term, other, own);
                let relation = Relation::ALL.get(relation).copied();
                match relation {
                    Some(relation) => model.insert(key, relation),
                    None => model.remove(&key),
                };
                facts.push(to_fact(key, relation, revision));
            }
            publisher.apply(facts, Revision(revision));
            let (mut other, new) = view();
            let all = model.iter().map(|(key, relation)| to_fact(*key, Some(*relation), 1));
            other.replace(model.len(), all, Revision(1));
            for user in [None, Some(&jane)] {
                for mode in [ExpandMode::Keyword, ExpandMode::Embedding] {
                    prop_assert_eq!(
                        changed.expand(&namespace(), TEXT, mode, user),
                        new.expand(&namespace(), TEXT, mode, user)
                    );
                }
            }
        }
    }
}

#[test]
fn a_query_type_has_its_tuning_or_the_defaults() {
    let (mut publisher, view) = view();
    let tuned = fact("HYBRID", Kind::SearchTuning, "", "top_k=20 min_score=0.3", 1);
    let gone = Fact {
        value: None,
        ..tuned.clone()
    };
    publisher.apply(
        [tuned, fact("hybrid", Kind::EntityAlias, "", "e", 1)],
        Revision(1),
    );
    let top_k = |query_type| view.tuning(&namespace(), query_type).top_k();
    assert_eq!(
        (
            top_k("HYBRID"),
            top_k(" HYBRID"),
            top_k("hybrid"),
            top_k("SEMANTIC")
        ),
        (20, 20, 10, 10)
    );
    publisher.apply([gone], Revision(2));
    assert_eq!(*view.tuning(&namespace(), "HYBRID"), Tuning::default());
}
