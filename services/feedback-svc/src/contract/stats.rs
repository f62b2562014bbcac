//! What ratings say of search, on both databases.

use emend_core::search::SearchRating::{self, Down, Up};
use feedback_store::{
    ports::{ErasureStore, QueryStore},
    records::{
        queries::{KeptCounts, Query},
        stats::{Compared, Dimension, Share, StatsFilter, Traffic},
    },
    testing::{TestStore, inserted, namespace, retraction, search_rated, stored},
};

use crate::{
    contract::queries::{acted, group, on_both, query, record},
    erasure::tests::redaction,
    testing::queries,
};

on_both! {
    ratings_are_counted_by_week_type_version_and_variant
    only_ratings_that_count_and_were_asked_for_are_counted
    queries_count_where_nobody_rated_and_what_lists_leave_out_is_said
    queries_that_found_nothing_are_a_share_of_those_whose_hits_are_known
    queries_that_found_nothing_are_counted_by_week
    words_that_stand_out_in_negative_queries_come_first
    what_was_searched_most_is_counted_with_its_clicks_by_variant
    the_worst_queries_are_those_that_most_people_rate_down_and_still_do
}

fn all() -> StatsFilter {
    StatsFilter {
        namespace: namespace(),
        from: None,
        before: None,
        query_type: None,
    }
}

/// Ten queries of each variant and text, rated by as many people: the first so many −1, the others 1.
async fn rated(database: &TestStore, variants: [(&str, &str, usize); 2]) {
    for (variant, text, negative) in variants {
        let mut queries = Vec::new();
        let mut ratings = Vec::new();
        for number in 0..10 {
            let id = format!("{variant}-{number}");
            let rating = if number < negative { Down } else { Up };
            ratings.push(search_rated([&format!("r-{id}"), "", ""], &id, rating));
            let mut query = query(&id, text);
            query.variant = variant.into();
            queries.push(query);
        }
        record(database, &group(queries, vec![])).await;
        inserted(&*database.store, &ratings, None).await;
    }
}

fn share(name: &str, ratings: u64, negative: u64, positive: u64, queries: u64) -> Share {
    Share {
        name: name.into(),
        ratings,
        negative,
        positive,
        queries,
        ..Share::default()
    }
}

async fn ratings_are_counted_by_week_type_version_and_variant(database: &TestStore) {
    // A Sunday and the Monday after it.
    database.set_clock("2026-03-29T23:00:00Z".parse().unwrap()).await;
    rated(database, [("A", "cards", 8), ("B", "cards", 1)]).await;
    database.advance(7_200).await;
    let late = search_rated(["late", "", ""], "A-9", SearchRating::Neutral);
    stored(&*database.store, &late, None).await;
    let unknown = search_rated(["other", "", ""], "never recorded", Down);
    stored(&*database.store, &unknown, None).await;

    let compared = Compared {
        by: Dimension::Variant,
        one: "A".into(),
        other: "B".into(),
    };
    let stats = queries(database).stats(&all(), Some(&compared)).await.unwrap();
    assert_eq!(stats.total, share("", 22, 10, 11, 20));
    assert_eq!(
        stats.by[&Dimension::Week],
        [
            share("2026-03-23", 20, 9, 11, 20),
            share("2026-03-30", 2, 1, 0, 0)
        ]
    );
    let (a, b) = (share("A", 11, 8, 2, 10), share("B", 10, 1, 9, 10));
    assert_eq!(
        stats.by[&Dimension::Variant],
        [a.clone(), b.clone(), share("", 1, 1, 0, 0)]
    );
    assert_eq!(
        stats.by[&Dimension::QueryType][0],
        share("SEMANTIC", 21, 9, 11, 20)
    );
    assert_eq!(stats.by[&Dimension::EmbeddingVersion][0].name, "e5");
    assert_eq!(stats.by[&Dimension::IndexVersion][0].name, "7");
    let comparison = stats.comparison.unwrap();
    assert_eq!((&comparison.one, &comparison.other), (&a, &b));
    let p_value = comparison.p_value.unwrap();
    assert!((0.003..0.005).contains(&p_value), "{p_value}");
    let (share, interval) = a.interval().unwrap();
    assert!(interval.low < share && share < interval.high && interval.low > 0.4);
}

