//! Profiles over the wire: what a user decides is in every node that asks for what is users' own, and what is suggested to one
//! user is nobody else's.

use std::time::Duration;

use emend_client::{Learning as ToLearn, LearningLevel, rank_learnings};
use emend_core::{Namespace, UserId};
use emend_proto::{
    common::v1::{ProfileValue, ResourceKey, ResourceKind, ResourceValue, profile_value, resource_value},
    learning::v1::{
        AcceptSuggestionRequest, AcceptSuggestionResponse, Activity, ApproveCandidateRequest,
        CandidateStatus, GenerateSuggestionsRequest, GetProfileRequest, ListCandidatesRequest,
        ListSuggestionsRequest, Profile, ProfileSuggestion, PutResourceRequest, RecordActivityRequest,
        RejectSuggestionRequest, SuggestionType, UpdateProfileRequest, UpdateProfileResponse,
    },
};
use emend_tests::{
    audit::ledger,
    both_databases,
    harness::{Learning, NAMESPACE, answered, node::Node, refused, rpc::fields},
};
use prost_types::{FieldMask, Timestamp};
use tonic::{Code, Status};

use super::erasure::{JANE, erase_jane, expire_earlier_tombstones, found, nothing_is_found};

async fn profile(learning: &Learning, user: &str) -> Profile {
    let request = GetProfileRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
    };
    let response = learning.profiles.clone().get_profile(request).await;
    answered(response).profile.unwrap()
}

fn technologies(user: &str, technologies: &[&str]) -> UpdateProfileRequest {
    UpdateProfileRequest {
        profile: Some(Profile {
            namespace: NAMESPACE.into(),
            user_id: user.into(),
            known_technologies: technologies.iter().map(|&text| text.to_owned()).collect(),
            ..Profile::default()
        }),
        update_mask: Some(FieldMask {
            paths: vec!["known_technologies".into()],
        }),
        reason: String::new(),
    }
}

async fn update(learning: &Learning, request: UpdateProfileRequest) -> UpdateProfileResponse {
    answered(learning.profiles.clone().update_profile(request).await)
}

async fn record(learning: &Learning, user: &str, activities: Vec<Activity>) -> i32 {
    let request = RecordActivityRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
        activities,
    };
    answered(learning.profiles.clone().record_activity(request).await).recorded
}

async fn generate(learning: &Learning, user: &str) -> Vec<ProfileSuggestion> {
    let request = GenerateSuggestionsRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
        ..GenerateSuggestionsRequest::default()
    };
    answered(learning.profiles.clone().generate_suggestions(request).await).suggestions
}

fn activity(number: i64, goals: &[&str]) -> Activity {
    Activity {
        source_type: "LEARNING".into(),
        source_id: format!("lesson-{number}"),
        occurred_at: Some(Timestamp {
            seconds: 86_400 * number,
            nanos: 0,
        }),
        goals: goals.iter().map(|&text| text.to_owned()).collect(),
        ..Activity::default()
    }
}

/// Suggestions of these goals to a user, the first one first.
pub(super) async fn suggested(learning: &Learning, user: &str, goals: &[&str]) -> Vec<ProfileSuggestion> {
    record(learning, user, vec![activity(1, goals)]).await;
    generate(learning, user).await
}

/// Accepts a suggestion as a user.
pub(super) async fn accept(
    learning: &Learning,
    user: &str,
    suggestion: &ProfileSuggestion,
) -> Result<AcceptSuggestionResponse, Status> {
    let request = AcceptSuggestionRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
        candidate_id: id(suggestion),
        etag: String::new(),
    };
    let response = learning.profiles.clone().accept_suggestion(request).await?;
    Ok(response.into_inner())
}

async fn reject(learning: &Learning, user: &str, suggestion: &ProfileSuggestion) -> Result<(), Status> {
    let request = RejectSuggestionRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
        candidate_id: id(suggestion),
        reason: "not for me in this life".into(),
        etag: String::new(),
    };
    learning
        .profiles
        .clone()
        .reject_suggestion(request)
        .await
        .map(drop)
}

