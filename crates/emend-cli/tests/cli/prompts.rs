//! Prompts and their versions, improvements and files, using only the command.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use emend_base::http_client::testing::{Reply, Server};
use serde_json::{Value, json};

use crate::harness::{Completed, Up};

pub(crate) const TARGET: &str = "SUMMARIZE_DAILY";

impl Up {
    /// Puts a prompt with this text.
    pub(crate) async fn puts(&self, target: &str, text: &str, more: &[&str]) -> Completed {
        let mut words = vec!["outputs", "prompts", "set", target, "-", "--json"];
        words.extend(more);
        self.run_with(&words, text).await
    }

    /// Three people find the same fault in what version 1 made.
    pub(crate) async fn rates_three_bad(&self) {
        for (number, reporter) in ["ana", "ben", "eve"].into_iter().enumerate() {
            let id = format!("daily-{number}");
            let words = [
                "outputs",
                "ratings",
                "submit",
                TARGET,
                "bad",
                &id,
                "--input",
                "A long day.",
                "--output",
                "Once upon a time…",
                "--issue",
                "too long",
                "--corrected",
                "Quiet.",
                "--prompt-version",
                "1",
                "--reporter",
                reporter,
            ];
            self.run(&words).await.ok();
        }
    }

    /// The improvement of the target; its candidate's id.
    pub(crate) async fn generates(&self) -> String {
        let generated = self
            .run(&["outputs", "prompts", "generate", TARGET, "--by", "dana", "--json"])
            .await
            .ok();
        text(&generated.json()["candidate"]["candidateId"])
    }

    pub(crate) async fn shows(&self, words: &[&str]) -> String {
        let mut all = vec!["outputs", "prompts"];
        all.extend(words);
        self.run(&all).await.ok().stdout
    }

