//! Erasure: afterwards nothing of what a person said about himself or herself is stored anywhere, and everything that
//! was learned from it stays.

use std::{fs, time::Duration};

use emend_proto::{
    common::v1::{Correction, Rating, Reporter, ResourceKey, Scope, correction::Correction as Form},
    feedback::v1::{
        Feedback, ListFeedbackRequest, RedactFeedbackRequest, RedactReporterRequest, RedactReporterResponse,
        RetractFeedbackRequest, SubmitFeedbackRequest, Wait,
    },
};
use emend_tests::{
    audit::ledger,
    both_databases,
    harness::{
        NAMESPACE, System, alias, answered, eventually,
        node::Node,
        refused, says,
        says::{alias_key, entity_value},
        system::{Database, Service},
        verb,
        wait::holds,
    },
};
use sqlx::{ConnectOptions as _, Row as _, postgres::PgConnectOptions};
use tonic::Code;

const PHRASE: &str = "set up a csa";
pub(super) const JANE: &str = "jane-7f3a-of-the-desk";
/// Everything personal that Jane sends, each unlike anything else that is stored.
const PERSONAL: [&str; 8] = [
    JANE,
    "session-5b1c-in-the-morning",
    "terminal-app-3-12",
    "device-91d2-left-screen",
    "query-44ab-about-margin",
    "my neighbour at the quay said so",
    "the tall building by the water",
    "I read it too quickly this morning",
];

fn jane_says(correction: emend_proto::common::v1::Correction) -> SubmitFeedbackRequest {
    let [id, session_id, client, client_key, query, reason, context, _] = PERSONAL.map(str::to_owned);
    SubmitFeedbackRequest {
        reporter: Some(Reporter {
            id,
            session_id,
            client,
            client_key,
        }),
        query_id: query,
        reason,
        context: [("place".to_owned(), context)].into(),
        ..says("", correction)
    }
}

/// Where one of these texts is stored.
pub(super) async fn found(database: &Database, texts: &[&str]) -> Vec<String> {
    match database {
        Database::Sqlite(directory) => {
            let mut found = Vec::new();
            for file in fs::read_dir(directory.path()).unwrap() {
                let path = file.unwrap().path();
                // A file that is deleted meanwhile holds nothing.
                let bytes = fs::read(&path).unwrap_or_default();
                for text in texts {
                    if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                        found.push(format!("{text:?} in {}", path.display()));
                    }
                }
            }
            found
        }
        Database::Postgres(_) => {
            let url = database.url(Service::Learning, None);
            let mut connection = url.parse::<PgConnectOptions>().unwrap().connect().await.unwrap();
            let tables = sqlx::query(
                "SELECT table_schema, table_name FROM information_schema.tables \
                 WHERE table_type = 'BASE TABLE' AND table_schema LIKE 'emend%'",
            )
            .fetch_all(&mut connection)
            .await
            .unwrap();
            assert!(tables.len() > 10, "both services' tables are looked through");
            let mut found = Vec::new();
            for table in tables {
                let (schema, name): (String, String) = (table.get(0), table.get(1));
                for text in texts {
                    // A row as text shows bytes as hexadecimal digits.
                    let sql = format!(
                        "SELECT count(*) FROM \"{schema}\".\"{name}\" AS r WHERE strpos(r::text, $1) > 0 \
                         OR strpos(r::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0"
                    );
                    let rows: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                        .bind(*text)
                        .fetch_one(&mut connection)
                        .await
                        .unwrap();
                    if rows > 0 {
                        found.push(format!("{text:?} in {rows} rows of {schema}.{name}"));
                    }
                }
            }
            found
        }
    }
}

pub(super) async fn nothing_is_found(database: &Database, texts: &[&str]) {
    eventually("nothing of it is stored", || async {
        let found = found(database, texts).await;
        holds(found.is_empty(), || format!("{found:#?}"))
    })
    .await;
}

