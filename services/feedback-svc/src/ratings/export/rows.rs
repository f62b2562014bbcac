//! Exported ratings as rows of CSV and as JSON lines: what was said, with all that is known of the query.

use serde_json::json;

use super::Rated;

/// The columns of CSV. New ones come last: files of different versions differ at their end alone.
const COLUMNS: [&str; 24] = [
    "feedback_id",
    "received_at",
    "query_id",
    "rating",
    "reason",
    "query_type",
    "query_text",
    "top_title",
    "embedding_version",
    "index_version",
    "variant",
    "tags",
    "processed",
    "answer_text",
    "classification",
    "namespaces",
    "min_score",
    "hit_count",
    "top_titles",
    "top_scores",
    "client_version",
    "build",
    "session_id",
    "searched_at",
];

/// The header of CSV.
pub(super) fn header(text: &mut String) {
    row(text, &COLUMNS.map(str::to_owned));
}

impl Rated {
    /// The session in which it was searched; where that is not known, the one in which it was rated.
    fn session(&self) -> &str {
        let rated_in = self.feedback.submission.reporter.session.as_deref();
        match self.query.session_id.as_str() {
            "" => rated_in.unwrap_or_default(),
            searched_in => searched_in,
        }
    }

    fn searched_at(&self) -> Option<String> {
        let at = self.query.searched_at.as_ref()?;
        let at = jiff::Timestamp::new(at.seconds, at.nanos).ok()?;
        Some(at.to_string())
    }

    pub(super) fn write_csv(&self, text: &mut String) {
        let submission = &self.feedback.submission;
        let (state, query) = (&self.state, &self.query);
        let titles: Vec<&str> = query
            .top_results
            .iter()
            .map(|result| result.title.as_str())
            .collect();
        let scores: Vec<String> = query
            .top_results
            .iter()
            .map(|result| result.score.to_string())
            .collect();
        let columns: [String; COLUMNS.len()] = [
            self.feedback.id.to_string(),
            self.feedback.accepted.at.to_string(),
            inert(&submission.query_id),
            self.value().number().to_string(),
            inert(&submission.reason),
            inert(&state.query_type),
            inert(&query.query_text),
            inert(titles.first().copied().unwrap_or_default()),
            inert(&state.embedding_version),
            inert(&state.index_version),
            inert(&state.variant),
            self.tags().join(" "),
            state.processed.to_string(),
            inert(&query.answer_text),
            inert(&query.classification),
            inert(&query.namespaces.join(" ")),
            query.min_score.map(|score| score.to_string()).unwrap_or_default(),
            query.hit_count.map(|hits| hits.to_string()).unwrap_or_default(),
            inert(&titles.join("\n")),
            inert(&scores.join(" ")),
            inert(&query.client_version),
            inert(&query.build),
            inert(self.session()),
            self.searched_at().unwrap_or_default(),
        ];
        row(text, &columns);
    }

    pub(super) fn write_jsonl(&self, text: &mut String) {
        let submission = &self.feedback.submission;
        let (state, query) = (&self.state, &self.query);
        let results = query.top_results.iter().map(
            |result| json!({"title": result.title, "score": result.score, "objectId": result.object_id}),
        );
        let clicked = query
            .interactions
            .iter()
            .map(|click| json!({"objectId": click.object_id, "position": click.position}));
        line(
            text,
            &json!({
                "feedbackId": self.feedback.id.to_string(),
                "receivedAt": self.feedback.accepted.at.to_string(),
                "queryId": submission.query_id,
                "rating": self.value().number(),
                "reason": submission.reason,
                "queryType": state.query_type,
                "queryText": query.query_text,
                "answerText": query.answer_text,
                "classification": query.classification,
                "namespaces": query.namespaces,
                "minScore": query.min_score,
                "hitCount": query.hit_count,
                "topResults": results.collect::<Vec<_>>(),
                "clicked": clicked.collect::<Vec<_>>(),
                "embeddingVersion": state.embedding_version,
                "indexVersion": state.index_version,
                "variant": state.variant,
                "clientVersion": query.client_version,
                "build": query.build,
                "sessionId": self.session(),
                "searchedAt": self.searched_at(),
                "tags": self.tags(),
                "processed": state.processed,
            }),
        );
    }
}

/// Writes a JSON line.
pub(super) fn line(text: &mut String, value: &serde_json::Value) {
    text.push_str(&value.to_string());
    text.push('\n');
}

