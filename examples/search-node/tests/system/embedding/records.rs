//! Vectors of records: what is embedded, again after failures, and beside an index that changes.

use super::*;

#[tokio::test]
async fn only_what_has_changed_is_embedded_again() {
    let server = Server::start().await;
    let (_directory, index) = indexed(&server, "meanings@1").await;
    let mut records = records();
    let unchanged = Counts {
        unchanged: 3,
        ..Counts::default()
    };
    let first = server.model("meanings@1");
    assert_eq!(updated(&index, &records, &*first).await, (unchanged, None));
    assert_eq!(server.asked(), [""; 0]);

    "カードを3枚引く。".clone_into(&mut records[1].text);
    let changed = Counts {
        upserted: 1,
        unchanged: 2,
        embedded: 1,
        ..Counts::default()
    };
    assert_eq!(updated(&index, &records, &*first).await, (changed, None));
    assert_eq!(server.asked(), ["CARD-B\nカードを3枚引く。"]);

    // A model of another name makes all of them again, in any number of runs.
    let second = server.model("meanings@2");
    server.behaves(Behaviour::Broken);
    let (counts, failure) = updated(&index, &records, &*second).await;
    assert_eq!(
        (counts.embedded, counts.not_embedded, counts.unchanged),
        (0, 3, 3)
    );
    assert!(failure.unwrap().contains("answered 500"));
    server.behaves(Behaviour::Answers { more: 0 });
    server.asked();
    let (counts, failure) = updated(&index, &records, &*second).await;
    assert_eq!((counts.embedded, counts.unchanged, failure), (3, 3, None));
    assert_eq!(server.asked().len(), 3);

    // Under one name all have one length.
    "カードを4枚引く。".clone_into(&mut records[1].text);
    server.behaves(Behaviour::Answers { more: 2 });
    let (counts, failure) = updated(&index, &records, &*second).await;
    assert_eq!((counts.upserted, counts.embedded, counts.not_embedded), (1, 0, 1));
    let failure = failure.unwrap();
    assert!(
        failure.starts_with(
            "the record \"CARD-B:effect_1\": the model \"meanings@2\" makes vectors of 6 numbers, and those in the \
             index have 4"
        ),
        "{failure}"
    );

    // Without a model, what is as it was keeps its vector, and what has changed has none.
    server.behaves(Behaviour::Answers { more: 0 });
    server.asked();
    "相手の顔に4ダメージ。".clone_into(&mut records[0].text);
    let now = ManualClock::new(Timestamp::UNIX_EPOCH).now();
    index.update(&records, None, false, now, &mut sink()).unwrap();
    updated(&index, &records, &*second).await;
    assert_eq!(
        server.asked(),
        ["CARD-A\n相手の顔に4ダメージ。", "CARD-B\nカードを4枚引く。"]
    );
}

#[tokio::test]
async fn records_are_embedded_while_searches_run_and_again_after_a_failure() {
    let server = Server::start().await;
    let directory = tempfile::tempdir().unwrap();
    let index = Arc::new(SearchIndex::open(directory.path()).unwrap());
    let mut many: Vec<Record> = (0..40)
        .map(|number| record(&format!("CARD-{number}"), "場のカードを破壊する。"))
        .collect();
    many.extend(records());
    let now = ManualClock::new(Timestamp::UNIX_EPOCH).now();
    index.update(&many, None, false, now, &mut sink()).unwrap();
    let worker = RecordEmbedder::new(Arc::clone(&index), server.model("meanings@1"));
    server.behaves(Behaviour::Tires { after: 32 });
    let failed = worker.run_once().await.unwrap_err();
    assert!(format!("{failed:#}").contains("answered 500"), "{failed:#}");
    server.asked();
    server.behaves(Behaviour::Answers { more: 0 });
    assert_eq!(worker.run_once().await.unwrap(), 11);
    assert_eq!(server.asked().len(), 11, "the first batch is kept");
    worker.run(std::future::pending()).await;
    assert_eq!(server.asked(), [""; 0], "all have vectors");
}

/// A model beside which another process indexes a corpus that has changed.
struct Beside {
    model: Box<dyn Embedder>,
    other: SearchIndex,
    changed: Vec<Record>,
}

#[tonic::async_trait]
impl Embedder for Beside {
    fn version(&self) -> &str {
        self.model.version()
    }

    async fn embed(&self, texts: &[&str]) -> anyhow::Result<Vec<Vector>> {
        let now = ManualClock::new(Timestamp::UNIX_EPOCH).now();
        self.other.update(&self.changed, None, false, now, &mut sink())?;
        self.model.embed(texts).await
    }
}

#[tokio::test]
async fn what_was_indexed_while_records_were_embedded_stays() {
    let server = Server::start().await;
    let directory = tempfile::tempdir().unwrap();
    let open = || SearchIndex::open(directory.path()).unwrap();
    let index = Arc::new(open());
    let now = ManualClock::new(Timestamp::UNIX_EPOCH).now();
    index.update(&records(), None, false, now, &mut sink()).unwrap();
    // One is as it was, one changed, one is new, and one is gone.
    let changed = vec![
        record("CARD-A", "相手の顔に3ダメージ。"),
        record("CARD-B", "カードを3枚引く。"),
        record("CARD-D", "場に出す。"),
    ];
    let beside = Beside {
        model: server.model("meanings@1"),
        other: open(),
        changed: changed.clone(),
    };
    let worker = RecordEmbedder::new(index, Box::new(beside));
    worker.run_once().await.unwrap();
    let none = Embedded::none(&*server.model("meanings@1"));
    let summary = open()
        .update(&changed, Some(&none), true, now, &mut sink())
        .unwrap();
    let held = Counts {
        unchanged: 3,
        embedded: 2,
        ..Counts::default()
    };
    assert_eq!(summary["effects"], held);
    server.asked();
    worker.run(std::future::pending()).await;
    assert_eq!(
        server.asked(),
        ["CARD-B\nカードを3枚引く。", "CARD-D\n場に出す。"]
    );
}

#[tokio::test]
async fn a_record_that_the_model_refuses_leaves_no_other_without_a_vector() {
    let server = Server::start().await;
    let directory = tempfile::tempdir().unwrap();
    let index = SearchIndex::open(directory.path()).unwrap();
    let mut many: Vec<Record> = (0..70)
        .map(|number| record(&format!("CARD-{number}"), "場のカードを破壊する。"))
        .collect();
    for refused in [3, 35] {
        many[refused] = record(&format!("CARD-{refused}"), "長い文。");
    }
    let model = server.model("meanings@1");
    server.behaves(Behaviour::Refuses("長い文"));
    let (counts, failure) = updated(&index, &many, &*model).await;
    assert_eq!((counts.embedded, counts.not_embedded), (68, 2));
    let failure = failure.unwrap();
    assert!(
        failure.starts_with("the record \"CARD-3:effect_1\": the embedding server: answered 400"),
        "{failure}"
    );
    assert_eq!(server.asked().len(), 2 * (32 + 32) + 6);

    // One that refuses everything is not asked for each record.
    let all = server.model("meanings@2");
    server.behaves(Behaviour::Refuses("カード"));
    let many: Vec<Record> = (0..200)
        .map(|number| record(&format!("CARD-{number}"), "場のカードを破壊する。"))
        .collect();
    let (counts, _) = updated(&index, &many, &*all).await;
    assert_eq!((counts.embedded, counts.not_embedded), (0, 200));
    assert_eq!(server.asked().len(), 3 * (32 + 32));
}