pub(super) async fn erase_jane(system: &System) -> i64 {
    let request = || RedactReporterRequest {
        namespace: NAMESPACE.into(),
        reporter_id: JANE.into(),
    };
    let service = system.feedback().service;
    let first = answered(service.clone().redact_reporter(request()).await);
    eventually("both services have erased everything", || async {
        let answer = answered(service.clone().redact_reporter(request()).await);
        let rest = RedactReporterResponse {
            redacted_count: 0,
            ..answer
        };
        holds(rest == RedactReporterResponse::default(), || {
            format!("{answer:?}")
        })
    })
    .await;
    first.redacted_count
}

fn assert_redacted(feedback: &Feedback) {
    assert!(feedback.redacted_at.is_some(), "{feedback:#?}");
    assert_eq!(feedback.reporter.clone().unwrap_or_default(), Reporter::default());
    let texts = [&feedback.query_id, &feedback.reason, &feedback.retract_reason];
    assert_eq!(
        (texts, feedback.context.len()),
        ([""; 3].map(String::from).each_ref(), 0)
    );
}

/// What Jane has for herself.
fn of_jane(key: ResourceKey) -> ResourceKey {
    ResourceKey {
        user_id: JANE.into(),
        ..key
    }
}

/// Two deletions, so that with one tombstone kept all earlier ones expire.
pub(super) async fn expire_earlier_tombstones(system: &System) {
    let learning = system.learning();
    for name in ["filler 1", "filler 2"] {
        learning.put(alias_key(name), entity_value("nobody")).await;
        learning.delete(alias_key(name)).await.unwrap();
    }
}

