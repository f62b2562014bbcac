//! What a candidate would change: which answers to the queries of the last week, and to queries whose right answers are typed.

use std::collections::HashMap;

use emend_core::normalize;
use emend_proto::{
    feedback::v1::{Feedback, ListFeedbackRequest, ListQueriesRequest, Query, SearchRatingFilter},
    learning::v1::{NearStatus, PreviewCandidateRequest, PreviewedAnswer, PreviewedChanges},
};
use emend_wire::{
    preview::{self, queries, with_judged},
    render,
};
use jiff::SignedDuration;
use prost_types::Timestamp;
use tonic::Status;

use crate::{page::Visitor, text::Language};

/// How far back it looks, in days.
const DAYS: i64 = 7;
/// The queries, or ratings, of a page, and the pages that are read at most.
const PAGE: i32 = 500;
const PAGES: usize = 10;
/// The longest query or choice, in characters, and the choices that are right for one query, as a preview takes them.
const LONGEST: usize = 512;
const MOST_RIGHT: usize = 10;

/// A query and a choice that is right for it.
pub(super) type Judged = (String, String);

/// The judged queries of a text: of each line a query, and behind the last comma or tab the choice that is right for it.
pub(super) fn judged(language: Language, text: &str) -> Result<Vec<Judged>, Status> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    let lines = lines.filter(|(line, _)| !line.is_empty());
    let mut right = HashMap::<String, usize>::new();
    let mut judged = Vec::new();
    for (line, number) in lines {
        let wrong = |english: String, japanese: String| {
            Err(Status::invalid_argument(match language {
                Language::English => format!("Line {number} {english}."),
                Language::Japanese => format!("{number} 行目: {japanese}。"),
            }))
        };
        let parts = line.rsplit_once('\t').or_else(|| line.rsplit_once(','));
        let parts = parts.map(|(query, choice)| (query.trim(), choice.trim()));
        let Some((query, choice)) = parts.filter(|(query, choice)| !query.is_empty() && !choice.is_empty())
        else {
            return wrong(
                "must be a query, a comma or tab, and the choice that is right for it".to_owned(),
                "「クエリ,正しい選択肢」の形式で入力してください".to_owned(),
            );
        };
        if [query, choice].iter().any(|text| text.chars().count() > LONGEST) {
            return wrong(
                format!("has a query or a choice of more than {LONGEST} characters"),
                format!("クエリと選択肢はそれぞれ {LONGEST} 文字までです"),
            );
        }
        let choices = right.entry(normalize(query)).or_default();
        *choices += 1;
        if *choices > MOST_RIGHT {
            return wrong(
                format!("has one more right choice of a query than the {MOST_RIGHT} that it may have"),
                format!("1つのクエリの正しい選択肢は {MOST_RIGHT} 件までです"),
            );
        }
        judged.push((query.to_owned(), choice.to_owned()));
    }
    let most = preview::MOST;
    if judged.len() > most {
        let count = judged.len();
        return Err(Status::invalid_argument(match language {
            Language::English => format!("At most {most} queries can be tried at once; these are {count}."),
            Language::Japanese => format!("一度に試せるのは {most} 件までです({count} 件入力されています)。"),
        }));
    }
    Ok(judged)
}

/// What would be answered differently.
#[derive(Debug)]
pub(super) struct Preview {
    /// How many queries would be answered differently, and what people said of that.
    pub summary: Vec<String>,
    pub answers: Vec<Answered>,
    /// Near answers could not be compared.
    pub is_exact_only: bool,
}

/// A query whose answer would change.
#[derive(Debug)]
pub(super) struct Answered {
    pub text: String,
    pub searches: i64,
    pub before: String,
    pub after: String,
    pub for_it: i64,
    pub against: i64,
}

impl From<PreviewedAnswer> for Answered {
    fn from(answer: PreviewedAnswer) -> Self {
        let shown = |choice: String, is_near: bool| match (&*choice, is_near) {
            ("", _) => "–".to_owned(),
            (_, true) => format!("≈ {choice}"),
            (_, false) => choice,
        };
        Self {
            text: answer.text,
            searches: answer.search_count,
            before: shown(answer.before, answer.before_is_near),
            after: shown(answer.after, answer.after_is_near),
            for_it: answer.rated_for_count + answer.corrected_for_count + answer.judged_for_count,
            against: answer.rated_against_count
                + answer.corrected_against_count
                + answer.judged_against_count,
        }
    }
}

