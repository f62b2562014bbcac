//! What a user knows and wants to learn: edited in place, and suggestions.

use askama::Template;
use emend_proto::learning::v1::{
    AcceptSuggestionRequest, GenerateSuggestionsRequest, GetProfileRequest, Learning, LearningLevel,
    ListSuggestionsRequest, Profile, ProfileSuggestion, RankLearningsRequest, RejectSuggestionRequest,
    SuggestionType, UpdateProfileRequest,
};
use http::StatusCode;
use prost_types::FieldMask;
use tonic::Status;

use super::tabs;
use crate::{
    form::Fields,
    page::{Answer, Page, Part, Visitor, html},
    pages::tabs::Tab,
    text::{self, Moment, moment},
    told::{self, Told},
};

/// How many suggestions are shown.
const SUGGESTIONS: i32 = 200;

/// The page.
#[derive(Debug, Template)]
#[template(path = "profiles.html")]
struct Profiles {
    page: Page,
    tabs: Vec<Tab>,
    user: String,
    profile: Option<Profile>,
    years: String,
    lists: Vec<List>,
    suggestions: Vec<Suggested>,
    /// None where the visitor may not ask for it.
    ranking: Option<Ranking>,
    may_update: bool,
    may_generate: bool,
    may_decide: bool,
}

/// What there is to learn, as it was typed, and its order once that was asked for.
#[derive(Debug)]
struct Ranking {
    learnings: String,
    ranked: Option<Ranked>,
}

/// What there is to learn, in the order for the user.
#[derive(Debug)]
struct Ranked {
    ids: Vec<String>,
    left_out: Vec<String>,
}

/// A list of a profile, one entry a line.
#[derive(Debug)]
struct List {
    name: &'static str,
    label: &'static str,
    hint: &'static str,
    entries: String,
}

/// A suggested entry.
#[derive(Debug)]
struct Suggested {
    id: String,
    etag: String,
    kind: &'static str,
    value: String,
    reason: String,
    source: String,
    source_id: String,
    /// In percent.
    confidence: String,
    at: Moment,
}

fn kind(visitor: &Visitor, number: i32) -> &'static str {
    let t = |english, japanese| visitor.language.t(english, japanese);
    match SuggestionType::try_from(number).unwrap_or_default() {
        SuggestionType::Unspecified => "",
        SuggestionType::AddTechnology => t("add a known technology", "既知技術に追加"),
        SuggestionType::AddSpecialty => t("add a specialty", "専門分野に追加"),
        SuggestionType::AddGoal => t("add a learning goal", "学習目標に追加"),
        SuggestionType::UpdateExperience => t("change the years of experience", "経験年数を更新"),
    }
}

