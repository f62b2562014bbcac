//! What was rated down and nobody has dealt with, query by query, the worst first: who said what, the answers and their results, to
//! mend by a synonym, to tag and to mark as processed.

use std::collections::{HashMap, HashSet};

use askama::Template;
use emend_core::normalize;
use emend_proto::{
    common::v1::SearchRatingValue,
    feedback::v1::{
        Feedback, ListFeedbackRequest, Query, SearchRatingFilter, UpdateFeedbackLabelsRequest, WorstQueries,
    },
};
use http::StatusCode;
use tonic::Status;

use super::{period::Period, tabs};
use crate::{
    failure::{Failure, Refused},
    form::Fields,
    page::{Answer, Page, Part, TOLD, Visitor, html},
    pages::{Choice, links, tabs::Tab},
    text::{self, Moment, count, moment, shortened},
    told::{self, Told},
};

/// Ratings that one page gathers by their queries.
const PAGE: i32 = 100;
/// Characters of a query that another page names.
const WORST_CHARS: usize = 200;
/// Answers to one query that are shown.
const ANSWERS: usize = 5;

/// The page.
#[derive(Debug, Template)]
#[template(path = "search_queue.html")]
struct Queue {
    page: Page,
    tabs: Vec<Tab>,
    values: Vec<Choice>,
    states: Vec<Choice>,
    period: Period,
    query_type: String,
    tag: String,
    /// Only ratings of this query.
    query: String,
    groups: Vec<Group>,
    may_label: bool,
    may_set: bool,
    filters: String,
    first: Option<String>,
    next: Option<String>,
}

/// A query, and what people said of what it found.
#[derive(Debug)]
struct Group {
    /// The ids of its ratings, as one field of the form has them.
    ids: String,
    /// Its place on the page.
    anchor: String,
    /// What was searched for; the query's id where that is not known.
    text: String,
    is_known: bool,
    /// How many people said so.
    people: usize,
    value: &'static str,
    class: &'static str,
    said: Vec<Said>,
    tags: Vec<String>,
    is_processed: bool,
    /// The newest answers to it.
    answers: Vec<Asked>,
    /// The newest rating.
    at: Moment,
    /// Where a synonym is made for it.
    teach: String,
    /// Where it is tried out.
    attempt: String,
}

/// A rating's own words.
#[derive(Debug)]
struct Said {
    /// Whose they are; empty if that is not known.
    reporter: String,
    who: String,
    reason: String,
    at: Moment,
}

/// What was searched.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) answer: String,
    pub(super) kind: String,
    pub(super) hits: String,
    pub(super) versions: String,
    pub(super) results: Vec<(String, String)>,
}

/// What is known of a query, for people.
pub(super) fn asked(query: Query) -> Asked {
    let versions = [
        query.embedding_version,
        query.index_version,
        query.client_version,
        query.build,
        query.variant,
    ];
    let versions: Vec<_> = versions
        .into_iter()
        .filter(|version| !version.is_empty())
        .collect();
    Asked {
        text: query.query_text,
        answer: text::shortened(&query.answer_text, 600),
        kind: query.query_type,
        hits: query
            .hit_count
            .map_or_else(|| "–".to_owned(), |hits| hits.to_string()),
        versions: versions.join(" · "),
        results: query
            .top_results
            .into_iter()
            .map(|result| (result.title, format!("{:.3}", result.score)))
            .collect(),
    }
}

/// A page of ratings, gathered by their queries: those that most people rated stand first.
async fn listed(visitor: &Visitor, request: ListFeedbackRequest) -> Result<(Vec<Group>, String), Status> {
    let mut client = visitor.services.feedback();
    let answer = client.list_feedback(visitor.services.call(request)).await?;
    let answer = answer.into_inner();
    let mut groups: Vec<Group> = Vec::new();
    let mut places = HashMap::new();
    for feedback in answer.feedback {
        let value = value_of(&feedback);
        let state = feedback.search_rating.clone().unwrap_or_default();
        let query = state.query.as_ref();
        // As the services tell queries apart.
        let text = query.map(|query| normalize(&query.query_text));
        let text = text.filter(|text| !text.is_empty());
        let same = (text.unwrap_or_else(|| feedback.query_id.clone()), value);
        let place = *places.entry(same).or_insert_with(|| {
            groups.push(group(visitor, &feedback, value));
            groups.len() - 1
        });
        groups[place].add(visitor, feedback);
    }
    for group in &mut groups {
        group.people = people(&group.said);
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.people));
    Ok((groups, answer.next_page_token))
}