/// Tries a candidate on what was searched, and on judged queries.
pub(super) async fn preview(visitor: &Visitor, id: &str, judged: Vec<Judged>) -> Result<Preview, Status> {
    let now = visitor.console.clock.now();
    let from = now
        .checked_sub(SignedDuration::from_hours(24 * DAYS))
        .unwrap_or(now);
    let from = render::timestamp(from);
    let ratings = if visitor.may("feedback.v1.FeedbackService/ListFeedback") {
        rated(visitor, &from).await?
    } else {
        Vec::new()
    };
    let is_judged = !judged.is_empty();
    let recorded = queries(&recorded(visitor, &from).await?, &ratings);
    let request = PreviewCandidateRequest {
        namespace: visitor.namespace.clone(),
        candidate_id: id.to_owned(),
        queries: with_judged(recorded, judged),
    };
    let mut candidates = visitor.services.candidates();
    // A model may have to be made first.
    let answer = candidates
        .preview_candidate(visitor.services.model_call(request))
        .await?;
    let changes = answer.into_inner().changes.unwrap_or_default();
    Ok(Preview {
        summary: summary(visitor.language, &changes, is_judged),
        is_exact_only: changes.query_count > 0
            && matches!(changes.near_status(), NearStatus::Fitting | NearStatus::TooMany),
        answers: changes.answers.into_iter().map(Answered::from).collect(),
    })
}

/// What was found, in sentences that say one thing each.
fn summary(language: Language, found: &PreviewedChanges, is_judged: bool) -> Vec<String> {
    let (queries, changed) = (found.query_count, found.changed_query_count);
    let searches = found.changed_search_count;
    let tried = match (language, is_judged) {
        (Language::English, false) => format!("{queries} recorded queries of the last {DAYS} days"),
        (Language::English, true) => {
            format!("{queries} judged queries and recorded ones of the last {DAYS} days")
        }
        (Language::Japanese, false) => format!("直近{DAYS}日間に記録された {queries} 件のクエリ"),
        (Language::Japanese, true) => format!("正解付きのクエリと直近{DAYS}日間の記録、計 {queries} 件"),
    };
    let first = match (language, queries, changed) {
        (Language::English, 0, _) => {
            format!("No query of the last {DAYS} days is recorded, so there is nothing to compare.")
        }
        (Language::Japanese, 0, _) => format!("直近{DAYS}日間のクエリの記録がないため、比較できません。"),
        (Language::English, _, 0) => format!("None of the {tried} would be answered differently."),
        (Language::Japanese, _, 0) => format!("{tried}のうち、応答が変わるものはありません。"),
        (Language::English, ..) if searches == 0 => {
            format!("{changed} of the {tried} would be answered differently.")
        }
        (Language::Japanese, ..) if searches == 0 => {
            format!("{tried}のうち、{changed} 件の応答が変わります。")
        }
        (Language::English, ..) => {
            let times = if searches == 1 {
                "once".to_owned()
            } else {
                format!("{searches} times")
            };
            format!("{changed} of the {tried} would be answered differently (searched {times}).")
        }
        (Language::Japanese, ..) => {
            format!("{tried}のうち、{changed} 件の応答が変わります(検索 {searches} 回)。")
        }
    };
    let for_it = found.rated_for_count + found.corrected_for_count;
    let against = found.rated_against_count + found.corrected_against_count;
    let said = (for_it + against > 0).then(|| match language {
        Language::English => {
            format!("What people said about these answers: {for_it} for the change, {against} against it.")
        }
        Language::Japanese => {
            format!("これらの応答への評価と修正: 変更を支持 {for_it} 件、反対 {against} 件。")
        }
    });
    let (right, wrong) = (found.judged_for_count, found.judged_against_count);
    let judged = is_judged.then(|| match language {
        Language::English => {
            format!("Of the judged queries, {right} would become right, and {wrong} would be right no more.")
        }
        Language::Japanese => {
            format!("正解付きのクエリ: 新たに正解 {right} 件、正解でなくなる {wrong} 件。")
        }
    });
    [first].into_iter().chain(said).chain(judged).collect()
}