    async fn renders(&self, words: &[&str]) -> Value {
        let mut all = vec!["outputs", "prompts", "render", TARGET, "--json"];
        all.extend(words);
        self.run(&all).await.ok().json()
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

fn rows(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[tokio::test]
async fn bad_ratings_become_a_proposal_that_a_person_reads_edits_and_approves() {
    let up = Up::ephemeral().await;
    up.puts(
        TARGET,
        "Summarise the day.\n",
        &["--setting", "model=small", "--by", "kim"],
    )
    .await
    .ok();
    let early = up.run(&["outputs", "prompts", "generate", TARGET]).await;
    assert_eq!(early.code, 4, "{early:?}");
    let stats = up.shows(&["stats", TARGET]).await;
    assert!(
        stats.contains("An improvement needs more bad ratings: 3."),
        "{stats}"
    );

    up.rates_three_bad().await;
    let stats = up.shows(&["stats", TARGET]).await;
    assert_eq!(rows(&stats)[1][..4], ["1", "0", "0", "3"], "{stats}");
    assert!(stats.contains("An improvement can be generated"), "{stats}");
    let all = up.run(&["outputs", "stats"]).await.ok().stdout;
    assert_eq!(
        rows(&all)[1],
        [TARGET, "1", "0", "0", "3", "3", "possible"],
        "{all}"
    );
    let candidate = up.generates().await;
    let again = up.run(&["outputs", "prompts", "generate", TARGET]).await;
    assert_eq!(again.code, 4, "{again:?}");
    assert!(
        again.stderr.contains("IMPROVEMENT_OPEN") || again.stderr.contains("open"),
        "{again:?}"
    );

    let pending = up.shows(&["list", "--status", "awaiting_review"]).await;
    assert_eq!(
        rows(&pending)[1][..5],
        [&candidate, TARGET, "production", "2", "awaiting_review"],
        "{pending}"
    );
    let diff = up.shows(&["diff", &candidate]).await;
    for part in [
        "version 2 of SUMMARIZE_DAILY: awaiting_review",
        "3 ratings: 0 good, 0 neutral, 3 bad",
        "@@ ",
        "too long",
    ] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    assert!(
        diff.lines().any(|line| line.starts_with('+')) && !diff.contains('\x1b'),
        "{diff}"
    );
    let open = up.shows(&["diff", TARGET]).await;
    assert_eq!(open, diff, "the proposal that is open");
    let preview = up.shows(&["preview", &candidate]).await;
    for part in [
        "Input 1 of 3, rated BAD",
        "input             A long day.",
        "issue             too long",
    ] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    let preview = up
        .shows(&["preview", &candidate, "--as-sent", "--inputs", "1"])
        .await;
    assert!(
        preview.contains("new prompt        Summarise the day."),
        "{preview}"
    );
    let shown = up.run(&["candidates", "show", &candidate]).await.ok().stdout;
    for part in [
        "2 (made for version 1)",
        "\nImprovement\n",
        "3 ratings: 0 good",
        "too long",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    let edited = "Summarise the day in one sentence.";
    let words = [
        "outputs", "prompts", "approve", &candidate, "--edit", "-", "--by", "dana", "--json",
    ];
    let approved = up.run_with(&words, edited).await.ok().json();
    let value = &approved["candidate"]["value"]["prompt"];
    assert_eq!(
        (&value["text"], &value["settings"][0]["value"]),
        (&edited.into(), &"small".into()),
        "{approved}"
    );
    assert!(
        approved["candidate"]["proposal"]["approvedAt"].is_string(),
        "{approved}"
    );
    let revision = approved["revision"].to_string();
    let rendered = up.renders(&["--min-revision", &revision]).await;
    let version = value["version"].as_i64().expect("a number");
    assert_eq!(
        (&rendered["version"], &rendered["badExamples"]),
        (&version.into(), &3.into()),
        "{rendered}"
    );
    assert!(text(&rendered["text"]).starts_with(edited), "{rendered}");
    for words in [
        &["approve", &*candidate][..],
        &["reject", &*candidate, "--reason", "late"],
    ] {
        let late = up.run(&[&["outputs", "prompts"], words].concat()).await;
        assert_eq!(late.code, 4, "{late:?}");
    }

    // The first version again, under a label of its own.
    let again = [
        "use",
        TARGET,
        "1",
        "--label",
        "staging",
        "--by",
        "lee",
        "--reason",
        "to compare",
    ];
    let first = up.run(&[&["outputs", "prompts"], &again[..]].concat()).await.ok();
    assert!(
        first
            .stderr
            .contains("no prompt of another target is current under the label \"staging\""),
        "{first:?}"
    );
    let versions = up.shows(&["list", TARGET]).await;
    let row = |number: &str| {
        let found = rows(&versions).into_iter().find(|row| row[0] == number);
        found.unwrap_or_else(|| panic!("no version {number}: {versions}"))[1..3].join(" ")
    };
    assert_eq!(row("1"), "applied staging");
    for part in ["made current by lee", "approved with changes by dana"] {
        assert!(versions.contains(part), "{part}: {versions}");
    }
    let current = up.shows(&["list"]).await;
    for (label, decided, why) in [
        ("production", "approved with changes by dana, ", ""),
        ("staging", "made current by lee, ", ": to compare"),
    ] {
        let row = current.lines().find(|row| row.contains(label));
        let row = row.unwrap_or_else(|| panic!("nothing is current under {label}: {current}"));
        assert!(row.contains(decided) && row.ends_with(why), "{current}");
    }
    let history = up.shows(&["show", TARGET, "1"]).await;
    let parts = [
        "  set by kim under production\n",
        "  replaced by dana under production\n",
        "  made current by lee under staging: to compare\n",
    ];
    let places = parts.map(|part| {
        let place = history.find(part);
        place.unwrap_or_else(|| panic!("no {part}: {history}"))
    });
    assert!(places.is_sorted(), "{history}");
    assert_eq!(row(&version.to_string()), "applied production");
    let shown = up.shows(&["show", TARGET, "--label", "staging"]).await;
    assert!(
        shown.contains("version 1: current under staging") && shown.contains("Summarise the day."),
        "{shown}"
    );
    let diff = up.shows(&["diff", TARGET, "1"]).await;
    assert!(
        diff.contains("-Summarise the day in one sentence.\n") && diff.contains("+Summarise the day.\n"),
        "{diff}"
    );
    let used = up
        .run(&["outputs", "prompts", "use", TARGET, "1", "--label", "staging"])
        .await;
    assert_eq!(used.code, 4, "{used:?}");
}

#[tokio::test]
async fn a_label_that_no_other_target_has_is_a_warning_each_time() {
    let up = Up::ephemeral().await;
    let puts = async |target: &str, text: &str| {
        let put = up.puts(target, text, &["--label", "stagign"]).await.ok().json();
        // The next warning is of what the service has read by then.
        let (label, revision) = (["--label", "stagign"], put["revision"].to_string());
        let read = [
            "outputs",
            "prompts",
            "render",
            target,
            "--min-revision",
            &revision,
        ];
        up.run(&[&read[..], &label].concat()).await.ok();
        put["warnings"].clone()
    };
    let warning = "no prompt of another target is current under the label \"stagign\": only who asks for that label gets \
                   this one, and who names none gets that of production";
    for text in ["One.", "Two."] {
        assert_eq!(puts(TARGET, text).await, json!([warning]), "{text}");
    }
    let again = ["outputs", "prompts", "use", TARGET, "1", "--label", "stagign"];
    let used = up.run(&again).await.ok();
    assert!(used.stderr.contains(warning), "{used:?}");
    for target in ["INTERPRET", TARGET] {
        assert_eq!(puts(target, "Three.").await, json!([]), "{target}");
    }
    let usual = up.puts(TARGET, "Four.", &[]).await.ok().json();
    assert_eq!(usual["warnings"], json!([]), "the label that nobody has to name");
}

#[tokio::test]
async fn statistics_of_what_is_no_target_say_so() {
    let up = Up::ephemeral().await;
    for words in [&["outputs", "stats"][..], &["outputs", "prompts", "stats"]] {
        let unknown = up.run(&[words, &["nope"]].concat()).await;
        assert_eq!(unknown.code, 2, "{unknown:?}");
        assert!(
            unknown
                .stderr
                .contains("\"nope\" is not a target: there are INTERPRET"),
            "{unknown:?}"
        );
        let known = up.run(&[words, &["interpret"]].concat()).await.ok();
        assert!(
            known.stdout.starts_with("INTERPRET has no ratings.\n"),
            "{known:?}"
        );
    }
}

/// A model that is away, silent, refuses the key, and then answers.
async fn whimsical_model() -> Server {
    let asked = AtomicUsize::new(0);
    let answer = json!({"prompt": "Summarise the day in one line.", "reason": "Shorter."}).to_string();
    Server::start(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Status(503, "retry-after: 0\r\n".into(), ""),
        1 => Reply::Hang,
        2 => Reply::Status(
            401,
            String::new(),
            r#"{"error": {"message": "no such key: k-17"}}"#,
        ),
        _ => Reply::Json(json!({"choices": [{"message": {"content": answer}}]})),
    })
    .await
}

#[tokio::test]
async fn every_setting_of_the_generator_reaches_the_model_and_what_it_refuses_is_told() {
    let model = whimsical_model().await;
    let url = format!("--generator-url={}/v1", model.url);
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    fs::write(&key, "k-17\n").expect("a file");
    let key = format!("--generator-key-file={}", key.display());
    let up = Up::start(&[
        "--ephemeral",
        &url,
        "--generator-model=small-1",
        &key,
        "--generator-timeout=1s",
        "--generator-attempts=2",
        r#"--generator-parameters={"seed": 7, "temperature": null}"#,
    ])
    .await;
    up.puts(TARGET, "Summarise the day.", &[]).await.ok();
    up.rates_three_bad().await;
    let generate = ["outputs", "prompts", "generate", TARGET];
    let away = up.run(&generate).await;
    assert_eq!(away.code, 5, "{away:?}");
    for part in ["GENERATOR_UNAVAILABLE", "no answer within 1s (attempt 2 of 2)"] {
        assert!(away.stderr.contains(part), "{part}: {away:?}");
    }
    let refused = up.run(&[&generate[..], &["--json"]].concat()).await;
    assert_eq!(refused.code, 4, "{refused:?}");
    let error: Value = serde_json::from_str(&refused.stderr).expect("JSON");
    assert_eq!(
        (&error["error"]["code"], &error["error"]["reason"]),
        (&json!("FAILED_PRECONDITION"), &json!("GENERATOR_REFUSED"))
    );
    let message = text(&error["error"]["message"]);
    let told = "answered 401 Unauthorized: no such key: [key] (see --generator-key-file and --generator-url)";
    assert!(message.ends_with(told), "{message}");
    let candidate = up.generates().await;
    let diff = up.shows(&["diff", &candidate]).await;
    assert!(diff.contains("+Summarise the day in one line."), "{diff}");

    let asked = model.asked();
    assert_eq!(asked.len(), 4, "{asked:?}");
    for asked in asked {
        let (head, body) = asked.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("POST /v1/chat/completions "), "{head}");
        assert!(head.contains("authorization: Bearer k-17\r\n"), "{head}");
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!((&body["model"], &body["seed"]), (&json!("small-1"), &json!(7)));
        assert_eq!(body.get("temperature"), None, "{body}");
    }
}

#[tokio::test]
async fn a_rejected_proposal_says_why_and_changes_nothing() {
    let up = Up::ephemeral().await;
    up.puts(TARGET, "Summarise the day.", &[]).await.ok();
    up.rates_three_bad().await;
    let candidate = up.generates().await;
    let words = [
        "outputs",
        "prompts",
        "reject",
        &candidate,
        "--reason",
        "we want long ones",
        "--by",
        "dana",
    ];
    let rejected = up.run(&words).await.ok().stdout;
    assert_eq!(
        rejected,
        "Rejected version 2 of SUMMARIZE_DAILY (nothing changed for nodes)\n"
    );
    let listed = up.shows(&["list", "--status", "rejected"]).await;
    assert!(listed.contains(&candidate), "{listed}");
    assert_eq!(up.renders(&[]).await["version"], 1);
}

#[tokio::test]
async fn a_prompt_is_rendered_byte_for_byte_with_its_variables() {
    let up = Up::ephemeral().await;
    let prompt = "{{day}}: {{tone}}, {{other}}\r\n\n";
    up.puts(TARGET, prompt, &["--variable", "day", "--variable", "tone=dry"])
        .await
        .ok();
    let rendered = up
        .run(&[
            "outputs",
            "prompts",
            "render",
            TARGET,
            "--variable",
            "day={{tone}}",
        ])
        .await
        .ok();
    assert_eq!(rendered.stdout, "{{tone}}: dry, {{other}}\r\n\n");
    let missing = up.run(&["outputs", "prompts", "render", TARGET]).await;
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.stderr.contains("variables[day]"), "{missing:?}");
    let unknown = up.run(&["outputs", "prompts", "show", "NOTHING"]).await;
    assert_eq!(unknown.code, 3, "{unknown:?}");
    let unplaced = up.puts(TARGET, "no place", &["--variable", "day"]).await;
    assert_eq!(unplaced.code, 2, "{unplaced:?}");
    assert!(unplaced.stderr.contains("{{day}}"), "{unplaced:?}");
}

#[tokio::test]
async fn a_file_from_any_editor_is_read_and_names_that_are_no_variables_are_told() {
    let up = Up::ephemeral().await;
    let notepad = "\u{FEFF}---\r\nvariables:\r\n  day: \"today\"\r\nsettings:\r\n  model: small\r\n---\r\nSummarise {{day}}.\r\n";
    let put = up.puts(TARGET, notepad, &[]).await.ok();
    assert_eq!(put.json()["warnings"], Value::Array(Vec::new()));
    let render = ["outputs", "prompts", "render", TARGET, "--variable", "day=Monday"];
    assert_eq!(up.run(&render).await.ok().stdout, "Summarise Monday.\r\n");
    let put = up
        .puts(
            TARGET,
            "Use {{ day }} and {{day}}, {{ tone }}.",
            &["--variable", "day=today"],
        )
        .await
        .ok();
    assert_eq!(
        up.run(&render).await.ok().stdout,
        "Use Monday and Monday, {{ tone }}.\n"
    );
    let exact = up.run(&[&render[..], &["--json"]].concat()).await.ok().json();
    assert_eq!(exact["text"], "Use Monday and Monday, {{ tone }}.");
    let warning = "{{tone}} is no variable of the prompt: it is sent as it stands";
    assert_eq!(put.json()["warnings"], Value::from(vec![warning]));
    assert!(put.stderr.contains(warning), "{put:?}");
}

/// All files of a directory that are not hidden, by name.
fn held(directory: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry"));
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().expect("text");
        (name, fs::read_to_string(entry.path()).expect("a file"))
    });
    let mut files: Vec<_> = files.filter(|(name, _)| !name.starts_with('.')).collect();
    files.sort();
    files
}

