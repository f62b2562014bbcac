//! Queries and ratings of what they found: what the commands about them print.

use std::fs;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{Completed, TIMEOUT, Up};

/// Runs a command again until it prints something that is right.
async fn until(up: &Up, args: &[&str], is_right: impl Fn(&Completed) -> bool) -> Completed {
    let asked = async {
        loop {
            let printed = up.run(args).await.ok();
            if is_right(&printed) {
                return printed;
            }
        }
    };
    timeout(TIMEOUT, asked)
        .await
        .unwrap_or_else(|_| panic!("{args:?} does not print what is right"))
}

/// The words of a table's row, from this word on.
fn row<'a>(printed: &'a Completed, from: &str) -> Vec<&'a str> {
    let rows = printed.stdout.lines().map(|line| line.split_whitespace());
    let mut rows = rows.map(|words| words.skip_while(|word| *word != from).collect::<Vec<_>>());
    rows.find(|words| !words.is_empty())
        .unwrap_or_else(|| panic!("no row has {from}: {printed:#?}"))
}

/// Two queries with what was found, a click, and three ratings, of which one is of a query that was not recorded.
/// Returns their ids.
async fn searched_and_rated(up: &Up) -> [String; 3] {
    let first = [
        "search",
        "queries",
        "record",
        "q-1",
        "cards that bounce",
        "--type",
        "SEMANTIC",
        "--hits",
        "2",
        "--result",
        "c-1=Gust:0.7",
        "--result",
        "c-2=Storm: the return:0.4",
        "--session",
        "s-1",
        "--variant",
        "A",
        "--index-version",
        "7",
        "--min-score",
        "0.4",
        "--searched-in",
        "effects",
        "--searched-in",
        "qa",
    ];
    let recorded = up.run(&first).await.ok();
    assert_eq!(recorded.stdout, "1 query is recorded, and listed within 250 ms\n");
    let second = [
        "search",
        "queries",
        "record",
        "q-2",
        "=cards(that) draw",
        "--type",
        "HYBRID",
        "--hits",
        "0",
        "--variant",
        "B",
        "--json",
    ];
    assert_eq!(up.run(&second).await.ok().json(), json!({"recordedCount": 1}));
    let click = ["search", "queries", "interact", "q-1", "c-2", "--position", "2"];
    assert_eq!(
        up.run(&click).await.ok().stdout,
        "1 interaction is recorded, and listed within 250 ms\n"
    );
    until(
        up,
        &["search", "queries", "list", "--json", "--query-id", "q-1"],
        |printed| {
            let lines = printed.lines();
            lines
                .first()
                .is_some_and(|query| query["interactions"][0]["objectId"] == "c-2")
        },
    )
    .await;
    until(up, &["search", "queries", "list", "--json"], |printed| {
        printed.lines().len() == 2
    })
    .await;

    let down = [
        "search",
        "rate",
        "q-1",
        "-1",
        "--reporter",
        "ana",
        "--reason",
        "nothing <b>returns</b>",
    ];
    let down = up.run(&down).await.ok();
    let down = down
        .stdout
        .strip_prefix("Stored; the query is known.\nfeedback ")
        .expect("it says so and its id");
    let down = down.trim_end().to_owned();
    let up_vote = up
        .run(&["search", "rate", "q-2", "up", "--reporter", "ana", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(
        up_vote["searchRating"]["contextState"], "CONTEXT_STATE_COMPLETE",
        "{up_vote}"
    );
    let rate_unknown = [
        "search",
        "rate",
        "q-9",
        "neutral",
        "--session",
        "s-9",
        "--request-id",
        "r-9",
    ];
    let neutral = up
        .run(&[&rate_unknown[..], &["--json"]].concat())
        .await
        .ok()
        .json();
    assert_eq!(
        neutral["searchRating"]["contextState"], "CONTEXT_STATE_PENDING",
        "{neutral}"
    );
    let again = up.run(&rate_unknown).await.ok().stdout;
    assert!(
        again.starts_with("Stored, but no query \"q-9\" is known yet: unless one is recorded within 10 s"),
        "{again}"
    );
    let id = |stored: &Value| stored["feedbackId"].as_str().expect("an id").to_owned();
    [down, id(&up_vote), id(&neutral)]
}

#[tokio::test]
async fn queries_are_listed_and_ratings_counted_and_labelled() {
    let up = Up::ephemeral().await;
    let none = up.run(&["search", "queries", "list"]).await.ok().stdout;
    assert_eq!(none, "No queries in the namespace \"default\".\n");
    let [down, up_vote, _] = searched_and_rated(&up).await;

    let first = ["search", "queries", "list", "--query-id", "q-1", "--json"];
    let first = up.run(&first).await.ok().json();
    assert_eq!(
        (&first["minScore"], &first["namespaces"]),
        (&json!(0.4), &json!(["effects", "qa"]))
    );
    let listed = up.run(&["search", "queries", "list"]).await.ok();
    let header = listed.stdout.lines().next().expect("a header");
    let header: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(header, ["SEARCHED", "QUERY", "TYPE", "HITS", "CLICKS", "TEXT"]);
    assert_eq!(
        row(&listed, "q-1"),
        ["q-1", "SEMANTIC", "2", "1", "cards", "that", "bounce"]
    );
    assert_eq!(
        row(&listed, "q-2"),
        ["q-2", "HYBRID", "0", "0", "=cards(that)", "draw"]
    );
    let few = up
        .run(&["search", "queries", "list", "--without-hits"])
        .await
        .ok()
        .stdout;
    assert!(few.contains("q-2") && !few.contains("q-1"), "{few}");
    let few = up.run(&["search", "queries", "list", "--limit", "1"]).await.ok();
    assert_eq!(few.stdout.lines().count(), 2, "{few:?}");
    assert!(few.stderr.contains("more"), "{few:?}");

    let terms = up.run(&["search", "queries", "terms"]).await.ok();
    let header: Vec<&str> = terms
        .stdout
        .lines()
        .next()
        .expect("a header")
        .split_whitespace()
        .collect();
    assert_eq!(header, ["TERM", "SCORE", "NEGATIVE", "QUERIES"]);
    // One of one negative query has it, and one of two queries: ln(3 / 2).
    assert_eq!(row(&terms, "bounce"), ["bounce", "0.405", "1", "1"]);
    let none = up
        .run(&["search", "queries", "terms", "--type", "HYBRID"])
        .await
        .ok()
        .stdout;
    assert_eq!(none, "No negative terms in the namespace \"default\" match.\n");

    let stats = up.run(&["search", "stats"]).await.ok();
    let header: Vec<&str> = stats
        .stdout
        .lines()
        .next()
        .expect("a header")
        .split_whitespace()
        .collect();
    assert_eq!(
        header,
        ["BY", "NAME", "RATINGS", "NEGATIVE", "SHARE", "95", "%", "QUERIES"]
    );
    assert_eq!(row(&stats, "all")[..5], ["all", "3", "1", "33.3", "%"]);
    assert_eq!(row(&stats, "SEMANTIC")[..5], ["SEMANTIC", "1", "1", "100.0", "%"]);
    let compare = [
        "search",
        "stats",
        "--compare",
        "variant",
        "--one",
        "A",
        "--other",
        "B",
    ];
    let compared = up.run(&compare).await.ok().stdout;
    let verdict = "A: 100.0 % negative, B: 0.0 % negative. The difference may be chance (p = 0.1573).";
    assert_eq!(compared.lines().last(), Some(verdict), "{compared}");
    let half = up.run(&compare[..6]).await;
    assert_eq!(half.code, 2, "{half:?}");
    assert!(half.stderr.contains("--other"), "{half:?}");

    let label = [
        "feedback",
        "label",
        &down,
        "--set",
        "synonym_miss",
        "--set",
        "low_recall",
        "--processed",
        "true",
    ];
    let labelled = up.run(&label).await.ok().stdout;
    for line in [
        &*format!("feedback  {down}"),
        "reporter  ana",
        "reason    nothing returns",
        "query     q-1",
        "context   known, of type SEMANTIC",
        "labels    low_recall synonym_miss (processed)",
    ] {
        assert!(
            labelled.lines().any(|printed| printed == line),
            "{line:?} is not in {labelled}"
        );
    }
    let shown = up.run(&["feedback", "get", &down]).await.ok().stdout;
    for line in [
        "  text           cards that bounce",
        "  namespaces     effects, qa",
        "  min_score      0.4",
        "  hits           2",
        "  result         Gust (0.700)",
        "  result         Storm: the return (0.400, clicked)",
        "  index          7",
        "  variant        A",
        "  session        s-1",
    ] {
        assert!(
            shown.lines().any(|printed| printed == line),
            "{line:?} is not in {shown}"
        );
    }
    let cleared = [
        "feedback",
        "label",
        &down,
        "--clear",
        "synonym_miss",
        "--processed",
        "false",
        "--json",
    ];
    let cleared = up.run(&cleared).await.ok().json();
    assert_eq!(
        cleared["searchRating"]["tags"],
        json!(["low_recall"]),
        "{cleared}"
    );
    let nothing = up.run(&["feedback", "label", &down]).await;
    assert_eq!(nothing.code, 2, "{nothing:?}");
    let wrong = up.run(&["feedback", "label", &down, "--set", "Low Recall"]).await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.stderr.contains("set_tags[0]"), "{wrong:?}");
    let tagged = [
        "feedback",
        "list",
        "--rating",
        "down",
        "--tag",
        "low_recall",
        "--processed",
        "false",
    ];
    let tagged = up.run(&tagged).await.ok().stdout;
    assert!(tagged.contains(&down) && !tagged.contains(&up_vote), "{tagged}");
}

/// The header of exported rows.
const COLUMNS: &str = "feedback_id,received_at,query_id,rating,reason,query_type,query_text,top_title,\
                       embedding_version,index_version,variant,tags,processed,answer_text,classification,\
                       namespaces,min_score,hit_count,top_titles,top_scores,client_version,build,session_id,\
                       searched_at";

#[tokio::test]
async fn ratings_are_exported_in_every_form() {
    let up = Up::ephemeral().await;
    let [down, up_vote, neutral] = searched_and_rated(&up).await;
    let export = async |more: &[&str]| {
        up.run(&[&["export", "ratings", "--format"], more].concat())
            .await
            .ok()
    };

    let csv = export(&["csv"]).await.stdout;
    // Titles are a line each.
    let flat = csv.replace("Gust\nStorm", "Gust, Storm");
    let mut lines = flat.lines();
    assert_eq!(lines.next(), Some(COLUMNS));
    let rows: Vec<&str> = lines.collect();
    assert_eq!(rows.len(), 3, "{csv}");
    let of = |id: &str| {
        let row = rows
            .iter()
            .find_map(|row| row.strip_prefix(id)?.strip_prefix(','));
        let row = row.unwrap_or_else(|| panic!("{id} is not in {csv}"));
        row.split_once(',').expect("a time and more").1
    };
    for (id, begins) in [
        (
            &down,
            "q-1,-1,nothing returns,SEMANTIC,cards that bounce,Gust,,7,A,,false,",
        ),
        // What begins like a formula is none.
        (&up_vote, "q-2,1,,HYBRID,'=cards(that) draw,,,,B,,false,"),
        (&neutral, "q-9,0,,,,,,,,,false,"),
    ] {
        let row = of(id);
        assert!(row.starts_with(begins), "{row}");
    }
    assert!(of(&down).contains("Storm: the return"), "{csv}");

    let jsonl = export(&["jsonl", "--rating", "down"]).await.lines();
    let [first] = &jsonl[..] else { panic!("{jsonl:?}") };
    assert_eq!(first["feedbackId"], *down);
    assert_eq!(
        first["topResults"][1],
        json!({"title": "Storm: the return", "score": 0.4, "objectId": "c-2"})
    );
    assert_eq!(
        (&first["rating"], &first["queryText"]),
        (&json!(-1), &json!("cards that bounce"))
    );

    let pairs = export(&["pairs"]).await.lines();
    let pair = json!({"query": "cards that bounce", "positive": "Storm: the return", "negative": "Gust"});
    assert_eq!(pairs, [pair]);
    assert_eq!(export(&["qrels"]).await.stdout, "q-1 0 c-2 1\nq-1 0 c-1 0\n");
    assert_eq!(export(&["qrels", "--query-type", "HYBRID"]).await.stdout, "");

    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("ratings.csv");
    let path = file.display().to_string();
    let all = [
        "export",
        "ratings",
        &path,
        "--format",
        "csv",
        "--mark-processed",
        "--json",
    ];
    let written = up.run(&all).await.ok().json();
    assert_eq!(written, json!({"file": path, "count": 3}));
    assert_eq!(fs::read_to_string(&file).expect("a file"), csv);
    let left = export(&["csv", "--processed", "false"]).await.stdout;
    assert_eq!(left.lines().collect::<Vec<_>>(), [COLUMNS], "all were given");
    let told = up.run(&all[..5]).await.ok().stdout;
    assert_eq!(told, format!("3 ratings written to {path}\n"));
}

#[tokio::test]
async fn only_ratings_whose_pairs_are_written_are_marked_with_them() {
    let up = Up::ephemeral().await;
    let [down, _, _] = searched_and_rated(&up).await;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pairs.jsonl").display().to_string();
    let export = [
        "export",
        "ratings",
        &path,
        "--format",
        "pairs",
        "--mark-processed",
    ];
    let told = up.run(&export).await.ok().stdout;
    assert_eq!(told, format!("1 rating written to {path}\n"));
    let marked = up
        .run(&["feedback", "list", "--processed", "true", "--json"])
        .await
        .ok()
        .lines();
    let marked: Vec<_> = marked.iter().map(|feedback| &feedback["feedbackId"]).collect();
    assert_eq!(marked, [&json!(down)]);
}
