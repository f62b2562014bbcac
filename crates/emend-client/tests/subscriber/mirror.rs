//! The mirror of prompts in a directory.

use std::{collections::BTreeMap, fs, path::Path};

use emend_base::Lifecycle;
use emend_client::{Events, Kind, Learned, Prompt, Setting, SubscriberEvent};
use emend_proto::learning::v1::SnapshotReason;

use super::{
    GRACE, builder,
    support::{
        FakeServer, event,
        server_log::{Key, ServerLog, encoded},
    },
};

fn key(namespace: &str, target: &str, label: &str) -> Key {
    let kind = Kind::Prompt.number();
    (namespace.into(), kind, target.into(), label.into(), String::new())
}

fn prompt(text: &str) -> Vec<u8> {
    let prompt = Prompt::new(text, vec![], vec![]).expect("valid");
    encoded("T", Learned::Prompt(prompt))
}

/// What a directory holds besides hidden files.
fn held(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry"));
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().expect("UTF-8");
        (name, fs::read_to_string(entry.path()).expect("a file"))
    });
    files.filter(|(name, _)| !name.starts_with('.')).collect()
}

fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, contents): &(&str, &str)| ((*name).to_owned(), (*contents).to_owned());
    files.iter().map(owned).collect()
}

/// Waits until the mirror was written; what was written, removed and in its way.
async fn mirrored(events: &mut Events) -> [Vec<String>; 3] {
    event("the mirror", events, |event| match event {
        SubscriberEvent::Mirrored {
            written,
            removed,
            foreign,
        } => Some([written, removed, foreign].map(Clone::clone)),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn a_node_mirrors_the_prompts_under_the_label_that_it_follows() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("prompts");
    let (mut server, lifecycle) = (FakeServer::start().await, Lifecycle::new());
    let uri = server.uri();
    let mirroring = || builder(&uri).mirror_prompts(&directory, "fund-admin", "staging");
    let (node, mut events) = mirroring()
        .copy(root.path().join("learned"))
        .spawn_observed(&lifecycle)
        .await
        .unwrap();
    let mut log = ServerLog::new("epoch");
    let settings = vec![Setting {
        name: "model".into(),
        value: "small".into(),
    }];
    let with_settings = Learned::Prompt(Prompt::new("Daily.\n", vec![], settings).unwrap());
    log.commit([
        (
            key("fund-admin", "DAILY", "staging"),
            Some(encoded("DAILY", with_settings)),
        ),
        (key("fund-admin", "mail/reply", "staging"), Some(prompt("Reply."))),
        (
            key("fund-admin", "DAILY", "production"),
            Some(prompt("another label")),
        ),
    ]);
    let stream = server.stream().await;
    stream.send(log.snapshot(1, SnapshotReason::NoCursor, 1)).await;
    let [written, removed, foreign] = mirrored(&mut events).await;
    assert_eq!((written.len(), removed.len(), foreign.len()), (2, 0, 0));
    let daily = ("DAILY.md", "---\nsettings:\n  model: \"small\"\n---\nDaily.\n");
    assert_eq!(held(&directory), files(&[daily, ("mail%2Freply.md", "Reply.")]));

    fs::write(directory.join("HOURLY.md"), "somebody's own").unwrap();
    log.commit([
        (
            key("fund-admin", "DAILY", "production"),
            Some(prompt("another label still")),
        ),
        (key("fund-admin", "HOURLY", "staging"), Some(prompt("Hourly."))),
        (key("fund-admin", "mail/reply", "staging"), None),
    ]);
    stream.send(log.update(1, 2, 10)).await;
    assert_eq!(
        mirrored(&mut events).await,
        [
            vec![],
            vec!["mail%2Freply.md".into()],
            vec!["HOURLY.md".to_owned()]
        ]
    );
    assert_eq!(held(&directory), files(&[daily, ("HOURLY.md", "somebody's own")]));
    node.shutdown(GRACE).await;

    // What was changed while the node was down is put right from its copy, before any server answers.
    fs::write(directory.join("DAILY.md"), "changed by hand").unwrap();
    let (_, mut events) = mirroring()
        .copy(root.path().join("learned"))
        .spawn_observed(&lifecycle)
        .await
        .unwrap();
    let [written, ..] = mirrored(&mut events).await;
    assert_eq!(written, ["DAILY.md"]);
    lifecycle.shutdown(GRACE).await;
}

#[tokio::test]
async fn a_mirror_of_what_the_node_does_not_subscribe_to_is_refused() {
    let lifecycle = Lifecycle::new();
    let building = builder("http://127.0.0.1:1").kind(Kind::EntityAlias);
    let refused = building
        .mirror_prompts("prompts", "other", "")
        .spawn(&lifecycle)
        .await
        .unwrap_err()
        .to_string();
    for part in [
        "mirror.label",
        "mirror.namespace: must be one",
        "kinds: must have PROMPT",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
}