#[tokio::test]
async fn push_after_pull_changes_nothing_and_push_puts_only_what_differs() {
    let up = Up::ephemeral().await;
    let daily = "---\nvariables:\n  day:\n  tone: \"\\\"dry\\\"\\n\"\nsettings:\n  model: \"small\"\n---\n{{day}}{{tone}}\r\n";
    up.puts("summarize-daily", daily, &[]).await.ok();
    let unknown = up.puts("日報", "Report.", &[]).await;
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(
        unknown.stderr.contains("is not a target: there are INTERPRET"),
        "{unknown:?}"
    );
    for target in ["mail/reply 50%", "日報", "NEW"] {
        let values = format!("{target}=GOOD:good,BAD:bad");
        up.run(&["settings", "set", "--rated-target", &values]).await.ok();
    }
    up.puts("mail/reply 50%", "---\n---\nReply.", &[]).await.ok();
    up.puts("日報", "---\n---\n---\nlooks like a header\n", &[])
        .await
        .ok();
    let staged = ["--label", "staging"];
    let staged = up.puts("INTERPRET", "only staging", &staged).await.ok();
    assert!(
        staged
            .stderr
            .contains("no prompt of another target is current under the label \"staging\""),
        "{staged:?}"
    );
    let root = tempfile::tempdir().expect("a directory");
    let directory = root.path().join("prompts");
    let path = directory.to_str().expect("text");

    let dry = up.shows(&["pull", path, "--dry-run"]).await;
    assert!(
        dry.contains("SUMMARIZE_DAILY.md: would be created") && !directory.exists(),
        "{dry}"
    );
    up.shows(&["pull", path]).await;
    let pulled = held(&directory);
    let expected = [
        ("SUMMARIZE_DAILY.md", daily),
        ("mail%2Freply%2050%25.md", "Reply."),
        ("日報.md", "---\n---\n---\nlooks like a header\n"),
    ];
    let expected = expected.map(|(name, contents)| (name.to_owned(), contents.to_owned()));
    assert_eq!(pulled, expected);
    let before = up
        .run(&["outputs", "prompts", "list", "--json"])
        .await
        .ok()
        .stdout;
    assert_eq!(up.shows(&["push", path]).await, "3 unchanged\n");
    assert_eq!(up.shows(&["pull", path]).await, "3 unchanged\n");
    assert_eq!(
        up.run(&["outputs", "prompts", "list", "--json"])
            .await
            .ok()
            .stdout,
        before
    );
    assert_eq!(held(&directory), pulled);

    fs::write(directory.join("mail%2Freply%2050%25.md"), "Reply briefly.").expect("a file");
    fs::write(
        directory.join("NEW.md"),
        "---\nsettings:\n  model: small # bare\n---\nNew.",
    )
    .expect("a file");
    fs::write(directory.join("notes.txt"), "not a prompt").expect("a file");
    let dry = up.shows(&["push", path, "--dry-run"]).await;
    assert!(
        dry.contains("-Reply.\n") && dry.contains("+Reply briefly.\n") && dry.ends_with("2 unchanged\n"),
        "{dry}"
    );
    assert_eq!(
        up.run(&["outputs", "prompts", "list", "--json"])
            .await
            .ok()
            .stdout,
        before
    );
    let pushed = up
        .run(&["outputs", "prompts", "push", path, "--by", "dana", "--json"])
        .await
        .ok()
        .lines();
    let actions: Vec<(String, String, i64)> = pushed
        .iter()
        .map(|line| {
            (
                text(&line["target"]),
                text(&line["action"]),
                line["version"].as_i64().unwrap_or(0),
            )
        })
        .collect();
    let action = |target: &str, action: &str, version| (target.to_owned(), action.to_owned(), version);
    assert_eq!(
        actions,
        [
            action("NEW", "set", 1),
            action(TARGET, "unchanged", 1),
            action("mail/reply 50%", "set", 2),
            action("日報", "unchanged", 1),
        ]
    );
    assert_eq!(up.shows(&["push", path]).await, "4 unchanged\n");

    // A file that says an earlier version is brought up to date; one with changes of its own only by force.
    up.puts("日報", "Newer.", &[]).await.ok();
    assert_eq!(
        up.shows(&["pull", path]).await,
        "日報.md: updated, version 2\n3 unchanged\n"
    );
    fs::write(directory.join("日報.md"), "Mine.").expect("a file");
    let refused = up.run(&["outputs", "prompts", "pull", path]).await;
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("not pushed: 日報.md"), "{refused:?}");
    assert_eq!(
        fs::read_to_string(directory.join("日報.md")).expect("the file"),
        "Mine."
    );
    up.shows(&["pull", path, "--force"]).await;
    assert_eq!(
        fs::read_to_string(directory.join("日報.md")).expect("the file"),
        "Newer."
    );

    // What others set since the pull is set over only by force.
    up.puts("日報", "Theirs.", &[]).await.ok();
    fs::write(directory.join("日報.md"), "Mine.").expect("a file");
    for more in [&["--dry-run"][..], &[]] {
        let refused = up
            .run(&[&["outputs", "prompts", "push", path], more].concat())
            .await;
        assert_eq!(refused.code, 4, "{refused:?}");
        assert!(
            refused
                .stderr
                .contains("others set something else since it was pulled: 日報.md"),
            "{refused:?}"
        );
        assert_eq!(refused.stdout, "3 unchanged\n");
    }
    assert!(up.shows(&["show", "日報"]).await.ends_with("\n\nTheirs.\n"));
    up.shows(&["push", path, "--force"]).await;
    assert_eq!(up.shows(&["push", path]).await, "4 unchanged\n");
    let earlier = up.shows(&["show", "日報", "1"]).await;
    assert!(earlier.contains("looks like a header"), "{earlier}");

    // Files that are no prompt are named, and the others go on.
    fs::write(directory.join("NEW.md"), "New again.").expect("a file");
    fs::write(directory.join("BROKEN.md"), "---\nsettings:\n").expect("a file");
    fs::write(directory.join("interpret.md"), "---\nA rule above. {{day}}").expect("a file");
    fs::write(directory.join("UNKNOWN.md"), "Nobody's.").expect("a file");
    let refused = up.run(&["outputs", "prompts", "push", path]).await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("BROKEN.md: line 2: the header has no end"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("\"UNKNOWN\" is not a target"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("interpret.md: {{day}} is no variable"),
        "{refused:?}"
    );
    for (target, version) in [("NEW", "version 2"), ("Interpret", "version 2")] {
        let shown = up.shows(&["show", target]).await;
        assert!(shown.contains(version), "{shown}");
    }
    let changes = up.shows(&["diff", "NEW"]).await;
    assert!(
        changes.contains("-New.") && changes.contains("+New again."),
        "{changes}"
    );
}

