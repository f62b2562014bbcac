//! What has become of feedback: whoever reads it is told what others have said and decided since.

use emend_proto::{
    common::v1::{OutcomeState, Standing},
    feedback::v1::Feedback,
};
use emend_tests::{
    both_databases,
    harness::{
        self, NAMESPACE, eventually, says,
        says::{decides, rates},
        verb,
        wait::holds,
    },
};
use tokio::time::Instant;

const PHRASE: &str = "set up a csa";

/// What a reader is told of a feedback now, once learning-svc has answered in time.
async fn present(feedback: &harness::Feedback, of: &Feedback) -> Standing {
    eventually("learning-svc says what has become of it", || async {
        let read = feedback.get(NAMESPACE, &of.feedback_id).await;
        assert_eq!(
            read.outcome, of.outcome,
            "it stays what it was when it was evaluated"
        );
        holds(read.present.is_some(), || format!("{read:?}"))?;
        Ok(read.present.unwrap())
    })
    .await
}

/// The same in short.
async fn now(feedback: &harness::Feedback, of: &Feedback) -> (OutcomeState, String, i64) {
    let standing = present(feedback, of).await;
    (standing.state(), standing.reason, standing.revision)
}

fn is(state: OutcomeState, reason: &str, revision: i64) -> (OutcomeState, String, i64) {
    (state, reason.to_owned(), revision)
}

use OutcomeState::{Applied, NoEffect, Pending, Withdrawn};

both_databases! {
    async fn the_first_voter_is_told_that_the_value_applies_and_that_it_applies_no_longer(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let mut votes = Vec::new();
        for reporter in ["ana", "ben", "chloe"] {
            votes.push(feedback.learn(says(reporter, verb(PHRASE, "create_csa"))).await);
        }
        let outcome = votes[0].outcome.as_ref().unwrap();
        assert_eq!((outcome.state(), outcome.confirmations_needed), (Pending, 2));
        let standing = present(&feedback, &votes[0]).await;
        assert_eq!((standing.state(), standing.reporter_count), (Applied, 3));
        assert_eq!((standing.message.as_str(), standing.revision), ("It applies.", learning.head().await));

        let third = feedback.retract(&votes[2]).await;
        assert_eq!(third.outcome.as_ref().unwrap().state(), Withdrawn);
        let standing = present(&feedback, &votes[0]).await;
        assert_eq!((standing.state(), standing.revision), (Withdrawn, 0));
        assert_eq!(standing.message, "It applies no longer: too many of its supporters took it back.");
        assert_eq!(now(&feedback, &third).await, is(NoEffect, "RETRACTED", 0));
        let second = feedback.retract(&votes[1]).await;
        let listed = feedback.list(feedback.list_request(NAMESPACE)).await;
        let listed: Vec<_> = listed.iter().map(|of| of.present.as_ref().map(Standing::state)).collect();
        assert_eq!(listed, [Some(NoEffect), Some(NoEffect), Some(Withdrawn)], "one call for all of a page");

        // Others bring it back; what was retracted stays without effect.
        feedback.learn(says("dan", verb(PHRASE, "create_csa"))).await;
        let pending = present(&feedback, &votes[0]).await;
        assert_eq!((pending.state(), pending.confirmations_needed), (Pending, 1));
        assert_eq!(pending.message, "It needs 1 more confirmation.");
        feedback.learn(says("eve", verb(PHRASE, "create_csa"))).await;
        assert_eq!(now(&feedback, &votes[0]).await, is(Applied, "", learning.head().await));
        assert_eq!(now(&feedback, &second).await, is(NoEffect, "RETRACTED", 0));
    }

    async fn a_superseded_decision_says_so_until_the_newer_one_is_taken_back(system) {
        let feedback = system.feedback();
        let block = feedback.learn(decides("ana", "example.org", "block")).await;
        let trust = feedback.learn(decides("ben", "example.org", "academic")).await;
        assert_eq!(block.outcome.as_ref().unwrap().state(), Applied);
        let standing = present(&feedback, &block).await;
        assert_eq!((standing.state(), standing.message.as_str()), (NoEffect, "Without effect: a newer ruling is in force."));
        assert_eq!(now(&feedback, &trust).await, is(Applied, "", 2));
        let trust = feedback.retract(&trust).await;
        assert_eq!(now(&feedback, &block).await, is(Applied, "", 3));
        assert_eq!(now(&feedback, &trust).await, is(NoEffect, "RETRACTED", 0));
    }

    async fn a_rating_says_that_a_newer_one_by_the_same_reporter_counts_instead(system) {
        let feedback = system.feedback();
        let first = feedback.learn(rates("ana", "q-1", "GOOD")).await;
        assert_eq!(now(&feedback, &first).await, is(Applied, "", 1));
        let second = feedback.learn(rates("ana", "q-1", "BAD")).await;
        assert_eq!(now(&feedback, &first).await, is(NoEffect, "REPLACED", 0));
        assert_eq!(now(&feedback, &second).await, is(Applied, "", 2));
        feedback.retract(&second).await;
        assert_eq!(now(&feedback, &first).await, is(Applied, "", 3));
    }

    async fn a_read_does_without_learning_svc(system) {
        let feedback = system.feedback();
        let stored = feedback.learn(says("ana", verb(PHRASE, "create_csa"))).await;
        system.stop_learning().await;
        let began = Instant::now();
        let read = feedback.get(NAMESPACE, &stored.feedback_id).await;
        let listed = feedback.list(feedback.list_request(NAMESPACE)).await;
        // A second for each at most; the rest is room for a machine that is busy.
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
        assert_eq!([&read.present, &listed[0].present], [&None; 2]);
        assert_eq!((&read.outcome, &listed[0].outcome), (&stored.outcome, &stored.outcome));
        system.start_learning().await;
        assert_eq!(now(&system.feedback(), &stored).await, is(Pending, "BELOW_THRESHOLD", 0));
    }
}
