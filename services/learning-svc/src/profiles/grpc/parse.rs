//! Parses requests about profiles.

use std::collections::HashSet;

use emend_core::{
    Caller, Invalid, Namespace, ProfileEntry, ReporterId, ResourceValue, Status, UserId, Violations,
    kinds::{EXPERIENCE_YEARS, KNOWN_TECHNOLOGIES, LEARNING_GOALS, Learned, MAX_YEARS, SPECIALTIES},
    outputs::{Activity, Learning, LearningLevel},
    personal_data,
    violation::bounded_text,
};
use emend_proto::learning::v1 as pb;
use emend_wire::{
    page::{self, QueryHash},
    parse as wire,
};
use jiff::Timestamp;
use learning_store::{actor::Actor, contests::CandidatePosition};

use crate::{
    decisions::{
        profile_room::MAX_ENTRIES,
        review::{Review, Verdict},
    },
    grpc::{
        candidates::{position, statuses},
        parse,
    },
    profiles::{
        entries::ProfileUpdate,
        suggestions::{SuggestionDecided, SuggestionsAsked, entry_key},
    },
};

/// Activities in a call at most.
const MAX_ACTIVITIES: usize = 100;
/// Technologies, topics or goals of an activity at most, and topics of something to learn.
const MAX_NAMED: usize = 50;
/// Items to learn in a call at most.
const MAX_LEARNINGS: usize = 1_000;
/// Characters of the id of something to learn at most.
const LEARNING_ID: usize = 256;
/// Characters of an activity's summary at most.
const SUMMARY: usize = 4_000;
/// Characters of a source type at most.
const SOURCE_TYPE: usize = 64;
/// Bytes of a source id at most: it is compared byte for byte.
const SOURCE_ID: usize = 256;
/// The reason of a rejection that gives none.
const REJECTED: &str = "rejected by the user";
/// The fields that an update can name.
const FIELDS: [&str; 4] = [EXPERIENCE_YEARS, SPECIALTIES, KNOWN_TECHNOLOGIES, LEARNING_GOALS];

fn user(violations: &mut Violations, path: &str, raw: &str) -> Option<UserId> {
    let reporter = violations.check(path, ReporterId::parse(raw))?;
    Some(UserId::from(&reporter))
}

/// The client, on behalf of the user.
fn actor(caller: &Caller, user: &UserId) -> Actor {
    Actor {
        caller: caller.clone(),
        on_behalf_of: user.to_string(),
    }
}

/// Whose profile.
pub(crate) fn whose(namespace: &str, user_id: &str) -> Result<(Namespace, UserId), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, namespace);
    let user = user(&mut violations, "user_id", user_id);
    violations.finish(namespace.zip(user))
}

pub(crate) fn update(
    caller: &Caller,
    request: &pb::UpdateProfileRequest,
) -> Result<ProfileUpdate, Violations> {
    let mut violations = Violations::new();
    let Some(profile) = &request.profile else {
        violations.add("profile", "is required");
        return Err(violations);
    };
    let namespace = violations.check("profile.namespace", Namespace::parse(&profile.namespace));
    let user = user(&mut violations, "profile.user_id", &profile.user_id);
    let etag = parse::etag(&mut violations, "profile.etag", &profile.etag);
    let reason = parse::reason(&mut violations, &request.reason);
    let fields = fields(request, profile, &mut violations);
    let whose = namespace.as_ref().zip(user.as_ref());
    let mut entries = Vec::new();
    for (field, texts) in lists(profile) {
        if texts.len() > MAX_ENTRIES {
            let most = format!("must have at most {MAX_ENTRIES} entries, has {}", texts.len());
            violations.add(format!("profile.{field}"), most);
        }
        if !fields.contains(&field) {
            continue;
        }
        for (index, text) in texts.iter().take(MAX_ENTRIES).enumerate() {
            let path = format!("profile.{field}[{index}]");
            let Some(entry) = violations.check(&path, ProfileEntry::text(text)) else {
                continue;
            };
            if let Some((namespace, user)) = whose {
                let key = entry_key(namespace, user, field, text).map_err(Invalid);
                let key = violations.check(&path, key);
                entries.extend(key.map(|key| (key, ResourceValue::of(Learned::ProfileEntry(entry)))));
            }
        }
    }
    if let (Some(years), true) = (profile.experience_years, fields.contains(&EXPERIENCE_YEARS)) {
        let entry = violations.check(
            "profile.experience_years",
            years_of(years).and_then(ProfileEntry::years),
        );
        if let (Some(entry), Some((namespace, user))) = (entry, whose) {
            let key = entry_key(namespace, user, EXPERIENCE_YEARS, "").map_err(Invalid);
            let key = violations.check("profile.experience_years", key);
            let value = ResourceValue::of(Learned::ProfileEntry(entry));
            entries.extend(key.map(|key| (key, value)));
        }
    }
    let mut seen = HashSet::new();
    entries.retain(|(key, _)| seen.insert(key.contest_id()));
    let parsed = (|| {
        let user = user?;
        Some(ProfileUpdate {
            namespace: namespace?,
            fields,
            entries,
            etag: etag?,
            reason: reason?,
            actor: actor(caller, &user),
            user,
        })
    })();
    violations.finish(parsed)
}