/// A query that people rated down.
#[derive(Debug)]
pub(super) struct Worst {
    /// What was searched for; the query's id where that is not known.
    pub(super) text: String,
    pub(super) is_known: bool,
    /// How many people did.
    pub(super) people: String,
    /// Where their ratings are.
    pub(super) answers: String,
    /// Where a synonym is made for it.
    pub(super) teach: String,
    /// Where it is tried out.
    pub(super) attempt: String,
}

/// What most people rated down, as statistics of the period tell it.
pub(super) fn worst(visitor: &Visitor, fields: &Fields, found: WorstQueries) -> Vec<Worst> {
    let worst = found.queries.into_iter().map(|query| {
        let (teach, attempt) = leads(visitor, &query.query_text, &query.query_type);
        let of_period = Fields::default()
            .with("from", fields.get("from"))
            .with("to", fields.get("to"))
            .with("type", fields.get("type"));
        let is_known = !query.query_text.is_empty();
        // Of a query that is not known only the newest rating is found again.
        let (asked, place) = if is_known {
            (of_period.with("query", &query.query_text), String::new())
        } else {
            (of_period, format!("#q-{}", query.feedback_id))
        };
        Worst {
            text: shortened(
                if is_known {
                    &query.query_text
                } else {
                    &query.query_id
                },
                WORST_CHARS,
            ),
            is_known,
            people: count(query.person_count),
            answers: visitor.within(Part::Search, &["queue"], &asked) + &place,
            teach,
            attempt,
        }
    });
    worst.collect()
}

/// Where a synonym is made for a query, and where it is tried out.
fn leads(visitor: &Visitor, text: &str, query_type: &str) -> (String, String) {
    let asks = Fields::default().with("query", text).with("type", query_type);
    (
        visitor.within(Part::Search, &["words"], &asks.with("term", text)) + "#term",
        visitor.within(Part::Search, &["try"], &asks),
    )
}

/// Lists the ratings.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let value = match fields.get("value") {
        "up" => SearchRatingValue::Up,
        "neutral" => SearchRatingValue::Neutral,
        "any" => SearchRatingValue::Unspecified,
        _ => SearchRatingValue::Down,
    };
    let processed = match fields.get("state") {
        "processed" => Some(true),
        "any" => None,
        _ => Some(false),
    };
    let period = Period::of(fields)?;
    let request = ListFeedbackRequest {
        received_from: period.from,
        received_before: period.before,
        namespace: visitor.namespace.clone(),
        page_size: PAGE,
        page_token: fields.get("page").to_owned(),
        search_ratings: Some(SearchRatingFilter {
            value: value as i32,
            query_type: fields.get("type").to_owned(),
            tag: fields.get("tag").to_owned(),
            processed,
            counting: true,
            query_text: fields.get("query").to_owned(),
        }),
        ..ListFeedbackRequest::default()
    };
    let (groups, next_token) = listed(visitor, request).await?;
    let kept = fields.without(&TOLD);
    let address = visitor.within(Part::Search, &["queue"], &Fields::default());
    let (first, next) = links(&address, &kept, &next_token);
    let choices = |name: &str, all: &[(&str, &str)]| {
        let choices = all.iter().map(|(value, label)| Choice {
            value: (*value).to_owned(),
            label: (*label).to_owned(),
            is_chosen: *value == fields.get(name),
        });
        choices.collect()
    };
    let queue = Queue {
        tabs: tabs(visitor, "queue"),
        values: choices(
            "value",
            &[
                ("down", visitor.t("rated down", "低評価")),
                ("neutral", visitor.t("neutral", "普通")),
                ("up", visitor.t("rated up", "高評価")),
                ("any", visitor.t("any rating", "すべて")),
            ],
        ),
        states: choices(
            "state",
            &[
                ("open", visitor.t("not dealt with", "未処理")),
                ("processed", visitor.t("dealt with", "処理済み")),
                ("any", visitor.t("both", "両方")),
            ],
        ),
        period,
        query_type: fields.get("type").to_owned(),
        tag: fields.get("tag").to_owned(),
        query: fields.get("query").to_owned(),
        groups,
        may_label: visitor.may("feedback.v1.FeedbackService/UpdateFeedbackLabels"),
        may_set: visitor.may("learning.v1.ResourceService/PutResource"),
        filters: kept.query(),
        first,
        next,
        page: visitor.page(Part::Search, visitor.t("Rated down", "低評価"), fields),
    };
    Ok(html(StatusCode::OK, &queue))
}

