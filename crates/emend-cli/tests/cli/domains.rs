//! Decisions about domains, using only the command.

use tokio::time::timeout;

use crate::harness::{TIMEOUT, Up, command, run};

#[tokio::test]
async fn a_domain_is_blocked_checked_exported_and_cleared() {
    let up = Up::ephemeral().await;
    let reason = ["--reason", "copies others"];
    let blocked = up
        .run(&[&["evidence", "domains", "block", "Spam.Example."], &reason[..]].concat())
        .await
        .ok();
    assert!(
        blocked.stdout.contains("is blocked. It applies."),
        "{}",
        blocked.stdout
    );
    let trusted = [
        &[
            "evidence",
            "domains",
            "trust",
            "*.example.edu",
            "academic",
            "--json",
        ],
        &reason[..],
    ]
    .concat();
    assert_eq!(
        up.run(&trusted).await.ok().json()["outcome"]["state"],
        "OUTCOME_STATE_APPLIED"
    );

    let checked = up
        .run(&["evidence", "domains", "check", "WWW.spam.example"])
        .await
        .ok();
    assert_eq!(
        checked.stdout,
        "www.spam.example is blocked\ndecided about spam.example: block (by people, revision 1)\n"
    );
    let checked = up
        .run(&["evidence", "domains", "check", "cs.example.edu", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        (&checked["level"], &checked["blocked"]),
        (&"academic".into(), &false.into())
    );
    let unknown = up
        .run(&["evidence", "domains", "check", "example.edu"])
        .await
        .ok();
    assert!(
        unknown.stdout.contains("nothing was decided about it"),
        "{}",
        unknown.stdout
    );

    let listed = up.run(&["evidence", "domains", "list"]).await.ok().stdout;
    let rows: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0][..4], ["PATTERN", "LAYER", "DECISION", "NOW"]);
    assert_eq!(rows[1][..4], ["*.example.edu", "human", "academic", "academic"]);
    assert_eq!(rows[2][..4], ["spam.example", "human", "block", "blocked"]);

    // What is exported can be imported; a row that is no decision is refused by name.
    let exported = up
        .run(&["export", "--kind", "domain_rule", "--format", "csv"])
        .await
        .ok()
        .stdout;
    assert_eq!(
        exported,
        "type,input,choice,relation,user_id\ndomain_rule,*.example.edu,academic,,\ndomain_rule,Spam.Example.,block,,\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.csv");
    std::fs::write(&file, format!("{exported}domain,mirror.example,unblock:low,,\n")).unwrap();
    // What is imported is the importer's own decision, also where somebody decided alike before.
    for expected in [(3, 0), (0, 3)] {
        let imported = up
            .run(&["import", file.to_str().unwrap(), "--json"])
            .await
            .ok()
            .json();
        assert_eq!(
            (&imported["appliedCount"], &imported["unchangedCount"]),
            (&expected.0.into(), &expected.1.into())
        );
    }
    std::fs::write(&file, "type,pattern,decision\ndomain,mirror.example,hide\n").unwrap();
    let refused = up.run(&["import", file.to_str().unwrap()]).await;
    assert!(
        refused.stderr.contains("choice: must be block, unblock"),
        "{}",
        refused.stderr
    );

    let cleared = up
        .run(&[&["evidence", "domains", "clear", "spam.example"], &reason[..]].concat())
        .await
        .ok();
    assert!(
        cleared
            .stdout
            .contains("has no rule of its own, and the default applies again. It applies."),
        "{}",
        cleared.stdout
    );
    let put = [
        "resources",
        "set",
        "domain",
        "spam.example",
        "low",
        "--by",
        "dana",
    ];
    up.run(&put).await.ok();
    let checked = up
        .run(&["evidence", "domains", "check", "spam.example"])
        .await
        .ok();
    assert!(
        checked
            .stdout
            .starts_with("the trust of spam.example is low (weight 0.40)"),
        "{}",
        checked.stdout
    );
    let above = up
        .run(&[&["evidence", "domains", "block", "co.jp"], &reason[..]].concat())
        .await;
    assert!(
        above.stderr.contains("must name a domain below a public suffix"),
        "{}",
        above.stderr
    );
}