async fn only_ratings_that_count_and_were_asked_for_are_counted(database: &TestStore) {
    database.set_clock("2026-03-29T23:00:00Z".parse().unwrap()).await;
    rated(database, [("A", "cards", 10), ("B", "cards", 10)]).await;
    let again = search_rated(["r-A-0", "", ""], "A-0", Up);
    stored(&*database.store, &again, None).await;
    let mistake = search_rated(["x", "", ""], "A-1", Down);
    stored(&*database.store, &mistake, None).await;
    database
        .store
        .retract(&retraction(mistake.id, "a slip"), None)
        .await
        .unwrap();
    let queries = queries(database);
    let total = async |filter: StatsFilter| queries.stats(&filter, None).await.unwrap().total;
    assert_eq!(total(all()).await, share("", 20, 19, 1, 20));
    let monday = Some("2026-03-30T00:00:00Z".parse().unwrap());
    let later = StatsFilter {
        from: monday,
        ..all()
    };
    assert_eq!(total(later).await, Share::default());
    let earlier = StatsFilter {
        before: monday,
        query_type: Some("SEMANTIC".into()),
        ..all()
    };
    assert_eq!(total(earlier).await.ratings, 20);
    let greetings = StatsFilter {
        query_type: Some("GREETING".into()),
        ..all()
    };
    assert_eq!(total(greetings).await, Share::default());
}

async fn queries_count_where_nobody_rated_and_what_lists_leave_out_is_said(database: &TestStore) {
    database.set_clock("2026-03-29T23:00:00Z".parse().unwrap()).await;
    rated(database, [("A", "cards", 8), ("B", "cards", 1)]).await;
    database.advance(7 * 86_400).await;
    let mut unrated = query("unrated", "cards");
    (unrated.query_type, unrated.variant) = ("GREETING".into(), "C".into());
    unrated.embedding_version = String::new();
    let mut long_ago = group(vec![unrated, query("long ago", "cards")], vec![]);
    long_ago.queries[1].0.at = Some("1969-12-28T23:59:59Z".parse().unwrap());
    record(database, &long_ago).await;
    let queries = queries(database);
    let stats = queries.stats(&all(), None).await.unwrap();
    assert_eq!(stats.total, share("", 20, 9, 11, 22));
    assert_eq!(
        stats.by[&Dimension::Week],
        [
            share("1969-12-22", 0, 0, 0, 1),
            share("2026-03-23", 20, 9, 11, 20),
            share("2026-03-30", 0, 0, 0, 1)
        ]
    );
    assert_eq!(stats.by[&Dimension::Variant][2], share("C", 0, 0, 0, 1));
    assert_eq!(
        stats.by[&Dimension::QueryType],
        [share("SEMANTIC", 20, 9, 11, 21), share("GREETING", 0, 0, 0, 1)]
    );
    assert_eq!(stats.by[&Dimension::EmbeddingVersion][1], share("", 0, 0, 0, 1));
    assert!(stats.left_out.values().all(|count| *count == 0));

    let many = "
        WITH RECURSIVE variant (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM variant WHERE n < 1100)
        INSERT INTO query_days (namespace, day, query_type, embedding_version, index_version, variant, queries,
                                zero_hits, unknown_hits)
        SELECT 'fund-admin', 20000, 'SEMANTIC', 'e5', '7', 'V' || n, 2 + n, 0, 0 FROM variant";
    database.execute(many).await.unwrap();
    let compared = Compared {
        by: Dimension::Variant,
        one: "A".into(),
        other: "V1".into(),
    };
    let stats = queries.stats(&all(), Some(&compared)).await.unwrap();
    let variants = &stats.by[&Dimension::Variant];
    assert_eq!(variants.len(), 1_000);
    // A and B, which have the ratings, then the variants with the most queries.
    assert_eq!(stats.left_out[&Dimension::Variant], 1_103 - 1_000);
    assert_eq!(variants[999], share("V103", 0, 0, 0, 105));
    assert_eq!(stats.total.queries, 22 + (1..=1_100).map(|n| 2 + n).sum::<u64>());
    assert_eq!(stats.comparison.unwrap().other, share("V1", 0, 0, 0, 3));
}

