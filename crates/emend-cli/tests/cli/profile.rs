//! Profiles and suggestions, using only the command.

use serde_json::{Value, json};

use crate::harness::Up;

impl Up {
    async fn profile(&self, words: &[&str]) -> Vec<Value> {
        let mut all = vec!["outputs", "profile"];
        all.extend(words);
        all.extend(["--user", "mia", "--json"]);
        self.run(&all).await.ok().lines()
    }
}

#[tokio::test]
async fn a_user_sets_a_profile_and_decides_what_is_suggested() {
    let up = Up::ephemeral().await;
    let set = [
        "set",
        "--years",
        "5",
        "--technology",
        "Rust",
        "--technology",
        "SQL",
        "--goal",
        "Kubernetes",
        "--specialty",
        "Search",
    ];
    let changed = up.profile(&set).await.remove(0);
    let profile = &changed["profile"];
    assert_eq!(
        (&profile["experienceYears"], &profile["learningGoals"]),
        (&5.into(), &json!(["Kubernetes"]))
    );
    up.profile(&["set", "--clear", "specialties", "--technology", "Rust"])
        .await;
    let shown = up
        .run(&["outputs", "profile", "show", "--user", "mia"])
        .await
        .ok()
        .stdout;
    for line in [
        "experience      5 years",
        "specialties     –",
        "knows           Rust",
        "wants to learn  Kubernetes",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }

    let courses = [
        r#"{"id": "rust-101", "topics": ["rust"]}"#,
        r#"{"id": "rust-301", "topics": ["Rust"], "level": "ADVANCED"}"#,
        r#"{"id": "k8s-101", "topics": ["kubernetes"]}"#,
    ];
    let rank = ["outputs", "profile", "rank", "--user", "mia", "-", "--json"];
    let ranked = up.run_with(&rank, &courses.join("\n")).await.ok().json();
    assert_eq!(
        ranked,
        json!({"ids": ["k8s-101", "rust-301"], "leftOutIds": ["rust-101"]})
    );

    let record = [
        "record",
        "--source",
        "GITHUB",
        "--id",
        "pr-17",
        "--technology",
        "Go",
        "--technology",
        "ｒｕｓｔ",
    ];
    assert_eq!(up.profile(&record).await, [json!({"recorded": 1})]);
    assert_eq!(up.profile(&record).await, [json!({"recorded": 0})]);
    assert_eq!(
        up.profile(&["suggest"]).await,
        [] as [Value; 0],
        "once is not enough"
    );
    up.profile(&[
        "record",
        "--source",
        "GITHUB",
        "--id",
        "pr-18",
        "--technology",
        "Go",
    ])
    .await;
    let suggested = up.profile(&["suggest"]).await;
    let entries: Vec<&Value> = suggested
        .iter()
        .map(|suggestion| &suggestion["candidate"]["value"]["profile"]["entry"])
        .collect();
    assert_eq!(entries, [&json!("Go")], "{suggested:?}");
    assert_eq!(
        up.profile(&["suggest"]).await,
        [] as [Value; 0],
        "it waits already"
    );
    let table = up
        .run(&["outputs", "profile", "suggestions", "--user", "mia"])
        .await
        .ok()
        .stdout;
    assert!(
        table.contains("technology  Go")
            && table.contains("awaiting_review")
            && table.contains("GITHUB pr-18"),
        "{table}"
    );

    let id = suggested[0]["candidate"]["candidateId"].as_str().expect("an id");
    let other = up
        .run(&["outputs", "profile", "accept", id, "--user", "eve"])
        .await;
    assert_eq!(other.code, 3, "{other:?}");
    let own = up
        .run(&["candidates", "list", "--user", "mia", "--json"])
        .await
        .ok()
        .lines();
    assert_eq!(own[0]["candidateId"], id);
    let everybodys = up.run(&["candidates", "list"]).await.ok().stdout;
    let others = ["pending", "applied", "rejected", "superseded", "withdrawn"].join(" --status ");
    assert_eq!(
        everybodys,
        format!(
            "No candidates with the status awaiting_review in the namespace \"default\".\nFor others: --status {others}\n"
        )
    );
    let shown = up.run(&["candidates", "show", id]).await.ok().stdout;
    assert!(
        shown.contains("suggests    technology (") && shown.contains("from        GITHUB pr-18"),
        "{shown}"
    );
    let accepted = up.profile(&["accept", id]).await.remove(0);
    assert_eq!(
        accepted["profile"]["knownTechnologies"],
        json!(["Go", "Rust"]),
        "{accepted}"
    );
    for words in [&["accept", id][..], &["reject", id]] {
        let again = up
            .run(&[&["outputs", "profile"], words, &["--user", "mia"]].concat())
            .await;
        assert_eq!(again.code, 4, "{again:?}");
    }

    up.profile(&[
        "record", "--source", "LEARNING", "--id", "course-3", "--goal", "Haskell",
    ])
    .await;
    let suggested = up.profile(&["suggest"]).await;
    let id = suggested[0]["candidate"]["candidateId"].as_str().expect("an id");
    up.profile(&["reject", id, "--reason", "not now"]).await;
    assert_eq!(
        up.profile(&["suggest"]).await,
        [] as [Value; 0],
        "a rejected one is not made again"
    );
    assert_eq!(
        up.profile(&["suggestions", "--status", "rejected"]).await.len(),
        1
    );
}

#[tokio::test]
async fn a_profile_is_a_section_of_its_users_prompts_only() {
    let up = Up::ephemeral().await;
    up.run_with(&["outputs", "prompts", "set", "interpret", "-"], "Answer.")
        .await
        .ok();
    let changed = up.profile(&["set", "--technology", "Rust"]).await.remove(0);
    let revision = changed["revision"].to_string();
    let render = async |user: &str, language: &str| {
        let words = [
            "outputs",
            "prompts",
            "render",
            "INTERPRET",
            "--user",
            user,
            "--language",
            language,
            "--min-revision",
            &revision,
        ];
        up.run(&words).await.ok().stdout
    };
    assert_eq!(render("eve", "en").await, "Answer.\n");
    for language in ["en", "ja"] {
        let text = render("mia", language).await;
        assert!(text.starts_with("Answer.") && text.contains("Rust"), "{text}");
    }
}

#[tokio::test]
async fn what_a_command_line_says_twice_or_not_at_all_is_refused() {
    let up = Up::ephemeral().await;
    for (words, why) in [
        (
            &["--years", "5", "--clear", "years"][..],
            "experience_years is given too",
        ),
        (&[], "nothing to set"),
    ] {
        let refused = up
            .run(&[&["outputs", "profile", "set", "--user", "mia"], words].concat())
            .await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
}
