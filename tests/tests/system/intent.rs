//! The rules for intent corrections: which votes count, what is applied when, and what look-ups answer.

use emend_proto::{
    common::v1::{Cause, OutcomeState, ResourceKind, RiskLevel, Scope, SynonymRelation},
    feedback::v1::SubmitFeedbackRequest,
    learning::v1::{BackendCandidate, CandidateStatus, ResolveRequest},
};
use emend_tests::{
    both_databases,
    harness::{
        NAMESPACE, alias, answered, phrase, prohibit, refused, says,
        says::{alias_key, maps_to, phrase_key, synonyms, verb_value},
        verb,
    },
};
use tonic::Code;

const PHRASE: &str = "set up a csa";

fn said_by<const N: usize>(reporters: [&str; N], choice: &str) -> [SubmitFeedbackRequest; N] {
    reporters.map(|reporter| says(reporter, verb(PHRASE, choice)))
}

both_databases! {
    async fn the_same_reporter_three_times_is_one_confirmation(system) {
        let result = system.feedback().learn_all(said_by(["jane", "jane", "jane"], "create_csa")).await;
        let outcome = result.outcome.unwrap();
        assert_eq!(outcome.state(), OutcomeState::Pending);
        assert_eq!(outcome.reason, "BELOW_THRESHOLD");
        assert_eq!((outcome.occurrence_count, outcome.reporter_count), (3, 1));
        assert_eq!((outcome.confirmations_needed, outcome.threshold_applied), (2, 3));
        assert_eq!(system.learning().verb_for(PHRASE).await, "");
    }

    async fn three_reporters_apply_a_phrase_and_each_sees_its_status(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let [jane, ann, tom] = said_by(["jane", "ann", "tom"], "create_csa");

        let first = feedback.learn(jane).await.outcome.unwrap();
        assert_eq!((first.state(), first.was_new), (OutcomeState::Pending, true));
        assert_eq!(first.confirmations_needed, 2);
        assert!(first.message.contains("2 more confirmations"), "{}", first.message);
        let second = feedback.learn(ann).await.outcome.unwrap();
        assert_eq!((second.state(), second.was_new), (OutcomeState::Pending, false));
        assert_eq!(second.confirmations_needed, 1);
        assert!(second.message.contains("1 more confirmation."), "{}", second.message);
        assert_eq!(learning.verb_for(PHRASE).await, "");

        let third = feedback.learn(tom).await.outcome.unwrap();
        assert_eq!((third.state(), third.auto_applied), (OutcomeState::Applied, true));
        assert_eq!(third.confirmations_needed, 0);
        assert_eq!(third.risk_level(), RiskLevel::Medium);
        assert!(third.message.contains("It applies"), "{}", third.message);
        let learned = third.what_was_learned.unwrap();
        assert_eq!((learned.input.as_str(), learned.maps_to.as_str()), (PHRASE, "create_csa"));
        assert_eq!(learned.kind(), ResourceKind::InvocationPhrase);

        let found = learning.resolve(ResourceKind::InvocationPhrase, PHRASE, "").await.r#match.unwrap();
        assert_eq!((found.value.as_str(), found.revision), ("create_csa", third.revision));
        assert_eq!((found.score, found.scope()), (1.0, Scope::Global));
        let revisions = learning.revisions().await;
        assert_eq!(revisions.len(), 1);
        assert_eq!((revisions[0].revision, revisions[0].cause()), (third.revision, Cause::Votes));
    }

    async fn further_confirmations_do_not_apply_a_value_again(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn_all(said_by(["jane", "ann", "tom"], "create_csa")).await;
        let head = learning.head().await;
        let result = feedback.learn_all(said_by(["eve", "bob"], "create_csa")).await.outcome.unwrap();
        assert_eq!((result.state(), result.auto_applied), (OutcomeState::Applied, false));
        assert_eq!((result.reporter_count, result.revision), (5, head));
        assert_eq!(learning.head().await, head);
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        let history = learning.candidate(&candidate.candidate_id).await.history;
        let applied = history.iter().filter(|step| step.to() == CandidateStatus::Applied);
        assert_eq!(applied.count(), 1);
    }

    async fn what_one_reporter_hid_in_a_phrase_is_in_no_answer_and_another_sees_only_its_own_words(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let hidden = verb("Set\u{202E} Up a\u{E0049}\u{E0067}\nCSA", "create_csa");
        let first = feedback.learn(says("jane", hidden)).await.outcome.unwrap();
        let own = first.what_was_learned.unwrap().input;
        assert_eq!(own, "Set Up a CSA", "on one line, without what is not seen");

        let later = feedback.learn(says("ann", verb("SET up a csa", "create_csa"))).await;
        let told = later.outcome.clone().unwrap();
        assert_eq!(told.what_was_learned.unwrap().input, "SET up a csa");
        assert!(told.message.contains("“SET up a csa”") && !told.message.contains(&own), "{}", told.message);
        // What a retracted correction said is not looked up again: its key is told.
        let told = feedback.retract(&later).await.outcome.unwrap();
        assert_eq!(told.what_was_learned.unwrap().input, PHRASE);
        assert!(!told.message.contains(&own), "{}", told.message);
        // Reviewers see how it was written first.
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(candidate.value.unwrap().display, own);

        for (reporter, input, choice, field) in [
            ("ja\u{202E}ne", PHRASE, "create_csa", "reporter.id"),
            ("jane", PHRASE, "create\u{200B}_csa", "correction.verb.correct_choice"),
        ] {
            let refusal = refused(feedback.service.clone().submit_feedback(says(reporter, verb(input, choice))).await);
            assert_eq!(refusal.code, Code::InvalidArgument);
            let why = refusal.field_violations.iter().find(|violation| violation.field == field).unwrap();
            assert!(why.description.contains("invisible characters, has U+20"), "{why}");
        }
    }

    async fn the_spelling_of_a_synonym_is_that_of_who_is_told(system) {
        let feedback = system.feedback();
        let equals = |term: &str| synonyms(term, &["tefuda"], SynonymRelation::Equivalent);
        feedback.learn(says("jane", equals("Hand (obey me)"))).await;
        let told = feedback.learn(says("ann", equals("HAND (OBEY ME)"))).await.outcome.unwrap();
        assert_eq!(told.what_was_learned.unwrap().maps_to, "HAND (OBEY ME)");
        assert!(!told.message.contains("Hand"), "{}", told.message);
    }

    async fn a_name_is_applied_with_its_first_vote(system) {
        let result = system.feedback().learn(says("jane", alias("Jane D.", "person-17"))).await;
        let outcome = result.outcome.unwrap();
        assert_eq!(outcome.state(), OutcomeState::Applied);
        assert_eq!((outcome.risk_level(), outcome.threshold_applied), (RiskLevel::Low, 1));
        assert!(outcome.was_new && outcome.auto_applied);
        assert_eq!(system.learning().entity_for("jane d.").await, "person-17");
    }

    async fn three_against_one_rival_wait_for_the_fourth(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn_all(said_by(["rival"], "create_isda")).await;
        let third = feedback.learn_all(said_by(["jane", "ann", "tom"], "create_csa")).await.outcome.unwrap();
        assert_eq!((third.state(), third.reason.as_str()), (OutcomeState::Pending, "RIVALS"));
        assert_eq!(third.confirmations_needed, 1);
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!((candidate.net_confirmations, candidate.reporter_count), (2, 3));
        assert_eq!(learning.verb_for(PHRASE).await, "");

        let fourth = feedback.learn_all(said_by(["eve"], "create_csa")).await.outcome.unwrap();
        assert_eq!(fourth.state(), OutcomeState::Applied);
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
    }

    async fn rivals_must_beat_the_applied_value_by_the_threshold(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn_all(said_by(["a1", "a2", "a3"], "create_csa")).await;
        feedback.learn_all(said_by(["b1", "b2", "b3", "b4", "b5"], "create_isda")).await;
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
        let result = feedback.learn_all(said_by(["b6"], "create_isda")).await.outcome.unwrap();
        assert_eq!(result.state(), OutcomeState::Applied);
        assert_eq!(learning.verb_for(PHRASE).await, "create_isda");
        let beaten = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(beaten.status(), CandidateStatus::Superseded);
    }

    async fn a_changed_mind_moves_the_vote(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn_all(said_by(["jane", "ann", "tom"], "create_isda")[..2].to_vec()).await;
        feedback.learn_all(said_by(["jane"], "create_csa")).await;
        let (left, gained) = (
            learning.candidate_for(PHRASE, "create_isda").await,
            learning.candidate_for(PHRASE, "create_csa").await,
        );
        assert_eq!((left.reporter_count, gained.reporter_count), (1, 1));
        assert_eq!((left.occurrence_count, gained.occurrence_count), (2, 1));
        let votes = learning.candidate(&gained.candidate_id).await.votes;
        assert_eq!(votes.len(), 1);
        assert_eq!(votes[0].reporter_id, "jane");
    }

    async fn a_value_set_by_a_person_is_not_replaced_by_votes(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        learning.put(phrase_key(PHRASE), verb_value("create_isda")).await;
        let result = feedback.learn_all(said_by(["a", "b", "c", "d"], "create_csa")).await.outcome.unwrap();
        assert_eq!((result.state(), result.reason.as_str()), (OutcomeState::AwaitingReview, "PINNED"));
        assert!(result.message.contains("awaits review"), "{}", result.message);
        assert_eq!(learning.verb_for(PHRASE).await, "create_isda");
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert!(candidate.contest_pinned);
    }

    async fn a_reverted_value_is_not_applied_again_by_votes(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let applied = feedback.learn_all(said_by(["a", "b", "c"], "create_csa")).await.outcome.unwrap();
        let reverted = learning.revert(applied.revision).await.unwrap();
        assert_eq!(reverted, applied.revision + 1);
        assert_eq!(learning.verb_for(PHRASE).await, "");

        let result = feedback.learn_all(said_by(["d", "e", "f", "g"], "create_csa")).await.outcome.unwrap();
        assert_eq!((result.state(), result.reason.as_str()), (OutcomeState::AwaitingReview, "REVERTED"));
        assert_eq!(learning.verb_for(PHRASE).await, "");
        assert_eq!(learning.head().await, reverted);
    }

    async fn retraction_below_the_threshold_withdraws_and_another_vote_brings_it_back(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let last = feedback.learn_all(said_by(["a", "b", "c"], "create_csa")).await;
        let retracted = feedback.retract(&last).await;
        assert!(retracted.retracted_at.is_some());
        let outcome = retracted.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::Withdrawn, "RETRACTED"));
        assert_eq!(outcome.revision, learning.head().await);
        assert_eq!(learning.verb_for(PHRASE).await, "");
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(candidate.status(), CandidateStatus::Withdrawn);
        assert_eq!((candidate.reporter_count, candidate.occurrence_count), (2, 2));
        assert_eq!(learning.revisions().await[0].cause(), Cause::Retraction);

        let result = feedback.learn_all(said_by(["d"], "create_csa")).await.outcome.unwrap();
        assert_eq!(result.state(), OutcomeState::Applied);
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
    }

    async fn retraction_above_the_threshold_changes_nothing_but_counts(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let last = feedback.learn_all(said_by(["a", "b", "c", "d"], "create_csa")).await;
        let head = learning.head().await;
        feedback.retract(&last).await;
        feedback.retract(&last).await;
        assert_eq!(learning.verb_for(PHRASE).await, "create_csa");
        assert_eq!(learning.head().await, head);
        assert_eq!(learning.candidate_for(PHRASE, "create_csa").await.reporter_count, 3);
    }

    async fn every_spelling_of_a_phrase_is_one_phrase(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let written = ["  Set up a CSA ", "set up a csa", "Ｓｅｔ　ｕｐ　ａ　ＣＳＡ"];
        for (reporter, input) in ["a", "b", "c"].iter().zip(written) {
            feedback.learn(says(reporter, verb(input, "create_csa"))).await;
        }
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!((candidate.status(), candidate.reporter_count), (CandidateStatus::Applied, 3));
        assert_eq!(candidate.key.unwrap().key, PHRASE);
        for input in written {
            assert_eq!(learning.verb_for(input).await, "create_csa", "{input:?}");
        }
        let resolved = learning.resolve(ResourceKind::InvocationPhrase, written[2], "").await;
        assert_eq!(resolved.normalized_phrase, PHRASE);
    }

    async fn verb_corrections_and_phrase_mappings_of_one_phrase_count_together(system) {
        let feedback = system.feedback();
        feedback.learn(says("a", verb(PHRASE, "create_csa"))).await;
        feedback.learn(says("b", phrase(PHRASE, "create_csa"))).await;
        let result = feedback.learn(says("c", verb(PHRASE, "create_csa"))).await;
        assert_eq!(result.outcome.unwrap().state(), OutcomeState::Applied);
    }

    async fn a_users_own_preference_applies_to_that_user_only_and_comes_first(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn_all(said_by(["a", "b", "c"], "create_csa")).await;
        let own = SubmitFeedbackRequest {
            scope: Scope::User.into(),
            ..says("jane", verb(PHRASE, "create_isda"))
        };
        let result = feedback.learn(own).await.outcome.unwrap();
        assert_eq!((result.state(), result.risk_level()), (OutcomeState::Applied, RiskLevel::Low));

        for (user, value, scope) in [
            ("jane", "create_isda", Scope::User),
            ("tom", "create_csa", Scope::Global),
            ("", "create_csa", Scope::Global),
        ] {
            let resolved = learning.resolve(ResourceKind::InvocationPhrase, PHRASE, user).await;
            let found = resolved.r#match.unwrap();
            assert_eq!((found.value.as_str(), found.scope()), (value, scope), "for {user:?}");
        }
        assert_eq!(learning.resources_in(NAMESPACE).await.len(), 1);
    }

    async fn a_prohibition_takes_precedence_over_learned_values(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn_all(said_by(["a", "b", "c"], "create_csa")).await;
        for reporter in ["d", "e", "f"] {
            feedback.learn(says(reporter, prohibit(PHRASE, "create_csa"))).await;
        }
        let resolved = learning.resolve(ResourceKind::InvocationPhrase, PHRASE, "").await;
        assert_eq!(resolved.r#match, None);
        assert!(resolved.match_prohibited);
        assert_eq!(resolved.prohibited, ["create_csa"]);
    }

    async fn prohibitions_of_one_phrase_are_no_rivals(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for choice in ["create_isda", "create_csa"] {
            for reporter in ["a", "b", "c"] {
                feedback.learn(says(reporter, prohibit(PHRASE, choice))).await;
            }
        }
        let resolved = learning.resolve(ResourceKind::InvocationPhrase, PHRASE, "").await;
        assert_eq!(resolved.prohibited, ["create_csa", "create_isda"]);
        assert!(!resolved.match_prohibited);
    }

    async fn an_unsure_backend_is_told_to_ask_the_user(system) {
        let learning = system.learning();
        let ask = async |scores: &[(&str, f64)]| {
            let request = ResolveRequest {
                namespace: NAMESPACE.into(),
                kind: ResourceKind::InvocationPhrase.into(),
                phrase: PHRASE.into(),
                backend_candidates: scores
                    .iter()
                    .map(|&(value, score)| BackendCandidate { value: value.into(), score })
                    .collect(),
                min_revision: learning.head().await,
                ..ResolveRequest::default()
            };
            answered(learning.resources.clone().resolve(request).await).feedback_hint
        };
        assert!(ask(&[("create_csa", 0.89), ("create_isda", 0.5)]).await);
        assert!(!ask(&[("create_csa", 0.9), ("create_isda", 0.5)]).await);
        assert!(!ask(&[("create_csa", 0.1)]).await);
        learning.put(phrase_key(PHRASE), verb_value("create_csa")).await;
        assert!(!ask(&[("create_csa", 0.1), ("create_isda", 0.1)]).await);
    }

    async fn a_deleted_value_is_restored_only_by_a_person(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        feedback.learn(says("jane", alias("jd", "person-17"))).await;
        learning.delete(alias_key("jd")).await.unwrap();
        let result = feedback.learn(says("ann", alias("jd", "person-17"))).await.outcome.unwrap();
        assert_eq!((result.state(), result.reason.as_str()), (OutcomeState::AwaitingReview, "DELETED"));
        assert_eq!(learning.entity_for("jd").await, "");
        // Another value can still be learned: three votes against the two that still want the deleted one.
        for reporter in ["a", "b", "c"] {
            feedback.learn(says(reporter, alias("jd", "person-4"))).await;
        }
        assert_eq!(learning.entity_for("jd").await, "person-4");
    }

    async fn personal_data_is_for_a_person_to_decide_and_free_text_is_masked(system) {
        let feedback = system.feedback();
        let request = SubmitFeedbackRequest {
            reason: "ask jane.doe@example.org".into(),
            ..says("tom", alias("mail of jane.doe@example.org", "person-17"))
        };
        let result = feedback.learn(request).await;
        assert!(!result.reason.contains("jane.doe@example.org"), "{}", result.reason);
        let outcome = result.outcome.unwrap();
        assert_eq!((outcome.state(), outcome.reason.as_str()), (OutcomeState::AwaitingReview, "PERSONAL_DATA"));
    }

    async fn texts_at_their_bounds_reach_learning_even_if_masking_lengthens_them(system) {
        // Addresses of 6 characters, whose masks may be longer.
        let mails = "a@b.co ".repeat(285);
        let request = SubmitFeedbackRequest {
            query_id: "q".repeat(128),
            reason: mails.clone(),
            context: [("k".repeat(64), mails[..1_022].to_owned())].into(),
            ..says(&"r".repeat(128), verb(&"p".repeat(512), &"c".repeat(256)))
        };
        let result = system.feedback().learn(request).await;
        assert!(!result.reason.contains("a@b.co"));
        assert_eq!(result.outcome.unwrap().reporter_count, 1);
        let retract = emend_proto::feedback::v1::RetractFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: result.feedback_id.clone(),
            reason: mails,
            wait: 0,
        };
        answered(system.feedback().service.clone().retract_feedback(retract).await);
        system.feedback().delivered(NAMESPACE, &result.feedback_id).await;
    }

    async fn reason_query_and_context_of_feedback_are_shown_to_the_reviewer(system) {
        let request = SubmitFeedbackRequest {
            query_id: "q-1".into(),
            reason: "a CSA was meant".into(),
            context: [("topic".to_owned(), "collateral".to_owned())].into(),
            ..says("jane", verb(PHRASE, "create_csa"))
        };
        system.feedback().learn(request).await;
        let learning = system.learning();
        let candidate = learning.candidate_for(PHRASE, "create_csa").await;
        assert_eq!(maps_to(candidate.value.as_ref()), "create_csa");
        let shown = learning.candidate(&candidate.candidate_id).await;
        let supporting = &shown.feedback[0];
        assert_eq!(supporting.reason, "a CSA was meant");
        assert_eq!(supporting.query_id, "q-1");
        assert_eq!(supporting.system_choice, "the_systems_choice");
        assert_eq!(supporting.context["topic"], "collateral");
    }
}