/// Queries of a variant by how many results they found.
async fn searched(database: &TestStore, variant: &str, found: &[(Option<u32>, usize)]) {
    let hits = found
        .iter()
        .flat_map(|(hits, times)| std::iter::repeat_n(*hits, *times));
    let queries = hits.enumerate().map(|(number, hit_count)| Query {
        variant: variant.into(),
        hit_count,
        ..query(&format!("{variant}-{number}"), "cards")
    });
    record(database, &group(queries.collect(), vec![])).await;
}

async fn queries_that_found_nothing_are_a_share_of_those_whose_hits_are_known(database: &TestStore) {
    searched(database, "A", &[(None, 30), (Some(0), 8), (Some(3), 2)]).await;
    searched(database, "B", &[(Some(0), 1), (Some(3), 9)]).await;
    searched(database, "C", &[(None, 5)]).await;
    let counted = |name: &str, queries, zero_hits, unknown_hits| Share {
        zero_hits,
        unknown_hits,
        ..share(name, 0, 0, 0, queries)
    };
    let compared = |other: &str| Compared {
        by: Dimension::Variant,
        one: "A".into(),
        other: other.into(),
    };
    let queries = queries(database);
    let stats = queries.stats(&all(), Some(&compared("B"))).await.unwrap();
    assert_eq!(stats.total, counted("", 55, 9, 35));
    let (a, b, c) = (
        counted("A", 40, 8, 30),
        counted("B", 10, 1, 0),
        counted("C", 5, 0, 5),
    );
    assert_eq!(stats.by[&Dimension::Variant], [a.clone(), b, c.clone()]);
    let (share, interval) = a.zero_hit_interval().unwrap();
    assert!((share - 0.8).abs() < 1e-9 && interval.low < share && share < interval.high);
    assert_eq!(c.zero_hit_interval(), None, "of none it is known");
    let comparison = stats.comparison.unwrap();
    let p_value = comparison.zero_hit_p_value.unwrap();
    assert!((0.001..0.003).contains(&p_value), "{p_value}");
    assert_eq!(comparison.p_value, None, "nobody rated");
    let stats = queries.stats(&all(), Some(&compared("C"))).await.unwrap();
    assert_eq!(stats.comparison.unwrap().zero_hit_p_value, None);

    // Days that lose their names keep what was counted.
    let kept = KeptCounts {
        rows: 1,
        ..KeptCounts::SET
    };
    let store = database.sql();
    store.prune_counts(kept).await.unwrap();
    let stats = queries.stats(&all(), None).await.unwrap();
    assert_eq!(stats.total, counted("", 55, 9, 35));
    assert_eq!(stats.by[&Dimension::Variant], [a, counted("", 15, 1, 5)]);
    assert_eq!(database.findings().await, []);
}

async fn queries_that_found_nothing_are_counted_by_week(database: &TestStore) {
    // A Sunday and the Monday after it.
    database.set_clock("2026-03-29T23:00:00Z".parse().unwrap()).await;
    searched(database, "A", &[(None, 2), (Some(0), 3), (Some(3), 1)]).await;
    database.advance(7_200).await;
    searched(database, "B", &[(Some(0), 1), (Some(3), 9)]).await;
    let stats = queries(database).stats(&all(), None).await.unwrap();
    let counted = |name: &str, queries, zero_hits, unknown_hits| Share {
        zero_hits,
        unknown_hits,
        ..share(name, 0, 0, 0, queries)
    };
    let weeks = &stats.by[&Dimension::Week];
    assert_eq!(
        *weeks,
        [counted("2026-03-23", 6, 3, 2), counted("2026-03-30", 10, 1, 0)]
    );
    let shares = weeks
        .iter()
        .map(|week| week.zero_hit_interval().map(|(share, _)| share));
    assert_eq!(shares.collect::<Vec<_>>(), [Some(0.75), Some(0.1)]);
}