fn value_of(feedback: &Feedback) -> SearchRatingValue {
    use emend_proto::common::v1::correction::Correction;
    let correction = feedback.correction.as_ref();
    match correction.and_then(|correction| correction.correction.as_ref()) {
        Some(Correction::SearchRating(rating)) => rating.value(),
        _ => SearchRatingValue::Unspecified,
    }
}

/// The group that a rating begins, without it.
fn group(visitor: &Visitor, feedback: &Feedback, value: SearchRatingValue) -> Group {
    let t = |english: &'static str, japanese: &'static str| visitor.language.t(english, japanese);
    let (value, class) = match value {
        SearchRatingValue::Up => (t("up", "高評価"), "good"),
        SearchRatingValue::Down => (t("down", "低評価"), "bad"),
        SearchRatingValue::Neutral | SearchRatingValue::Unspecified => (t("neutral", "普通"), "plain"),
    };
    let state = feedback.search_rating.as_ref();
    let query = state.and_then(|state| state.query.as_ref());
    let text = query.map_or("", |query| &*query.query_text);
    let query_type = query.map_or("", |query| &*query.query_type);
    let (teach, attempt) = leads(visitor, text, query_type);
    Group {
        ids: String::new(),
        anchor: format!("q-{}", feedback.feedback_id),
        is_known: !text.is_empty(),
        text: if text.is_empty() {
            feedback.query_id.clone()
        } else {
            text.to_owned()
        },
        people: 0,
        value,
        class,
        said: Vec::new(),
        tags: Vec::new(),
        is_processed: true,
        answers: Vec::new(),
        at: moment(feedback.received_at.as_ref()),
        teach,
        attempt,
    }
}

/// How many people said so: each once, and one for each rating of somebody who is not known.
fn people(said: &[Said]) -> usize {
    let known: HashSet<&str> = said
        .iter()
        .map(|said| &*said.reporter)
        .filter(|who| !who.is_empty())
        .collect();
    known.len() + said.iter().filter(|said| said.reporter.is_empty()).count()
}

impl Group {
    fn add(&mut self, visitor: &Visitor, feedback: Feedback) {
        if !self.ids.is_empty() {
            self.ids.push(',');
        }
        self.ids.push_str(&feedback.feedback_id);
        let reporter = feedback.reporter.unwrap_or_default();
        self.said.push(Said {
            reporter: reporter.id.clone(),
            who: visitor.language.person(&reporter.id, ""),
            reason: feedback.reason,
            at: moment(feedback.received_at.as_ref()),
        });
        let state = feedback.search_rating.unwrap_or_default();
        self.is_processed &= state.processed;
        self.tags.extend(state.tags);
        self.tags.sort_unstable();
        self.tags.dedup();
        let answer = state.query.map(asked);
        let answers = answer.filter(|answer| !self.answers.contains(answer));
        self.answers.extend(answers);
        self.answers.truncate(ANSWERS);
    }
}

/// Tags what is ticked, and marks it as dealt with.
pub(crate) async fn label(visitor: &Visitor, fields: &Fields) -> Answer {
    let ticked = fields.filled("feedback");
    let ids: Vec<_> = ticked.iter().flat_map(|ids| ids.split(',')).collect();
    if ids.is_empty() {
        let title = visitor.t("Nothing is ticked.", "項目が選択されていません。");
        return Err(Refused::Failed(Failure::new(StatusCode::BAD_REQUEST, title)));
    }
    let words = |name| -> Vec<String> {
        let words = fields.get(name).split([' ', ',']);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (tags, cleared) = (words("tags"), words("clear_tags"));
    let processed = match fields.get("mark") {
        "processed" => Some(true),
        "open" => Some(false),
        _ => None,
    };
    if tags.is_empty() && cleared.is_empty() && processed.is_none() {
        return Err(Status::from(emend_base::Error::invalid("tags", "required: 1 to 16, or a mark")).into());
    }
    let mut client = visitor.services.feedback();
    for feedback_id in ids {
        let request = UpdateFeedbackLabelsRequest {
            namespace: visitor.namespace.clone(),
            feedback_id: feedback_id.to_owned(),
            set_tags: tags.clone(),
            clear_tags: cleared.clone(),
            processed,
        };
        client
            .update_feedback_labels(visitor.services.call(request))
            .await?;
    }
    let kept = Fields::parse(fields.get("return").trim_start_matches('?').as_bytes());
    let told = visitor.telling(Told::new("saved"));
    let kept = kept.with(told::FIELD, told.get(told::FIELD));
    visitor.go(&visitor.within(Part::Search, &["queue"], &kept))
}
