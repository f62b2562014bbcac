//! Ratings of what an application's AI made, of a target of its own.

use crate::harness::Up;

#[tokio::test]
async fn an_applications_own_target_is_set_rated_listed_and_removed() {
    let up = Up::ephemeral().await;
    let rate = async |value: &str| {
        let texts = ["--input", "in", "--output", "out", "--json"];
        up.run(
            &[
                &["outputs", "ratings", "submit", "TRIAGE", value, "ticket-1"],
                &texts[..],
            ]
            .concat(),
        )
        .await
    };
    let refused = rate("Right").await;
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("EVALUATE, TASK_EXTRACT"), "{refused:?}");

    for target in ["TRIAGE=Right:good,Wrong:bad", "OTHER=YES:good"] {
        up.run(&["settings", "set", "--rated-target", target]).await.ok();
    }
    let shown = up.run(&["settings", "get"]).await.ok().stdout;
    for target in ["TRIAGE=Right:good,Wrong:bad", "OTHER=YES:good"] {
        assert!(shown.contains(target), "{shown}");
    }
    let stored = rate("Wrong").await.ok().json();
    assert_eq!(stored["correction"]["rating"]["value"], "Wrong", "{stored}");

    let removed = ["settings", "set", "--remove-rated-target", "TRIAGE", "--json"];
    let removed = up.run(&removed).await.ok().json();
    assert_eq!(
        removed["ratedTargets"].as_array().map(Vec::len),
        Some(1),
        "{removed}"
    );
    assert_eq!(rate("Wrong").await.code, 2);
    let day = stored["receivedAt"].as_str().expect("a time")[..10].to_owned();
    for command in [&["outputs", "ratings"][..], &["feedback"]] {
        let asked = [
            "list", "--target", "TRIAGE", "--value", "Wrong", "--day", &day, "--json",
        ];
        let listed = up.run(&[command, &asked[..]].concat()).await.ok().stdout;
        assert!(
            listed.contains(stored["feedbackId"].as_str().expect("an id")),
            "{listed}"
        );
        let none = ["list", "--target", "TRIAGE", "--value", "Right"];
        let none = up.run(&[command, &none[..]].concat()).await.ok().stdout;
        assert!(!none.contains("TRIAGE"), "{none}");
        let nowhere = ["list", "--day", &day, "--time-zone", "Mars/Olympus"];
        let nowhere = up.run(&[command, &nowhere[..]].concat()).await;
        assert_eq!(nowhere.code, 2, "{nowhere:?}");
        assert!(nowhere.stderr.contains("time_zone"), "{nowhere:?}");
    }
}