fn suggested(visitor: &Visitor, suggestion: ProfileSuggestion) -> Suggested {
    let candidate = suggestion.candidate.unwrap_or_default();
    let suggestion = suggestion.suggestion.unwrap_or_default();
    Suggested {
        kind: kind(visitor, suggestion.r#type),
        value: text::value_line(visitor.language, candidate.value.as_ref()),
        reason: suggestion.reason,
        source: suggestion.source_type,
        source_id: suggestion.source_id,
        confidence: format!("{:.0} %", suggestion.confidence * 100.0),
        at: moment(candidate.created_at.as_ref()),
        id: candidate.candidate_id,
        etag: candidate.etag,
    }
}

fn lists(visitor: &Visitor, profile: &Profile) -> Vec<List> {
    let t = |english, japanese| visitor.language.t(english, japanese);
    vec![
        List {
            name: "specialties",
            label: t("Specialties", "専門分野"),
            hint: "frontend",
            entries: profile.specialties.join("\n"),
        },
        List {
            name: "known_technologies",
            label: t("Known technologies", "既知技術"),
            hint: "React",
            entries: profile.known_technologies.join("\n"),
        },
        List {
            name: "learning_goals",
            label: t("Learning goals", "学習目標"),
            hint: "Rust",
            entries: profile.learning_goals.join("\n"),
        },
    ]
}

async fn profile_of(visitor: &Visitor, user: &str) -> Result<Option<Profile>, Status> {
    if user.is_empty() {
        return Ok(None);
    }
    let request = visitor.services.call(GetProfileRequest {
        namespace: visitor.namespace.clone(),
        user_id: user.to_owned(),
    });
    let answer = visitor.services.profiles().get_profile(request).await?;
    Ok(answer.into_inner().profile)
}

async fn suggestions(visitor: &Visitor, user: &str) -> Result<Vec<Suggested>, Status> {
    if user.is_empty() {
        return Ok(Vec::new());
    }
    let request = visitor.services.call(ListSuggestionsRequest {
        namespace: visitor.namespace.clone(),
        user_id: user.to_owned(),
        page_size: SUGGESTIONS,
        ..ListSuggestionsRequest::default()
    });
    let answer = visitor.services.profiles().list_suggestions(request).await?;
    let listed = answer.into_inner().suggestions.into_iter();
    Ok(listed.map(|suggestion| suggested(visitor, suggestion)).collect())
}

/// What there is to learn, one a line: `ID: topic, topic`, with a level before the colon or without.
fn learnings(text: &str) -> Vec<Learning> {
    let levels = [
        ("basic", LearningLevel::Basic),
        ("intermediate", LearningLevel::Intermediate),
        ("advanced", LearningLevel::Advanced),
    ];
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (head, topics) = line.split_once(':').unwrap_or((line, ""));
            let head = head.trim();
            let levelled = head.rsplit_once(' ').and_then(|(id, word)| {
                let (_, level) = levels.iter().find(|(name, _)| *name == word)?;
                Some((id.trim(), *level))
            });
            let (id, level) = levelled.unwrap_or((head, LearningLevel::Unspecified));
            let topics = topics.split(',').map(str::trim).filter(|topic| !topic.is_empty());
            Learning {
                id: id.to_owned(),
                topics: topics.map(str::to_owned).collect(),
                level: level as i32,
            }
        })
        .collect()
}

async fn ranked(visitor: &Visitor, user: &str, text: &str) -> Result<Option<Ranked>, Status> {
    let learnings = learnings(text);
    if user.is_empty() || learnings.is_empty() {
        return Ok(None);
    }
    let request = visitor.services.call(RankLearningsRequest {
        namespace: visitor.namespace.clone(),
        user_id: user.to_owned(),
        learnings,
    });
    let answer = visitor.services.profiles().rank_learnings(request).await?;
    let answer = answer.into_inner();
    Ok(Some(Ranked {
        ids: answer.ids,
        left_out: answer.left_out_ids,
    }))
}

/// Shows the profile of a user, and what is suggested for it.
pub(crate) async fn show(visitor: &Visitor, fields: &Fields) -> Answer {
    let user = fields.get("user");
    let profile = profile_of(visitor, user).await?;
    let years = profile.as_ref().and_then(|profile| profile.experience_years);
    let may_rank = visitor
        .access
        .may_for_users("learning.v1.ProfileService/RankLearnings");
    let ranking = if may_rank {
        let learnings = fields.get("learnings");
        Some(Ranking {
            ranked: ranked(visitor, user, learnings).await?,
            learnings: learnings.to_owned(),
        })
    } else {
        None
    };
    let shown = Profiles {
        tabs: tabs(visitor, "profiles"),
        user: user.to_owned(),
        years: years.map_or_else(String::new, |years| years.to_string()),
        lists: profile
            .as_ref()
            .map_or_else(Vec::new, |profile| lists(visitor, profile)),
        suggestions: suggestions(visitor, user).await?,
        ranking,
        profile,
        may_update: visitor
            .access
            .may_for_users("learning.v1.ProfileService/UpdateProfile"),
        may_generate: visitor
            .access
            .may_for_users("learning.v1.ProfileService/GenerateSuggestions"),
        may_decide: visitor
            .access
            .may_for_users("learning.v1.ProfileService/AcceptSuggestion"),
        page: visitor.page(Part::Outputs, visitor.t("Profiles", "プロフィール"), fields),
    };
    Ok(html(StatusCode::OK, &shown))
}

/// One entry a line; empty lines are none.
fn entries(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(ToOwned::to_owned)
        .collect()
}