async fn recorded(visitor: &Visitor, from: &Timestamp) -> Result<Vec<Query>, Status> {
    let mut client = visitor.services.queries();
    let (mut all, mut page_token) = (Vec::new(), String::new());
    for _ in 0..PAGES {
        let request = ListQueriesRequest {
            namespace: visitor.namespace.clone(),
            page_size: PAGE,
            page_token,
            searched_from: Some(*from),
            ..ListQueriesRequest::default()
        };
        let page = client
            .list_queries(visitor.services.call(request))
            .await?
            .into_inner();
        all.extend(page.queries);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    Ok(all)
}

async fn rated(visitor: &Visitor, from: &Timestamp) -> Result<Vec<Feedback>, Status> {
    let mut client = visitor.services.feedback();
    let (mut all, mut page_token) = (Vec::new(), String::new());
    for _ in 0..PAGES {
        let request = ListFeedbackRequest {
            namespace: visitor.namespace.clone(),
            page_size: PAGE,
            page_token,
            received_from: Some(*from),
            // One that was replaced by a newer rating counts no longer.
            search_ratings: Some(SearchRatingFilter {
                counting: true,
                ..SearchRatingFilter::default()
            }),
            ..ListFeedbackRequest::default()
        };
        let page = client
            .list_feedback(visitor.services.call(request))
            .await?
            .into_inner();
        all.extend(page.feedback);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_says_what_was_found_and_nothing_else() {
        let said = |query_count, changed_query_count, rated_for_count| {
            let found = PreviewedChanges {
                query_count,
                changed_query_count,
                changed_search_count: if changed_query_count == 1 { 1 } else { 9 },
                rated_for_count,
                ..PreviewedChanges::default()
            };
            summary(Language::English, &found, false).join(" ")
        };
        assert!(said(0, 0, 0).contains("nothing to compare"));
        assert_eq!(
            said(4, 0, 0),
            "None of the 4 recorded queries of the last 7 days would be answered differently."
        );
        let some = said(4, 2, 1);
        assert!(
            some.contains("2 of the 4")
                && some.contains("searched 9 times")
                && some.contains("1 for the change"),
            "{some}"
        );
        assert!(said(4, 1, 0).contains("(searched once)"));
    }

    #[test]
    fn judged_queries_are_typed_one_a_line_or_pasted_from_a_table() {
        let read = |text| judged(Language::English, text);
        let pair = |query: &str, choice: &str| (query.to_owned(), choice.to_owned());
        assert_eq!(
            read("Card lost, my own , report_loss\r\n\r\nfreeze it\tcard, frozen\n").unwrap(),
            [
                pair("Card lost, my own", "report_loss"),
                pair("freeze it", "card, frozen")
            ]
        );
        assert_eq!(read(" \n").unwrap(), []);
        for text in ["a,b\n\nno choice", "a,b\n\n,b", "a,b\n\na,"] {
            assert!(
                read(text).unwrap_err().message().starts_with("Line 3 must be"),
                "{text}"
            );
        }
        let long = "x".repeat(LONGEST + 1);
        for (text, says) in [
            (
                format!("a,{long}"),
                "Line 1 has a query or a choice of more than 512 characters.",
            ),
            (
                format!("{long},b"),
                "Line 1 has a query or a choice of more than 512 characters.",
            ),
            (
                "a, b\nA,b\n".repeat(6),
                "Line 11 has one more right choice of a query than the 10 that it may have.",
            ),
        ] {
            assert_eq!(judged(Language::English, &text).unwrap_err().message(), says);
        }
        let rows = |count: usize| (0..count).fold(String::new(), |rows, row| format!("{rows}a{row},b\n"));
        let all = rows(preview::MOST);
        assert_eq!(read(&all).unwrap().len(), preview::MOST);
        let refused = read(&rows(preview::MOST + 1)).unwrap_err();
        assert_eq!(
            refused.message(),
            "At most 1000 queries can be tried at once; these are 1001."
        );
    }
}
