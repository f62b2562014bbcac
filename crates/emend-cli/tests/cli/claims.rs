//! Decisions about claims and edges, using only the command.

use crate::harness::Up;

#[tokio::test]
async fn claims_and_edges_are_decided_about_exported_and_imported() {
    // What is decided about takes effect once it is known.
    const GRAPH: &str = r#"{"page": {"page_id": "page:1", "domain": "blog.example"}}
        {"claim": {"claim_id": "claim:12"}}
        {"claim": {"claim_id": "claim:13"}}
        {"edge": {"edge_id": "edge:7", "relation": "supports", "source": "page:1", "target": "claim:12"}}
        {"edge": {"edge_id": "edge:8", "relation": "supports", "source": "page:1", "target": "claim:13"}}"#;
    let up = Up::ephemeral().await;
    up.run_with(&["evidence", "import", "-"], GRAPH).await.ok();
    let reject = [
        "evidence",
        "claims",
        "reject",
        "claim:12",
        "--reason",
        "an advertisement",
        "--reason-code",
        "SPAM",
        "--task",
        "t-17",
        "--json",
    ];
    let rejected = up.run(&reject).await.ok().json();
    assert_eq!(
        rejected["correction"]["claimReject"],
        serde_json::json!({"claimId": "claim:12", "reasonCode": "SPAM", "taskId": "t-17"})
    );
    let corrected = up
        .run(&["evidence", "edges", "correct", "edge:7", "refutes"])
        .await
        .ok();
    assert!(
        corrected
            .stdout
            .starts_with("Learned: the label of edge “edge:7” is refutes. It applies."),
        "{}",
        corrected.stdout
    );
    let cites = up.run(&["evidence", "edges", "correct", "edge:7", "cites"]).await;
    assert!(
        cites.stderr.contains("CITES edges can't be corrected"),
        "{}",
        cites.stderr
    );

    let exported = up.run(&["export", "--format", "csv"]).await.ok().stdout;
    assert_eq!(
        exported,
        "type,input,choice,relation,user_id\nclaim_state,claim:12,rejected:SPAM,,\nedge_label,edge:7,refutes,,\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("decisions.csv");
    std::fs::write(
        &file,
        format!("{exported}claim,claim:13,restored,,\nedge,edge:8,neutral,,\n"),
    )
    .unwrap();
    let imported = up
        .run(&["import", file.to_str().unwrap(), "--json"])
        .await
        .ok()
        .json();
    assert_eq!(imported["appliedCount"], 4, "{imported}");
    std::fs::write(
        &file,
        "type,claim_id,decision\nclaim,claim:1,hidden\nclaim,claim:2,cleared\n",
    )
    .unwrap();
    let refused = up.run(&["import", file.to_str().unwrap()]).await;
    assert!(
        refused.stderr.contains("choice: must be rejected"),
        "{}",
        refused.stderr
    );

    let restored = [
        "evidence",
        "claims",
        "restore",
        "claim:12",
        "--reason",
        "checked by hand",
    ];
    let restored = up.run(&restored).await.ok().stdout;
    assert!(restored.contains("claim “claim:12” is restored"), "{restored}");
    up.run(&["resources", "delete", "claim", "claim:12", "--by", "dana"])
        .await
        .ok();
    let left = up
        .run(&["export", "--kind", "claim", "--format", "csv"])
        .await
        .ok();
    assert!(!left.stdout.contains("claim:12"), "{}", left.stdout);
}