/// Goes to the profile of a user, which tells what was done to it.
fn gone_to(visitor: &Visitor, user: &str, told: Told) -> Answer {
    let fields = visitor.telling(told).with("user", user);
    visitor.go(&visitor.within(Part::Outputs, &["profiles"], &fields))
}

/// Changes the profile of the user whom the path names.
pub(crate) async fn save(visitor: &Visitor, fields: &Fields) -> Answer {
    let years = match fields.get("experience_years") {
        "" => None,
        years => Some(years.parse().map_err(|_| {
            Status::from(emend_base::Error::invalid(
                "experience_years",
                "must be a whole number from 0 to 80",
            ))
        })?),
    };
    let paths = [
        "experience_years",
        "specialties",
        "known_technologies",
        "learning_goals",
    ];
    let request = visitor.services.call(UpdateProfileRequest {
        profile: Some(Profile {
            namespace: visitor.namespace.clone(),
            user_id: visitor.item.clone(),
            experience_years: years,
            specialties: entries(fields.text("specialties")),
            known_technologies: entries(fields.text("known_technologies")),
            learning_goals: entries(fields.text("learning_goals")),
            etag: fields.get("etag").to_owned(),
            revision: 0,
        }),
        update_mask: Some(FieldMask {
            paths: paths.map(ToOwned::to_owned).to_vec(),
        }),
        reason: fields.get("reason").to_owned(),
    });
    let answer = visitor.services.profiles().update_profile(request).await?;
    let revision = answer.into_inner().revision;
    gone_to(
        visitor,
        &visitor.item,
        Told::set("saved", revision).of(&visitor.item),
    )
}

/// Suggests entries from what the user whom the path names did.
pub(crate) async fn generate(visitor: &Visitor, fields: &Fields) -> Answer {
    let request = visitor.services.model_call(GenerateSuggestionsRequest {
        namespace: visitor.namespace.clone(),
        user_id: visitor.item.clone(),
        since: None,
        include_experience: fields.has("include_experience"),
    });
    let answer = visitor.services.profiles().generate_suggestions(request).await?;
    let done = if answer.into_inner().suggestions.is_empty() {
        "nothing"
    } else {
        "generated"
    };
    gone_to(visitor, &visitor.item, Told::new(done).of(&visitor.item))
}

/// Adds what is suggested to the profile.
pub(crate) async fn accept(visitor: &Visitor, fields: &Fields) -> Answer {
    let user = fields.get("user");
    let request = visitor.services.call(AcceptSuggestionRequest {
        namespace: visitor.namespace.clone(),
        user_id: user.to_owned(),
        candidate_id: visitor.item.clone(),
        etag: fields.get("etag").to_owned(),
    });
    let answer = visitor.services.profiles().accept_suggestion(request).await?;
    let revision = answer.into_inner().revision;
    gone_to(visitor, user, Told::set("approved", revision).of(user))
}

/// Turns a suggestion down for good.
pub(crate) async fn reject(visitor: &Visitor, fields: &Fields) -> Answer {
    let user = fields.get("user");
    let request = visitor.services.call(RejectSuggestionRequest {
        namespace: visitor.namespace.clone(),
        user_id: user.to_owned(),
        candidate_id: visitor.item.clone(),
        reason: fields.get("reason").to_owned(),
        etag: fields.get("etag").to_owned(),
    });
    visitor.services.profiles().reject_suggestion(request).await?;
    let told = told::decided(visitor, "rejected", &visitor.item).await?;
    gone_to(visitor, user, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_to_learn_is_a_line_each() {
        let read = learnings("rust 101 basic: Rust, ownership\n\nplain\nlast: Bun");
        let shown: Vec<_> = read
            .iter()
            .map(|it| (&*it.id, it.topics.len(), it.level()))
            .collect();
        assert_eq!(
            shown,
            [
                ("rust 101", 2, LearningLevel::Basic),
                ("plain", 0, LearningLevel::Unspecified),
                ("last", 1, LearningLevel::Unspecified),
            ]
        );
    }

    #[test]
    fn each_line_is_an_entry() {
        assert_eq!(entries(" React \n\nBun\n"), ["React", "Bun"]);
        assert!(entries("\n \n").is_empty());
    }
}