both_databases! {
    async fn after_a_redaction_no_personal_part_is_stored_and_the_vote_counts(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        for reporter in ["ann", "bob"] {
            feedback.learn(says(reporter, verb(PHRASE, "create_isda"))).await;
        }
        let stored = feedback.learn(jane_says(verb(PHRASE, "create_isda"))).await;
        assert!(!found(&system.database, &PERSONAL[5..6]).await.is_empty(), "the search finds what is there");
        let before = learning.candidate_for(PHRASE, "create_isda").await;

        let request = RedactFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: stored.feedback_id.clone(),
            wait: Wait::Evaluated.into(),
        };
        let redacted = answered(feedback.service.clone().redact_feedback(request.clone()).await).feedback.unwrap();
        assert_redacted(&redacted);
        assert_eq!(redacted.correction, stored.correction);
        let again = answered(feedback.service.clone().redact_feedback(request).await).feedback.unwrap();
        assert_eq!(again.redacted_at, redacted.redacted_at, "the first one counts");

        feedback.delivered(NAMESPACE, &stored.feedback_id).await;
        nothing_is_found(&system.database, &PERSONAL).await;
        let after = learning.candidate_for(PHRASE, "create_isda").await;
        assert_eq!(
            (after.occurrence_count, after.reporter_count, after.status),
            (before.occurrence_count, before.reporter_count, before.status)
        );
        ledger::expect_sound(system, None, &[]).await;
    }

    async fn after_a_redaction_nothing_that_a_rating_said_is_stored_and_its_example_is_gone(system) {
        let (feedback, learning) = (system.feedback(), system.learning());
        let said = ["an input like no other", "an output like no other", "an issue like no other", "a correction like no other"];
        let [input_text, output_text, issue, corrected_text] = said.map(str::to_owned);
        let rating = Rating {
            target: "INTERPRET".into(),
            value: "BAD".into(),
            target_id: "output-1".into(),
            input_text,
            output_text,
            issues: vec![issue],
            corrected_text,
            ..Rating::default()
        };
        let correction = |rating| Correction { correction: Some(Form::Rating(rating)) };
        let stored = feedback.learn(jane_says(correction(rating.clone()))).await;
        assert!(!found(&system.database, &said).await.is_empty(), "the search finds what is there");
        let other = Rating {
            target_id: "output-2".into(),
            input_text: "i".into(),
            output_text: "o".into(),
            issues: Vec::new(),
            corrected_text: String::new(),
            ..rating
        };
        feedback.learn(says("ann", correction(other))).await;

        let request = RedactFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: stored.feedback_id.clone(),
            wait: Wait::Evaluated.into(),
        };
        answered(feedback.service.clone().redact_feedback(request).await);
        feedback.delivered(NAMESPACE, &stored.feedback_id).await;
        nothing_is_found(&system.database, &said).await;
        nothing_is_found(&system.database, &PERSONAL).await;
        assert_eq!(learning.head().await, 3);
        ledger::expect_sound(system, None, &[]).await;
    }

    async fn redacting_unknown_feedback_is_not_found(system) {
        let request = RedactFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: uuid::Uuid::from_u128(7).to_string(),
            wait: Wait::Unspecified.into(),
        };
        let refusal = refused(system.feedback().service.clone().redact_feedback(request).await);
        assert_eq!(refusal.code, Code::NotFound);
    }

    async fn an_erased_reporter_leaves_no_personal_data_and_learned_values_stay(system) {
        system.stop_learning().await;
        system.settings.max_tombstones = Some(1);
        system.settings.retention_interval = Some(Duration::from_millis(100));
        system.start_learning().await;
        let (feedback, learning) = (system.feedback(), system.learning());
        let node = Node::start(system.learning[0].front.address(), "search-1").await;
        for reporter in ["ann", "bob"] {
            feedback.learn(says(reporter, verb(PHRASE, "create_isda"))).await;
        }
        feedback.learn(jane_says(verb(PHRASE, "create_isda"))).await;
        let own = SubmitFeedbackRequest {
            scope: Scope::User.into(),
            ..jane_says(alias("the boss", "person-17"))
        };
        feedback.learn(own).await;
        let taken_back = feedback.learn(jane_says(alias("Jim", "person-18"))).await;
        let retract = RetractFeedbackRequest {
            namespace: NAMESPACE.into(),
            feedback_id: taken_back.feedback_id.clone(),
            reason: PERSONAL[7].into(),
            wait: Wait::Evaluated.into(),
        };
        answered(feedback.service.clone().retract_feedback(retract).await);
        // An operator set something for her, which no feedback of hers says.
        learning.put(of_jane(alias_key("the chair")), entity_value("person-19")).await;
        let before = learning.candidate_for(PHRASE, "create_isda").await;
        node.until(learning.head().await).await;

        // What she says while learning-svc is away is erased before it arrives.
        system.stop_learning().await;
        let late = SubmitFeedbackRequest {
            wait: Wait::Recorded.into(),
            ..jane_says(verb(PHRASE, "create_isda"))
        };
        let late = feedback.submit(late).await;
        let request = RedactReporterRequest { namespace: NAMESPACE.into(), reporter_id: JANE.into() };
        let response = answered(feedback.service.clone().redact_reporter(request).await);
        assert_eq!((response.redacted_count, response.remaining_count), (4, 0));
        assert!(response.undelivered_count > 0, "learning-svc has not heard of it yet");
        system.start_learning().await;
        assert_eq!(erase_jane(system).await, 0, "everything was redacted by the first call");
        assert_redacted(&feedback.delivered(NAMESPACE, &late.feedback_id).await);
        let of_her = ListFeedbackRequest { reporter_id: JANE.into(), ..feedback.list_request(NAMESPACE) };
        assert_eq!(feedback.list(of_her).await, []);

        let learning = system.learning();
        let head = learning.head().await;
        node.until(head).await;
        let stored = system.stored().resources().await;
        assert!(stored.keys().all(|key| key.user_id.is_empty()), "{stored:#?}");
        node.assert_answers_by(&stored, &[]);
        let after = learning.candidate_for(PHRASE, "create_isda").await;
        assert_eq!(
            (after.occurrence_count, after.reporter_count, after.status),
            (before.occurrence_count + 1, before.reporter_count, before.status),
            "her last correction counts as one occurrence more of the same voter"
        );

        expire_earlier_tombstones(system).await;
        nothing_is_found(&system.database, &PERSONAL).await;
        ledger::expect_sound(system, None, &[(&node).into()]).await;

        // She is not barred: what she says from now on is new.
        let anew = SubmitFeedbackRequest {
            scope: Scope::User.into(),
            ..says(JANE, alias("the boss", "person-20"))
        };
        let learned = feedback.learn(anew).await;
        node.until(learned.outcome.unwrap().revision).await;
        let answer = node.answer(NAMESPACE, emend_core::Kind::EntityAlias, "the boss", JANE);
        assert_eq!(answer.found.map(|(value, _)| value).as_deref(), Some("person-20"));
    }
}