fn id(suggestion: &ProfileSuggestion) -> String {
    suggestion.candidate.as_ref().unwrap().candidate_id.clone()
}

async fn waiting(learning: &Learning, user: &str, page_size: i32) -> Vec<ProfileSuggestion> {
    let mut request = ListSuggestionsRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
        page_size,
        ..ListSuggestionsRequest::default()
    };
    let mut all = Vec::new();
    loop {
        let page = answered(learning.profiles.clone().list_suggestions(request.clone()).await);
        all.extend(page.suggestions);
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return all;
        }
    }
}

async fn queue(learning: &Learning, user: &str, kinds: &[ResourceKind]) -> Vec<String> {
    let request = ListCandidatesRequest {
        namespace: NAMESPACE.into(),
        user_id: user.into(),
        kinds: kinds.iter().map(|&kind| kind.into()).collect(),
        statuses: vec![CandidateStatus::AwaitingReview.into()],
        ..ListCandidatesRequest::default()
    };
    let listed = learning.list_candidates(request).await.into_iter();
    listed.map(|candidate| candidate.candidate_id).collect()
}

both_databases! {
    async fn what_a_user_knows_is_in_every_node_and_drops_its_basics(system) {
        let learning = system.learning();
        let nodes = [
            Node::start(system.learning[0].front.address(), "search-1").await,
            Node::start(system.learning[0].front.address(), "search-2").await,
        ];
        let empty = profile(&learning, "ann").await;
        assert_eq!((empty.revision, empty.etag.as_str(), empty.known_technologies.len()), (0, "0", 0));
        let first = update(&learning, technologies("ann", &["Rust", "ｒｕｓｔ", " RUST ", "SQL"])).await;
        assert_eq!(first.revision, 1);
        let known = first.profile.unwrap();
        assert_eq!(known.known_technologies, ["Rust", "SQL"], "entries alike are one");
        let mut stale = technologies("ann", &["Go"]);
        stale.profile.as_mut().unwrap().etag = empty.etag;
        assert_eq!(refused(learning.profiles.clone().update_profile(stale).await).code, Code::Aborted);
        let same = update(&learning, technologies("ann", &["Rust", "SQL"])).await;
        assert_eq!((same.revision, &same.profile), (0, &Some(known)));

        let made = suggested(&learning, "ann", &["Kafka"]).await;
        assert_eq!(made[0].suggestion.as_ref().unwrap().r#type(), SuggestionType::AddGoal);
        let accepted = accept(&learning, "ann", &made[0]).await.unwrap();
        assert_eq!(accepted.revision, 2);
        assert_eq!(accepted.profile.as_ref(), Some(&profile(&learning, "ann").await));
        let namespace = Namespace::parse(NAMESPACE).unwrap();
        let ann = UserId::parse("ann").unwrap();
        for node in &nodes {
            node.until(accepted.revision).await;
            let view = node.view().profile(&namespace, &ann);
            let shown: Vec<String> = view.known_technologies.values().cloned().collect();
            assert_eq!(shown, accepted.profile.as_ref().unwrap().known_technologies);
            let goals: Vec<String> = view.learning_goals.values().cloned().collect();
            assert_eq!(goals, ["Kafka"]);
            let item = |item: u32, topic: &str, level| ToLearn { item, topics: vec![topic.into()], level };
            let items = [
                item(1, "RUST", LearningLevel::Basic),
                item(2, "rust", LearningLevel::Advanced),
                item(3, "Go", LearningLevel::Basic),
                item(4, "kafka", LearningLevel::Basic),
            ];
            let ranked = rank_learnings(&view, items).into_iter().map(|of| of.item);
            assert_eq!(ranked.collect::<Vec<_>>(), [4, 2, 3]);
            let of_bob = node.view().profile(&namespace, &UserId::parse("bob").unwrap());
            assert!(of_bob.is_empty());
        }
        let emptied = update(&learning, technologies("ann", &[])).await;
        assert_eq!(emptied.revision, 3);
        nodes[0].until(3).await;
        assert!(nodes[0].view().profile(&namespace, &ann).known_technologies.is_empty());
        let nodes: Vec<_> = nodes.iter().map(Into::into).collect();
        ledger::expect_sound(system, None, &nodes).await;
    }

    async fn a_suggestion_is_its_users_alone_and_decided_once(system) {
        let learning = system.learning();
        let made = suggested(&learning, "ann", &["Kafka", "ＮＡＴＳ"]).await;
        let of_bob = suggested(&learning, "bob", &["Kafka"]).await;
        assert_eq!((made.len(), of_bob.len()), (2, 1));
        assert_eq!(record(&learning, "ann", vec![activity(1, &["Kafka"])]).await, 0, "it is known");
        assert_eq!(generate(&learning, "ann").await, [], "they wait");
        assert_eq!(waiting(&learning, "ann", 1).await.len(), 2);
        let of_bob_waiting = waiting(&learning, "bob", 0).await;
        assert_eq!(of_bob_waiting.iter().map(id).collect::<Vec<_>>(), [id(&of_bob[0])]);
        assert_eq!(of_bob_waiting[0].suggestion, of_bob[0].suggestion);

        // The queue of one user is never shown to another, nor to who asks for nobody's.
        let mut of_ann: Vec<String> = made.iter().map(id).collect();
        of_ann.sort_unstable();
        let mut listed = queue(&learning, "ann", &[]).await;
        listed.sort_unstable();
        assert_eq!(listed, of_ann);
        assert_eq!(queue(&learning, "bob", &[ResourceKind::Profile]).await, [id(&of_bob[0])]);
        assert_eq!(queue(&learning, "", &[]).await, [""; 0]);
        assert_eq!(queue(&learning, "", &[ResourceKind::Profile, ResourceKind::EntityAlias]).await, [""; 0]);
        let details = learning.candidate(&of_ann[0]).await;
        let (reason, source_id) = details.suggestion.map(|of| (of.reason, of.source_id)).unwrap();
        assert_eq!((reason.contains("1 activity"), source_id.as_str()), (true, "lesson-1"));

        assert_eq!(accept(&learning, "bob", &made[0]).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(reject(&learning, "bob", &made[0]).await.unwrap_err().code(), Code::NotFound);

        let at_once = (0..20).map(|_| accept(&learning, "ann", &made[0]));
        let results = futures::future::join_all(at_once).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
        for lost in results.into_iter().filter_map(Result::err) {
            assert_eq!(lost.code(), Code::FailedPrecondition, "{lost:?}");
        }
        assert_eq!(reject(&learning, "ann", &made[0]).await.unwrap_err().code(), Code::FailedPrecondition);
        reject(&learning, "ann", &made[1]).await.unwrap();
        assert_eq!(accept(&learning, "ann", &made[1]).await.unwrap_err().code(), Code::FailedPrecondition);
        assert_eq!(reject(&learning, "ann", &made[1]).await.unwrap_err().code(), Code::FailedPrecondition);
        record(&learning, "ann", vec![activity(2, &["kafka", "nats", "Pulsar"])]).await;
        let again = generate(&learning, "ann").await;
        assert_eq!(again.len(), 1, "only what is new: {again:#?}");
        assert_eq!(profile(&learning, "ann").await.learning_goals, ["Kafka"]);

        // Whoever may act for users reviews it in the queue as well.
        let pulsar = again[0].candidate.clone().unwrap();
        learning.approve(&pulsar).await.unwrap();
        assert_eq!(profile(&learning, "ann").await.learning_goals, ["Kafka", "Pulsar"]);
        ledger::expect_sound(system, None, &[]).await;
    }

    async fn an_entry_is_held_against_its_key(system) {
        let learning = system.learning();
        let made = suggested(&learning, "ann", &["Kafka"]).await;
        let entry = |text: &str| profile_value::Value::Entry(text.into());
        let years = profile_value::Value::Years(3);
        for (field, qualifier, value, wrong) in [
            ("learning_goals", "kafka", entry("NATS"), "profile.entry"),
            ("learning_goals", "kafka", years, "profile.years"),
            ("experience_years", "", entry("3"), "profile.entry"),
        ] {
            let value = ResourceValue {
                display: field.into(),
                value: Some(resource_value::Value::Profile(ProfileValue { value: Some(value) })),
                ..ResourceValue::default()
            };
            let put = PutResourceRequest {
                key: Some(ResourceKey {
                    namespace: NAMESPACE.into(),
                    kind: ResourceKind::Profile.into(),
                    key: field.into(),
                    qualifier: qualifier.into(),
                    user_id: "ann".into(),
                }),
                value: Some(value.clone()),
                ..PutResourceRequest::default()
            };
            let put = refused(learning.resources.clone().put_resource(put).await);
            assert_eq!((put.code, fields(&put)), (Code::InvalidArgument, vec![format!("value.{wrong}").as_str()]));
            if field == "experience_years" {
                continue;
            }
            let edited = ApproveCandidateRequest {
                namespace: NAMESPACE.into(),
                candidate_id: id(&made[0]),
                edited_value: Some(value),
                ..ApproveCandidateRequest::default()
            };
            let edited = refused(learning.candidates.clone().approve_candidate(edited).await);
            let named = format!("edited_value.{wrong}");
            assert_eq!((edited.code, fields(&edited)), (Code::InvalidArgument, vec![named.as_str()]));
        }
        assert_eq!(profile(&learning, "ann").await.learning_goals, [""; 0]);
        // The same entry in another wording is no other.
        let edited = ApproveCandidateRequest {
            namespace: NAMESPACE.into(),
            candidate_id: id(&made[0]),
            edited_value: Some(ResourceValue {
                value: Some(resource_value::Value::Profile(ProfileValue { value: Some(entry("KAFKA")) })),
                ..ResourceValue::default()
            }),
            ..ApproveCandidateRequest::default()
        };
        answered(learning.candidates.clone().approve_candidate(edited).await);
        assert_eq!(profile(&learning, "ann").await.learning_goals, ["KAFKA"]);
    }

    async fn an_erased_user_leaves_no_byte_of_a_profile(system) {
        system.stop_learning().await;
        system.settings.max_tombstones = Some(1);
        system.settings.retention_interval = Some(Duration::from_millis(100));
        system.start_learning().await;
        let learning = system.learning();
        let personal = [
            JANE,
            "steering a barge by hand",
            "reading the old harbour maps",
            "note-8812-of-the-quay",
            "moved to another berth on monday",
            "rowing in the evening fog",
            "not for me in this life",
            "lesson-1",
        ];
        let mut told = technologies(JANE, &[personal[1]]);
        told.reason = personal[4].into();
        update(&learning, told).await;
        let done = Activity {
            source_id: personal[3].into(),
            summary: personal[4].into(),
            ..activity(3, &[personal[2]])
        };
        record(&learning, JANE, vec![done]).await;
        let goal = generate(&learning, JANE).await.remove(0);
        accept(&learning, JANE, &goal).await.unwrap();
        let fog = suggested(&learning, JANE, &[personal[5]]).await.remove(0);
        reject(&learning, JANE, &fog).await.unwrap();
        record(&learning, JANE, vec![activity(9, &["waiting at the lock"])]).await;
        assert_eq!(generate(&learning, JANE).await.len(), 1);
        for text in personal {
            assert!(!found(&system.database, &[text]).await.is_empty(), "the search finds {text:?}");
        }

        erase_jane(system).await;
        assert_eq!(profile(&learning, JANE).await.known_technologies, [""; 0]);
        assert_eq!(waiting(&learning, JANE, 0).await, []);
        assert_eq!(generate(&learning, JANE).await, []);
        expire_earlier_tombstones(system).await;
        nothing_is_found(&system.database, &personal).await;
        nothing_is_found(&system.database, &["waiting at the lock"]).await;
        ledger::expect_sound(system, None, &[]).await;
    }
}