async fn words_that_stand_out_in_negative_queries_come_first(database: &TestStore) {
    rated(
        database,
        [
            ("A", "cards that bounce リーダー", 8),
            ("B", "cards that draw", 1),
        ],
    )
    .await;
    // A second person who rates a query so does not make it two.
    let again = search_rated(["another", "", ""], "A-0", Down);
    stored(&*database.store, &again, None).await;
    let found = queries(database).negative_terms(&all(), 3).await.unwrap();
    assert_eq!((found.negative_queries, found.queries), (9, 20));
    let terms: Vec<_> = found
        .terms
        .iter()
        .map(|found| {
            (
                found.counts.term.as_str(),
                found.counts.written.as_str(),
                found.counts.negative,
                found.counts.all,
            )
        })
        .collect();
    assert_eq!(
        terms,
        [
            ("bounce", "bounce", 8, 10),
            ("リダ", "リーダー", 8, 10),
            ("draw", "draw", 1, 10)
        ]
    );
    assert!(found.terms[1].score > found.terms[2].score);
}

async fn what_was_searched_most_is_counted_with_its_clicks_by_variant(database: &TestStore) {
    database.set_clock("2026-03-29T23:00:00Z".parse().unwrap()).await;
    let mut searches = Vec::new();
    let mut clicks = Vec::new();
    for (number, (text, variant, hits, action)) in [
        ("Draw  cards", "A", Some(3), "click"),
        ("ｄｒａｗ cards", "A", Some(3), "item_click"),
        ("draw cards", "B", None, "impression"),
        ("bounce", "A", Some(0), ""),
        ("bounce", "B", Some(0), ""),
        ("ward", "", Some(1), "click"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut search = query(&format!("q-{number}"), text);
        (search.variant, search.hit_count) = (variant.into(), hits);
        if !action.is_empty() {
            // Two clicks are one search with a click.
            clicks.extend([1, 2].map(|position| acted(&format!("q-{number}"), "card-1", action, position)));
        }
        searches.push(search);
    }
    record(database, &group(searches, clicks)).await;
    let queries = queries(database);
    let recent = queries.recent(&all(), 2).await.unwrap();
    let traffic = |searches, clicked, zero_hits, unknown_hits| Traffic {
        searches,
        clicked,
        zero_hits,
        unknown_hits,
    };
    assert_eq!(recent.all, traffic(6, 3, 2, 1));
    let variants = [
        ("A".to_owned(), traffic(3, 2, 1, 0)),
        ("B".to_owned(), traffic(2, 0, 1, 1)),
        (String::new(), traffic(1, 1, 0, 0)),
    ];
    assert_eq!(recent.variants, variants);
    assert_eq!(recent.left_out_queries, 1);
    let [draw, bounce] = &recent.top[..] else {
        panic!("{recent:?}");
    };
    assert_eq!(
        (draw.text.as_str(), draw.all),
        ("draw cards", traffic(3, 2, 0, 1))
    );
    let variants = [
        ("A".to_owned(), traffic(2, 2, 0, 0)),
        ("B".to_owned(), traffic(1, 0, 0, 1)),
    ];
    assert_eq!(draw.variants, variants);
    assert_eq!(
        (bounce.text.as_str(), bounce.all),
        ("bounce", traffic(2, 0, 2, 0))
    );
    assert_eq!(bounce.all.zero_hit_share(), Some(1.0));
    let (share, interval) = draw.all.click_through().unwrap();
    assert!(interval.low < share && share < interval.high);

    let monday = Some("2026-03-30T00:00:00Z".parse().unwrap());
    for (filter, expected) in [
        (
            StatsFilter {
                before: monday,
                ..all()
            },
            6,
        ),
        (
            StatsFilter {
                from: monday,
                ..all()
            },
            0,
        ),
        (
            StatsFilter {
                query_type: Some("GREETING".into()),
                ..all()
            },
            0,
        ),
    ] {
        assert_eq!(queries.recent(&filter, 2).await.unwrap().all.searches, expected);
    }
}

async fn the_worst_queries_are_those_that_most_people_rate_down_and_still_do(database: &TestStore) {
    database.set_clock("2026-03-29T23:00:00Z".parse().unwrap()).await;
    let asked = (0..120).map(|number| query(&format!("q{number}"), "Cards  ＬＯＳＴ"));
    let others = [
        query("x", "returns"),
        query("y", "cards lost"),
        query("z", "shoes"),
    ];
    record(database, &group(asked.chain(others).collect(), vec![])).await;
    let down = |who: &str, query: &str| search_rated([who, "", ""], query, Down);
    // Three people rate one query down, long before more than a page of other ratings.
    let early = [
        down("ann", "x"),
        down("bob", "x"),
        down("eve", "x"),
        down("eve", "unknown"),
    ];
    inserted(&*database.store, &early, None).await;
    database.advance(60).await;
    let monday = "2026-03-29T23:01:00Z".parse().unwrap();
    // One rates another, in several wordings, again and again; a second one agrees.
    let mut many: Vec<_> = (0..120)
        .map(|number| down("ann", &format!("q{number}")))
        .collect();
    many.push(down("bob", "y"));
    inserted(&*database.store, &many, None).await;
    // What was taken back, replaced or dealt with is not open.
    let slip = down("bob", "z");
    stored(&*database.store, &slip, None).await;
    stored(&*database.store, &down("tom", "q7"), None).await;
    stored(&*database.store, &search_rated(["tom", "", ""], "q7", Up), None).await;
    database
        .store
        .retract(&retraction(slip.id, "a slip"), None)
        .await
        .unwrap();

    let queries = queries(database);
    let worst = async |filter: &StatsFilter, limit: u32| {
        let (worst, all) = queries.worst_queries(filter, limit).await.unwrap();
        let named: Vec<_> = worst
            .into_iter()
            .map(|query| (query.people, query.text, query.query_id, query.query_type))
            .collect();
        (named, all)
    };
    let named = |people, text: &str, id: &str, query_type: &str| {
        (people, text.to_owned(), id.to_owned(), query_type.to_owned())
    };
    let (returns, cards) = (
        named(3, "returns", "x", "SEMANTIC"),
        named(2, "cards lost", "y", "SEMANTIC"),
    );
    let unknown = named(1, "", "unknown", "");
    assert_eq!(
        worst(&all(), 10).await,
        (vec![returns.clone(), cards.clone(), unknown], 3)
    );
    assert_eq!(worst(&all(), 1).await, (vec![returns.clone()], 3));
    let later = StatsFilter {
        from: Some(monday),
        ..all()
    };
    assert_eq!(worst(&later, 10).await, (vec![cards.clone()], 1));
    let earlier = StatsFilter {
        before: Some(monday),
        query_type: Some("SEMANTIC".into()),
        ..all()
    };
    assert_eq!(worst(&earlier, 10).await, (vec![returns], 1));
    // Erased with its text, and left out with its rating.
    database
        .execute("UPDATE search_ratings SET processed = 1 WHERE query_id = 'unknown'")
        .await
        .unwrap();
    let redacted = early.iter().map(|rating| rating.id);
    for id in redacted {
        database.sql().redact(&[redaction(id)]).await.unwrap();
    }
    assert_eq!(worst(&all(), 10).await, (vec![cards], 1));
}