/// A text as a cell that spreadsheets do not take for a formula.
fn inert(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// A row of RFC 4180.
fn row(text: &mut String, columns: &[String]) {
    for (place, column) in columns.iter().enumerate() {
        if place > 0 {
            text.push(',');
        }
        if column.contains([',', '"', '\n', '\r']) {
            text.push('"');
            text.push_str(&column.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(column);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use emend_core::search::SearchRating::Down;
    use emend_proto::feedback::v1::QueryResult;

    use super::{
        super::{
            Format,
            tests::{rated, written},
        },
        *,
    };

    const SCORES: &str = "\"Card a\nCard b\nCard c\",0.5 0.5 0.5";

    #[test]
    fn a_row_is_quoted_where_it_has_to_be() {
        let rated = rated(Down, &["b"]);
        let id = rated.feedback.id;
        assert_eq!(
            written(Format::Csv, &rated),
            format!(
                "{id},1970-01-01T00:00:00Z,q1,-1,\"no \"\"hits\"\", none\",SEMANTIC,back to the hand,Card a,,,,low_recall x,false,,,,,,{SCORES},,,,\n"
            )
        );
        let object: serde_json::Value = serde_json::from_str(&written(Format::Jsonl, &rated)).unwrap();
        assert_eq!(
            (&object["rating"], &object["topResults"][1]["objectId"]),
            (&json!(-1), &json!("b"))
        );
        assert_eq!(object["clicked"], json!([{"objectId": "b", "position": 2}]));
        assert_eq!(
            (&object["minScore"], &object["hitCount"], &object["searchedAt"]),
            (&json!(null), &json!(null), &json!(null)),
            "not known is neither zero nor empty"
        );
    }

    #[test]
    fn all_that_was_recorded_of_the_query_is_exported() {
        let mut rated = rated(Down, &[]);
        let query = &mut rated.query;
        query.answer_text = "Nothing, sorry".into();
        query.classification = "an effect".into();
        query.namespaces = ["effects", "combined"].map(str::to_owned).into();
        query.min_score = Some(0.4);
        query.hit_count = Some(3);
        query.top_results.truncate(2);
        query.top_results[0].score = 0.75;
        query.client_version = "web/4.2".into();
        query.build = "b17".into();
        query.searched_at = Some(prost_types::Timestamp { seconds: 1, nanos: 0 });
        (rated.state.embedding_version, rated.state.index_version) = ("e5".into(), "7".into());
        rated.feedback.submission.reporter.session = Some("s-rated".into());
        let mut text = String::new();
        header(&mut text);
        rated.write_csv(&mut text);
        let mut reader = csv_cells(&text);
        let (names, cells) = (reader.remove(0), reader.remove(0));
        let cell = |name: &str| {
            let place = names.iter().position(|column| column == name).unwrap();
            cells[place].as_str()
        };
        for (name, expected) in [
            ("answer_text", "Nothing, sorry"),
            ("classification", "an effect"),
            ("namespaces", "effects combined"),
            ("min_score", "0.4"),
            ("hit_count", "3"),
            ("top_titles", "Card a\nCard b"),
            ("top_scores", "0.75 0.5"),
            ("embedding_version", "e5"),
            ("index_version", "7"),
            ("client_version", "web/4.2"),
            ("build", "b17"),
            ("session_id", "s-rated"),
            ("searched_at", "1970-01-01T00:00:01Z"),
        ] {
            assert_eq!(cell(name), expected, "{name}");
        }
        rated.query.session_id = "s-searched".into();
        let object: serde_json::Value = serde_json::from_str(&written(Format::Jsonl, &rated)).unwrap();
        for (name, expected) in [
            ("answerText", json!("Nothing, sorry")),
            ("classification", json!("an effect")),
            ("namespaces", json!(["effects", "combined"])),
            ("minScore", json!(0.4)),
            ("hitCount", json!(3)),
            ("clientVersion", json!("web/4.2")),
            ("build", json!("b17")),
            ("sessionId", json!("s-searched")),
            ("searchedAt", json!("1970-01-01T00:00:01Z")),
        ] {
            assert_eq!(object[name], expected, "{name}");
        }
    }

    /// The cells of quoted and of plain columns.
    fn csv_cells(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut cell, mut is_quoted) = (vec![Vec::new()], String::new(), false);
        for c in text.chars() {
            match c {
                '"' => is_quoted = !is_quoted,
                ',' | '\n' if !is_quoted => {
                    rows.last_mut().unwrap().push(std::mem::take(&mut cell));
                    if c == '\n' {
                        rows.push(Vec::new());
                    }
                }
                c => cell.push(c),
            }
        }
        rows
    }

    #[test]
    fn a_text_is_no_formula_and_a_number_stays_one() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=A1,\"x\"", "\"'=A1,\"\"x\"\"\""),
            ("1=1", "1=1"),
            ("", ""),
        ] {
            let mut rated = rated(Down, &[]);
            let id = rated.feedback.id;
            rated.feedback.submission.reason = text.into();
            rated.query.query_text = text.into();
            rated.query.answer_text = text.into();
            rated.query.build = text.into();
            rated.query.top_results = vec![QueryResult {
                title: text.into(),
                ..QueryResult::default()
            }];
            rated.query.min_score = Some(-0.5);
            rated.state.variant = text.into();
            assert_eq!(
                written(Format::Csv, &rated),
                format!(
                    "{id},1970-01-01T00:00:00Z,q1,-1,{cell},SEMANTIC,{cell},{cell},,,{cell},low_recall x,false,{cell},,,-0.5,,{cell},0,,{cell},,\n"
                )
            );
            let object: serde_json::Value = serde_json::from_str(&written(Format::Jsonl, &rated)).unwrap();
            assert_eq!(object["queryText"], text);
        }
    }
}