#[tokio::test]
async fn what_is_no_host_is_answered_with_what_to_pass() {
    for wrong in ["https://www.example.org/a", "*", "*.example.org", "1.2.3.4"] {
        let refused = run(&["evidence", "domains", "check", wrong]).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.stderr.contains("Pass the name of one host"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn ratings_are_listed_with_what_they_count_as_and_whether_they_were_taken_back() {
    let up = Up::ephemeral().await;
    let rated = ["1", "2"].map(|output| {
        [
            "outputs",
            "ratings",
            "submit",
            "INTERPRET",
            "good",
            output,
            "--input",
            "in",
            "--output",
            "out",
            "--json",
        ]
    });
    let mut ids = Vec::new();
    for arguments in rated {
        let stored = up.run(&arguments).await.ok().json();
        ids.push(stored["feedbackId"].as_str().unwrap().to_owned());
    }
    up.run(&["retract", &ids[1]]).await.ok();
    for command in [&["outputs", "ratings", "list"][..], &["feedback", "list"]] {
        let listed = up.run(command).await.ok().stdout;
        let of = |id: &str| listed.lines().find(|line| line.contains(id)).unwrap().to_owned();
        let (kept, taken_back) = (of(&ids[0]), of(&ids[1]));
        for text in ["INTERPRET", "GOOD"] {
            assert!(kept.contains(text), "{listed}");
        }
        assert!(
            !kept.contains("retracted") && taken_back.contains("retracted"),
            "{listed}"
        );
        assert_ne!(kept.split(' ').next_back(), taken_back.split(' ').next_back());
    }
}

#[tokio::test]
async fn what_a_variable_sets_is_not_shown_as_required() {
    let refused = command()
        .args(["evidence", "domains", "block", "--reporter", "ana"])
        .env("EMEND_NAMESPACE", "research")
        .output()
        .await
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        told.contains("Usage: emend evidence domains block --reason <TEXT> --reporter <ID> <PATTERN>"),
        "{told}"
    );
}

#[tokio::test]
async fn a_trust_file_is_applied_once_and_what_it_blocks_is_listed_and_restored() {
    let up = Up::ephemeral().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trust.toml");
    let path = file.to_str().unwrap();
    let write = |version: u32, blocked: &str| {
        std::fs::write(
            &file,
            format!(
                "namespaces = [\"default\", \"research\"]\nversion = {version}\nblocked = [{blocked}]\n\
                 domains = [{{ pattern = \"gov\", level = \"government\" }}]\n"
            ),
        )
        .unwrap();
    };
    write(1, "\"spam.example\", \"copies.example\"");
    let apply = ["evidence", "trust", "apply", path, "--by", "dana", "--json"];
    let applied = up.run(&apply).await.ok().json();
    let first = &applied["namespaces"][0];
    assert_eq!(
        (&first["applied"], &first["set"], &first["revision"]),
        (&true.into(), &3.into(), &1.into())
    );
    assert_eq!(
        first["operation_id"], applied["namespaces"][1]["operation_id"],
        "{applied}"
    );
    let again = up.run(&["evidence", "trust", "apply", path]).await.ok().stdout;
    assert!(again.contains("nothing to do"), "{again}");
    write(1, "\"spam.example\"");
    let same = up.run(&["evidence", "trust", "apply", path]).await;
    assert_eq!(same.code, 4, "{}", same.stderr);
    assert!(
        same.stderr.contains("with other content: raise it"),
        "{}",
        same.stderr
    );
    write(2, "\"spam.example\", \"com\"");
    let refused = up.run(&["evidence", "trust", "apply", path]).await;
    assert!(
        refused.stderr.contains("content.blocked[1]"),
        "{}",
        refused.stderr
    );
    write(2, "\"spam.example\"");
    let ended = up.run(&apply).await.ok().json();
    assert_eq!(ended["namespaces"][0]["ended"], 1, "{ended}");
    write(1, "\"spam.example\"");
    let older = up.run(&["evidence", "trust", "apply", path]).await.ok().stdout;
    assert!(
        older.contains("not applied: a newer version is in force"),
        "{older}"
    );

    let listed = up
        .run(&["evidence", "domains", "list", "--layer", "file", "--all"])
        .await
        .ok()
        .stdout;
    assert_eq!(listed.lines().count(), 5, "{listed}");
    let blocked = up
        .run(&["evidence", "domains", "blocked", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        (&blocked["domain"], &blocked["layer"], &blocked["reason"]),
        (
            &"spam.example".into(),
            &"file".into(),
            &"trust file version 1".into()
        )
    );
    let unblock = [
        "evidence",
        "domains",
        "unblock",
        "spam.example",
        "--reason",
        "it is kept well",
    ];
    up.run(&unblock).await.ok();
    let none = up.run(&["evidence", "domains", "blocked"]).await.ok().stdout;
    assert!(none.contains("No blocked domains"), "{none}");
}

#[tokio::test]
async fn a_trust_file_that_the_pair_is_started_with_is_applied() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trust.yaml");
    std::fs::write(
        &file,
        "namespaces: [default]\nversion: 1\nblocked: [spam.example]\n",
    )
    .unwrap();
    let up = Up::start(&["--ephemeral", "--trust-file", file.to_str().unwrap()]).await;
    let is_applied = async {
        // It is applied beside the start; each question is a process of its own.
        while !up
            .run(&["evidence", "domains", "blocked"])
            .await
            .ok()
            .stdout
            .contains("spam.example")
        {}
    };
    timeout(TIMEOUT, is_applied).await.expect("it is applied");
}