fn lists(profile: &pb::Profile) -> [(&'static str, &[String]); 3] {
    [
        (SPECIALTIES, &profile.specialties),
        (KNOWN_TECHNOLOGIES, &profile.known_technologies),
        (LEARNING_GOALS, &profile.learning_goals),
    ]
}

/// The fields that change: those that the mask names, or without one those that are present.
fn fields(
    request: &pb::UpdateProfileRequest,
    profile: &pb::Profile,
    violations: &mut Violations,
) -> Vec<&'static str> {
    let Some(mask) = &request.update_mask else {
        let present = lists(profile).into_iter().filter(|(_, texts)| !texts.is_empty());
        let years = profile.experience_years.map(|_| EXPERIENCE_YEARS);
        return present.map(|(field, _)| field).chain(years).collect();
    };
    let mut fields = Vec::new();
    for path in mask.paths.iter().take(2 * FIELDS.len()) {
        match FIELDS.into_iter().find(|field| field == path) {
            Some(field) if fields.contains(&field) => {}
            Some(field) => fields.push(field),
            None => {
                let shown: String = path.chars().take(64).collect();
                let known = FIELDS.join(", ");
                violations.add("update_mask", format!("{shown:?} is not one of {known}"));
            }
        }
    }
    fields
}

fn years_of(years: i32) -> Result<u32, Invalid> {
    u32::try_from(years)
        .ok()
        .filter(|years| *years <= MAX_YEARS)
        .ok_or_else(|| Invalid::new(format!("must be 0 to {MAX_YEARS}, is {years}")))
}

/// What was done, each activity once, without personal data: prose is masked, and what names such data is left out.
pub(crate) fn activities(
    request: &pb::RecordActivityRequest,
    now: Timestamp,
) -> Result<(Namespace, UserId, Vec<Activity>), Violations> {
    let mut violations = Violations::new();
    let namespace = parse::namespace(&mut violations, &request.namespace);
    let user = user(&mut violations, "user_id", &request.user_id);
    let count = request.activities.len();
    if !(1..=MAX_ACTIVITIES).contains(&count) {
        violations.add(
            "activities",
            format!("must have 1 to {MAX_ACTIVITIES} entries, has {count}"),
        );
    }
    let mut activities = Vec::with_capacity(count.min(MAX_ACTIVITIES));
    let mut seen = HashSet::new();
    for (index, sent) in request.activities.iter().take(MAX_ACTIVITIES).enumerate() {
        let parsed = violations.part(&format!("activities[{index}]"), activity(sent, now));
        activities.extend(parsed.filter(|of| seen.insert((of.source_type.clone(), of.source_id.clone()))));
    }
    violations.finish(
        namespace
            .zip(user)
            .map(|(namespace, user)| (namespace, user, activities)),
    )
}

