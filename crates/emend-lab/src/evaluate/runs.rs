//! Ranked results, as files have them: TREC's runs, or JSON lines of our own.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;

use super::{BadLine, Queries, bad, columns, json, lines, number};

/// Results by query id, the best first.
pub type Run = HashMap<String, Vec<String>>;

/// Results with their scores by query id, the highest score first.
pub type ScoredRun = HashMap<String, Vec<Hit>>;

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its id.
    pub id: String,
    /// Its score.
    pub score: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunLine {
    query_id: String,
    results: Vec<String>,
    #[serde(default)]
    scores: Option<Vec<f64>>,
}

/// Parses a run: TREC's six columns, of which query, document, rank and score count, or JSON lines with `query_id`, `results`
/// and, if they like, `scores`. TREC's results are ordered by score, equal ones by rank.
pub fn parse(text: &str) -> Result<Run, BadLine> {
    if !is_json(text) {
        let ids = |hits: Vec<Hit>| hits.into_iter().map(|hit| hit.id).collect();
        let run = trec(text)?.into_iter();
        return Ok(run.map(|(query, hits)| (query, ids(hits))).collect());
    }
    let mut run = Run::new();
    for line in json_lines(text)? {
        run.insert(line.1.query_id, line.1.results);
    }
    Ok(run)
}

/// Says why a run can't be measured by these judgements: they share no query, or what it found has other ids than what is
/// judged. That it found nothing is no such reason.
pub fn check(run: &Run, queries: &Queries) -> Result<(), String> {
    let example = |ids: &mut dyn Iterator<Item = &String>| ids.min().cloned().unwrap_or_default();
    if !run.keys().any(|query| queries.contains_key(query)) {
        return Err(format!(
            "has none of the judged queries: its query_ids are like {:?}, the judged ones like {:?}",
            example(&mut run.keys()),
            example(&mut queries.keys()),
        ));
    }
    let judged: HashSet<&String> = queries.values().flat_map(|query| query.judged.ids()).collect();
    let mut found = run.values().flatten().peekable();
    if found.peek().is_none() || found.any(|id| judged.contains(id)) {
        return Ok(());
    }
    Err(format!(
        "has no result that is judged for any query: its ids are like {:?}, the judged ones like {:?}",
        example(&mut run.values().flatten()),
        example(&mut judged.into_iter()),
    ))
}

/// Parses a run whose results have scores.
pub fn parse_scored(text: &str) -> Result<ScoredRun, BadLine> {
    if !is_json(text) {
        return trec(text);
    }
    let mut run = ScoredRun::new();
    for (line, entry) in json_lines(text)? {
        let Some(scores) = entry.scores else {
            return Err(bad(line, "has no scores".to_owned()));
        };
        let hits = entry.results.into_iter().zip(scores);
        let mut hits: Vec<Hit> = hits.map(|(id, score)| Hit { id, score }).collect();
        hits.sort_by(|one, other| other.score.total_cmp(&one.score));
        run.insert(entry.query_id, hits);
    }
    Ok(run)
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The lines with their numbers, each of another query.
fn json_lines(text: &str) -> Result<Vec<(usize, RunLine)>, BadLine> {
    let mut seen = HashMap::new();
    let mut parsed = Vec::new();
    for (line, text) in lines(text) {
        let entry: RunLine = json(line, text)?;
        if seen.insert(entry.query_id.clone(), line).is_some() {
            return Err(bad(
                line,
                format!("the query {:?} is there twice", entry.query_id),
            ));
        }
        if let Some(scores) = &entry.scores
            && scores.len() != entry.results.len()
        {
            let (results, scores) = (entry.results.len(), scores.len());
            return Err(bad(line, format!("has {results} results and {scores} scores")));
        }
        parsed.push((line, entry));
    }
    Ok(parsed)
}

fn trec(text: &str) -> Result<ScoredRun, BadLine> {
    let mut ranked: HashMap<String, Vec<(u64, Hit)>> = HashMap::new();
    for (line, text) in lines(text) {
        let [query, _, id, rank, score, _] = columns(line, text)?;
        let (rank, score) = (number(line, "rank", rank)?, number::<f64>(line, "score", score)?);
        if score.is_nan() {
            return Err(bad(line, "the score is no number".to_owned()));
        }
        let id = id.to_owned();
        ranked
            .entry(query.to_owned())
            .or_default()
            .push((rank, Hit { id, score }));
    }
    let mut run = ScoredRun::new();
    for (query, mut hits) in ranked {
        hits.sort_by(|one, other| other.1.score.total_cmp(&one.1.score).then(one.0.cmp(&other.0)));
        run.insert(query, hits.into_iter().map(|(_, hit)| hit).collect());
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(run: &ScoredRun, query: &str) -> Vec<(String, f64)> {
        let hits = run[query].iter();
        hits.map(|hit| (hit.id.clone(), hit.score)).collect()
    }

    #[test]
    fn a_run_is_ordered_by_score_then_rank() {
        let trec = "q1 Q0 a 1 0.5 tag\nq1 Q0 b 2 0.9 tag\nq1 Q0 c 0 0.5 tag\n";
        assert_eq!(parse(trec).unwrap()["q1"], ["b", "c", "a"]);
        let expected = [("b", 0.9), ("c", 0.5), ("a", 0.5)].map(|(id, score)| (id.to_owned(), score));
        assert_eq!(scored(&parse_scored(trec).unwrap(), "q1"), expected);
        let own = "{\"query_id\": \"q1\", \"results\": [\"x\", \"y\"]}";
        assert_eq!(parse(own).unwrap()["q1"], ["x", "y"]);
        let own = "{\"query_id\": \"q1\", \"results\": [\"x\", \"y\"], \"scores\": [0.1, 0.2]}";
        assert_eq!(parse(own).unwrap()["q1"], ["x", "y"]);
        let expected = [("y", 0.2), ("x", 0.1)].map(|(id, score)| (id.to_owned(), score));
        assert_eq!(scored(&parse_scored(own).unwrap(), "q1"), expected);
    }

    #[test]
    fn a_bad_line_is_named() {
        let one = "{\"query_id\": \"q\", \"results\": [\"a\"]}";
        let twice = format!("{one}\n{one}");
        for (text, expected) in [
            (&*twice, "line 2: the query \"q\" is there twice"),
            (
                "q Q0 a 1 high tag",
                "line 1: the score must be a number, is \"high\"",
            ),
            ("q Q0 a 1 NaN tag", "line 1: the score is no number"),
            (
                "{\"query_id\": \"q\", \"results\": [\"a\"], \"scores\": []}",
                "line 1: has 1 results and 0 scores",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
            assert_eq!(parse_scored(text).unwrap_err().to_string(), expected);
        }
        assert_eq!(
            parse_scored(one).unwrap_err().to_string(),
            "line 1: has no scores"
        );
    }
}