#[tokio::test]
async fn what_others_set_is_noticed_whatever_was_done_since_the_pull() {
    let up = Up::ephemeral().await;
    up.puts("INTERPRET", "First.", &[]).await.ok();
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let path = directory.path().to_str().expect("text");
    let writes = |text: &str| fs::write(at("INTERPRET.md"), text).expect("a file");
    let refused = async |why: &str, code: i32| {
        let refused = up.run(&["outputs", "prompts", "push", path]).await;
        assert_eq!(refused.code, code, "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    };
    let overtaken = "others set something else since it was pulled: INTERPRET.md";

    // A file that came another way is known once it was pushed, and not by a dry run.
    writes("First.");
    assert_eq!(up.shows(&["push", path, "--dry-run"]).await, "1 unchanged\n");
    assert!(!at(".emend-pulled").exists());
    assert_eq!(up.shows(&["push", path]).await, "1 unchanged\n");
    up.puts("INTERPRET", "Theirs.", &[]).await.ok();
    writes("Mine.");
    refused(overtaken, 4).await;

    // A pull that writes nothing takes nothing.
    let left = up.run(&["outputs", "prompts", "pull", path]).await;
    assert_eq!(left.code, 4, "{left:?}");
    up.shows(&["pull", path, "--dry-run", "--force"]).await;
    refused(overtaken, 4).await;

    // Under another label and in another namespace, nothing was pulled.
    for elsewhere in [["--label", "staging"], ["--namespace", "elsewhere"]] {
        let pushed = up.shows(&[&["push", path], &elsewhere[..]].concat()).await;
        assert!(pushed.starts_with("INTERPRET.md: set, "), "{pushed}");
    }

    // Each push is what the next one is compared with.
    up.shows(&["pull", path, "--force"]).await;
    for text in ["Mine.", "Mine, too."] {
        writes(text);
        up.shows(&["push", path]).await;
    }
    fs::write(at(".emend-pulled"), "{").expect("a file");
    writes("Unnoticed.");
    refused("without it, what others set is not noticed", 2).await;
}

#[tokio::test]
async fn rated_outputs_are_exported_for_training() {
    let up = Up::ephemeral().await;
    up.puts(TARGET, "Summarise the day.", &[]).await.ok();
    up.rates_three_bad().await;
    let chat = up
        .run(&["outputs", "prompts", "export", TARGET, "--format", "chat"])
        .await
        .ok();
    assert!(chat.stderr.starts_with("emend: examples: "), "{chat:?}");
    let lines = chat.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in &lines {
        let messages = line["messages"].as_array().expect("messages");
        assert_eq!(messages[0]["content"], "Summarise the day.", "{line}");
        assert_eq!(messages.last().expect("a message")["content"], "Quiet.", "{line}");
    }
    let pairs = up
        .run(&["outputs", "prompts", "export", TARGET, "--format", "preference"])
        .await
        .ok()
        .lines();
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    assert_eq!(
        (&pairs[0]["chosen"], &pairs[0]["rejected"]),
        (&"Quiet.".into(), &"Once upon a time…".into())
    );
    let again = up
        .run(&["outputs", "prompts", "export", TARGET, "--format", "chat"])
        .await
        .ok();
    assert_eq!(again.stdout, chat.stdout, "the same split in every export");
}