fn activity(sent: &pb::Activity, now: Timestamp) -> Result<Activity, Violations> {
    let mut violations = Violations::new();
    let source_type = violations.check("source_type", source_type(&sent.source_type));
    let source_id = violations.check("source_id", source_id(&sent.source_id));
    let occurred_at = match &sent.occurred_at {
        None => Some(now),
        Some(at) => violations.check("occurred_at", wire::timestamp(at)),
    };
    let summary = violations.check("summary", wire::free_text(&sent.summary, SUMMARY));
    let technologies = named(&mut violations, "technologies", &sent.technologies);
    let topics = named(&mut violations, "topics", &sent.topics);
    let goals = named(&mut violations, "goals", &sent.goals);
    let years = match sent.experience_years {
        None => Some(None),
        Some(years) => violations.check("experience_years", years_of(years)).map(Some),
    };
    let parsed = (|| {
        Some(Activity {
            source_type: source_type?,
            source_id: source_id?,
            occurred_at: occurred_at?,
            summary: personal_data::mask(&summary?.unwrap_or_default()).into_owned(),
            technologies,
            topics,
            goals,
            experience_years: years?,
        })
    })();
    violations.finish(parsed)
}

/// What tells of an activity.
fn source_type(raw: &str) -> Result<String, Invalid> {
    let is_form = raw.starts_with(|first: char| first.is_ascii_uppercase())
        && raw.len() <= SOURCE_TYPE
        && raw
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_form.then(|| raw.to_owned()).ok_or_else(|| {
        Invalid::new(format!(
            "must be 1 to {SOURCE_TYPE} characters of [A-Z0-9_] and begin with a letter"
        ))
    })
}

/// An id as sent, without a space around it that nobody would see.
fn source_id(raw: &str) -> Result<String, Invalid> {
    let id = bounded_text(raw, 1, SOURCE_ID)?;
    if id == raw {
        Ok(id)
    } else {
        Err(Invalid::new("must not begin or end with white space"))
    }
}

fn named(violations: &mut Violations, field: &str, texts: &[String]) -> Vec<String> {
    if texts.len() > MAX_NAMED {
        violations.add(
            field,
            format!("must have at most {MAX_NAMED} entries, has {}", texts.len()),
        );
    }
    let mut named = Vec::new();
    for (index, text) in texts.iter().take(MAX_NAMED).enumerate() {
        let text = violations.check(&format!("{field}[{index}]"), ResourceValue::parse_display(text));
        named.extend(text.filter(|text| !personal_data::found_in(text)));
    }
    named
}

pub(crate) fn asked(
    caller: &Caller,
    request: &pb::GenerateSuggestionsRequest,
) -> Result<SuggestionsAsked, Violations> {
    let mut violations = Violations::new();
    let whose = violations.part("", whose(&request.namespace, &request.user_id));
    let since = match &request.since {
        None => Some(None),
        Some(since) => violations.check("since", wire::timestamp(since)).map(Some),
    };
    let parsed = whose
        .zip(since)
        .map(|((namespace, user), since)| SuggestionsAsked {
            actor: actor(caller, &user),
            namespace,
            user,
            since,
            include_experience: request.include_experience,
        });
    violations.finish(parsed)
}

/// Whose profile, and what to order by it: the items' ids.
pub(crate) fn learnings(
    request: pb::RankLearningsRequest,
) -> Result<(Namespace, UserId, Vec<Learning<String>>), Violations> {
    let mut violations = Violations::new();
    let whose = violations.part("", whose(&request.namespace, &request.user_id));
    let count = request.learnings.len();
    if !(1..=MAX_LEARNINGS).contains(&count) {
        violations.add(
            "learnings",
            format!("must have 1 to {MAX_LEARNINGS} entries, has {count}"),
        );
    }
    let mut learnings = Vec::with_capacity(count.min(MAX_LEARNINGS));
    for (index, sent) in request.learnings.into_iter().take(MAX_LEARNINGS).enumerate() {
        learnings.extend(violations.part(&format!("learnings[{index}]"), learning(&sent)));
    }
    violations.finish(whose.map(|(namespace, user)| (namespace, user, learnings)))
}

