//! The review queue in figures, and searched.

use emend_base::Clock as _;
use emend_core::{Kind, Namespace, Policy, Revision, RiskLevel, Status};
use emend_serve::auth::Access;
use learning_store::{
    contests::{CandidateFilter, CandidateOrder, Listing},
    queue::{DayFigures, day},
};

use crate::{
    contests::candidates::{QueueQuery, SearchText},
    log::revert::Revert,
    tests::{
        on_both_databases,
        policies::set as set_policy,
        world::{World, candidate_id, head, namespace, one, operator, rejection, review},
    },
};

on_both_databases!(
    what_happened_is_counted_by_day_and_what_waits_by_kind,
    a_text_is_found_in_keys_and_values_page_by_page,
);

async fn what_happened_is_counted_by_day_and_what_waits_by_kind(world: &World) {
    let app = world.instance().await;
    let taken_back = world.phrase("ann", "q", "v");
    one(&app, &taken_back).await;
    one(&app, &world.retraction(&taken_back)).await;
    for reporter in ["ann", "bob", "eve"] {
        one(&app, &world.phrase(reporter, "p", "v")).await;
    }
    review(&app, candidate_id("p", "v"), None, rejection())
        .await
        .unwrap();
    let stats = app.queue.stats(&namespace(), 1).await.unwrap();
    let [today] = &stats.days[..] else {
        panic!("one day and kind: {stats:?}");
    };
    assert_eq!(
        (today.day, today.kind),
        (day(world.clock.now()), Kind::InvocationPhrase)
    );
    let figures = DayFigures {
        received: 4,
        applied: 1,
        rejected: 1,
        withdrawn: 1,
    };
    assert_eq!(today.figures, figures);
    assert_eq!(stats.waiting, []);
    for reporter in ["ann", "bob", "eve"] {
        one(&app, &world.phrase(reporter, "s", "v")).await;
    }
    let revert = Revert {
        namespace: namespace(),
        revision: Revision(head(&app).await),
        reason: "not so".to_owned(),
        actor: operator(),
    };
    app.log.revert(&revert, &Access::open()).await.unwrap();
    let stats = app.queue.stats(&namespace(), 1).await.unwrap();
    let withdrawn = stats.days[0].figures.withdrawn;
    assert_eq!(withdrawn, 2, "a revert takes away what was applied");
    let high = |policy: &mut Policy| policy.votes.risk = RiskLevel::High;
    set_policy(&app, Kind::InvocationPhrase, high).await;
    one(&app, &world.phrase("ann", "r", "v")).await;
    let stats = app.queue.stats(&namespace(), 1).await.unwrap();
    let waiting: Vec<_> = stats
        .waiting
        .iter()
        .map(|(kind, count, _)| (*kind, *count))
        .collect();
    assert_eq!(waiting, [(Kind::InvocationPhrase, 2)]);
    assert_eq!(stats.frozen, []);
    for kind in [Kind::Synonym, Kind::InvocationPhrase, Kind::EntityAlias] {
        set_policy(&app, kind, |policy: &mut Policy| policy.frozen = true).await;
    }
    set_policy(&app, Kind::InvocationPhrase, |policy: &mut Policy| {
        policy.frozen = false;
    })
    .await;
    let frozen = app.queue.stats(&namespace(), 1).await.unwrap().frozen;
    assert_eq!(frozen, [Kind::EntityAlias, Kind::Synonym]);
    let elsewhere = Namespace::parse("elsewhere").unwrap();
    assert_eq!(app.queue.stats(&elsewhere, 1).await.unwrap().frozen, []);
}

async fn a_text_is_found_in_keys_and_values_page_by_page(world: &World) {
    let app = world.instance().await;
    for number in 0..5 {
        one(
            &app,
            &world.phrase("ann", &format!("Set up number {number}"), "create_csa"),
        )
        .await;
        one(
            &app,
            &world.phrase("ann", &format!("close {number}"), "settle_Up"),
        )
        .await;
        one(&app, &world.phrase("ann", &format!("other {number}"), "nothing")).await;
    }
    let query = |text: &str| QueueQuery {
        filter: CandidateFilter {
            reviewed: learning_store::contests::Involvement::default(),
            namespace: namespace(),
            kinds: Vec::new(),
            statuses: vec![Status::Pending],
            keys: Vec::new(),
            user: None,
        },
        listing: Listing {
            order: CandidateOrder::OldestFirst,
            ..Listing::default()
        },
        text: Some(SearchText::new(text)),
    };
    for (text, expected) in [
        ("UP", 10),
        ("set UP", 5),
        ("settle_u", 5),
        ("nobody said this", 0),
    ] {
        let (mut found, mut after, mut searched) = (Vec::new(), None, 0);
        loop {
            let page = app.contests.queue(&query(text), after, 3).await.unwrap();
            searched += page.searched;
            found.extend(page.candidates.into_iter().map(|record| record.candidate.id));
            after = page.rest;
            if after.is_none() {
                break;
            }
        }
        let length = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!((length, found.len()), (expected, expected), "{text}");
        assert_eq!(searched, 15, "each is looked at once: {text}");
    }
}