fn learning(sent: &pb::Learning) -> Result<Learning<String>, Violations> {
    let mut violations = Violations::new();
    let item = violations.check("id", bounded_text(&sent.id, 1, LEARNING_ID));
    if sent.topics.len() > MAX_NAMED {
        violations.add(
            "topics",
            format!("must have at most {MAX_NAMED} entries, has {}", sent.topics.len()),
        );
    }
    let mut topics = Vec::new();
    for (index, topic) in sent.topics.iter().take(MAX_NAMED).enumerate() {
        topics.extend(violations.check(&format!("topics[{index}]"), ResourceValue::parse_display(topic)));
    }
    let level = match pb::LearningLevel::try_from(sent.level) {
        Ok(pb::LearningLevel::Unspecified | pb::LearningLevel::Basic) => Some(LearningLevel::Basic),
        Ok(pb::LearningLevel::Intermediate) => Some(LearningLevel::Intermediate),
        Ok(pb::LearningLevel::Advanced) => Some(LearningLevel::Advanced),
        Err(_) => {
            violations.add("level", format!("is not a known level: {}", sent.level));
            None
        }
    };
    let parsed = item.zip(level);
    violations.finish(parsed.map(|(item, level)| Learning { item, topics, level }))
}

/// Which suggestions to list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) namespace: Namespace,
    pub(crate) user: UserId,
    pub(crate) statuses: Vec<Status>,
    pub(crate) after: Option<CandidatePosition>,
    pub(crate) limit: u32,
}

pub(crate) fn query(request: &pb::ListSuggestionsRequest) -> QueryHash {
    let without_page = pb::ListSuggestionsRequest {
        page_size: 0,
        page_token: String::new(),
        ..request.clone()
    };
    QueryHash::of("ListSuggestions", &without_page)
}

pub(crate) fn list(request: &pb::ListSuggestionsRequest, query: QueryHash) -> Result<List, Violations> {
    let mut violations = Violations::new();
    let whose = violations.part("", whose(&request.namespace, &request.user_id));
    let mut statuses = statuses(&request.statuses, &mut violations);
    if request.statuses.is_empty() {
        statuses.push(Status::AwaitingReview);
    }
    let limit = violations.check("page_size", wire::page_size(request.page_size, 50, 500));
    let after = violations.check("page_token", page::position(query, &request.page_token));
    let after = after.and_then(|after| match after {
        None => Some(None),
        Some(bytes) => violations.check("page_token", position(&bytes)).map(Some),
    });
    let parsed = (|| {
        let (namespace, user) = whose?;
        Some(List {
            namespace,
            user,
            statuses,
            after: after?,
            limit: limit?,
        })
    })();
    violations.finish(parsed)
}

pub(crate) fn accepted(
    caller: &Caller,
    request: &pb::AcceptSuggestionRequest,
) -> Result<SuggestionDecided, Violations> {
    let verdict = Some(Verdict::Approve {
        edited: None,
        reason: None,
        accept_redacted: false,
    });
    let ids = [
        &request.namespace,
        &request.user_id,
        &request.candidate_id,
        &request.etag,
    ];
    decided(caller, ids.map(String::as_str), Violations::new(), verdict)
}

pub(crate) fn rejected(
    caller: &Caller,
    request: &pb::RejectSuggestionRequest,
) -> Result<SuggestionDecided, Violations> {
    let mut violations = Violations::new();
    let reason = parse::reason(&mut violations, &request.reason);
    let verdict = reason.map(|reason| Verdict::Reject {
        reason: reason.unwrap_or_else(|| REJECTED.to_owned()),
    });
    let ids = [
        &request.namespace,
        &request.user_id,
        &request.candidate_id,
        &request.etag,
    ];
    decided(caller, ids.map(String::as_str), violations, verdict)
}

/// A decision on a suggestion, named by namespace, user, candidate and etag.
fn decided(
    caller: &Caller,
    [namespace, user_id, candidate, etag]: [&str; 4],
    mut violations: Violations,
    verdict: Option<Verdict>,
) -> Result<SuggestionDecided, Violations> {
    let whose = violations.part("", whose(namespace, user_id));
    let candidate = parse::candidate_id(&mut violations, candidate);
    let etag = parse::etag(&mut violations, "etag", etag);
    let parsed = (|| {
        let (namespace, user) = whose?;
        Some(SuggestionDecided {
            review: Review {
                namespace,
                candidate: candidate?,
                etag: etag?,
                actor: actor(caller, &user),
                operation: None,
                verdict: verdict?,
            },
            user,
        })
    })();
    violations.finish(parsed)
}
