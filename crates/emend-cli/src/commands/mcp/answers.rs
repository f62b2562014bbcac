//! What the tools answer: the fields of each answer, and which of them hold what others wrote.

use rmcp::model::JsonObject;
use serde_json::Value;

use super::schema::{self, Field};

/// The name of the field that names those with texts of others.
pub(super) const TEXTS_OF_OTHERS: &str = "texts_of_others";

/// What a tool answers. Besides its fields every answer has a `message`, which is this server's, and `texts_of_others`.
#[derive(Debug)]
pub(super) struct Answer {
    fields: &'static [&'static [(&'static str, Field)]],
    /// The fields, and what is in them, that other people, documents and programs wrote. `[]` stands for each item of a list.
    theirs: &'static [&'static [&'static str]],
}

impl Answer {
    pub(super) fn schema(&self) -> JsonObject {
        let own: &[(&str, Field)] = &[("message", Field::Text), (TEXTS_OF_OTHERS, Field::Texts)];
        let fields = self.fields.concat();
        schema::output(&[own, &fields[..]].concat())
    }

    /// The answer, with the names of the fields that hold texts of others.
    pub(super) fn marked(&self, mut answer: Value) -> Value {
        answer[TEXTS_OF_OTHERS] = self.theirs.concat().into();
        answer
    }
}

/// What became of something that was said.
const OUTCOME: &[(&str, Field)] = &[
    ("state", Field::Text),
    ("reason", Field::Text),
    ("evaluated", Field::Flag),
    ("revision", Field::Whole),
];

/// Of `intent_feedback`.
pub(super) const CORRECTION: Answer = Answer {
    fields: &[
        OUTCOME,
        &[
            ("recorded", Field::Flag),
            ("candidate_id", Field::Text),
            ("occurrence_count", Field::Whole),
            ("was_new", Field::Flag),
            ("learning_type", Field::Text),
            ("risk_level", Field::Text),
            ("auto_applied", Field::Flag),
            ("threshold_applied", Field::Flag),
            ("what_was_learned", Field::Object),
            ("reporter_count", Field::Whole),
            ("confirmations_needed", Field::Whole),
            ("decision_reason", Field::Text),
            ("feedback_id", Field::Text),
            ("request_id", Field::Text),
        ],
    ],
    theirs: &[&["decision_reason"]],
};

/// Of `feedback`.
pub(super) const DECISION: Answer = Answer {
    fields: &[
        OUTCOME,
        &[
            ("recorded", Field::Flag),
            ("known", Field::Flag),
            ("was_new", Field::Flag),
            ("decision_reason", Field::Text),
            ("event_id", Field::Text),
            ("request_id", Field::Text),
        ],
    ],
    theirs: &[&["decision_reason"]],
};

/// Of `rate_output` and `search_feedback`.
pub(super) const RATED: Answer = Answer {
    fields: &[
        OUTCOME,
        &[
            ("recorded", Field::Flag),
            ("feedback_id", Field::Text),
            ("request_id", Field::Text),
        ],
    ],
    theirs: &[],
};

/// Of `intent_retract`.
pub(super) const RETRACTED: Answer = Answer {
    fields: &[
        OUTCOME,
        &[
            ("retracted", Field::Flag),
            ("still_applies", Field::MaybeFlag),
            ("why", Field::Text),
            ("feedback_id", Field::Text),
            ("candidate_id", Field::Text),
            ("reporter_count", Field::Whole),
            ("confirmations_needed", Field::Whole),
            ("decision_reason", Field::Text),
        ],
    ],
    theirs: &[&["decision_reason"]],
};

/// Of `intent_resolve`.
pub(super) const RESOLVED: Answer = Answer {
    fields: &[&[
        ("found", Field::Flag),
        ("value", Field::MaybeText),
        ("score", Field::MaybeNumber),
        ("source", Field::MaybeText),
        ("scope", Field::MaybeText),
        ("prohibited", Field::Texts),
        ("match_prohibited", Field::Flag),
        ("feedback_hint", Field::MaybeText),
        ("near", Field::MaybeObject),
        ("near_status", Field::MaybeText),
        ("normalized_phrase", Field::Text),
        ("revision", Field::Whole),
    ]],
    theirs: &[&["value", "prohibited", "normalized_phrase"], OF_NEAR],
};

/// What people wrote of similar phrases.
const OF_NEAR: &[&str] = &["near.choice", "near.because[].phrase", "near.because[].choice"];

/// What people wrote of candidates.
const OF_CANDIDATES: &[&str] = &[
    "candidates[].phrase",
    "candidates[].written_as",
    "candidates[].maps_to",
    "candidates[].user_id",
    "candidates[].decided_by",
    "candidates[].decision_reason",
    "candidates[].first_approval",
    "candidates[].votes[].reporter",
    "candidates[].votes[].system_choice",
    "candidates[].votes[].explanation",
    "candidates[].votes[].context",
    "candidates[].history[].by",
    "candidates[].history[].reason",
];

/// Of `intent_list`.
pub(super) const CANDIDATES: Answer = Answer {
    fields: &[&[("candidates", Field::Objects), ("next_page_token", Field::Text)]],
    theirs: &[OF_CANDIDATES],
};

/// Of `intent_approve` and `intent_reject`.
pub(super) const DECIDED: Answer = Answer {
    fields: &[&[
        ("candidate_id", Field::Text),
        ("type", Field::Text),
        ("phrase", Field::Text),
        ("maps_to", Field::Text),
        ("scope", Field::Text),
        ("status", Field::Text),
        ("decided_by", Field::Text),
        ("pinned", Field::Flag),
        ("redacted_count", Field::MaybeNumber),
        ("etag", Field::Text),
        ("revision", Field::Whole),
    ]],
    theirs: &[&[
        "phrase",
        "written_as",
        "maps_to",
        "user_id",
        "decided_by",
        "decision_reason",
    ]],
};

/// Of `explain`.
pub(super) const EXPLAINED: Answer = Answer {
    fields: &[&[
        ("found", Field::Flag),
        ("value", Field::MaybeText),
        ("scope", Field::MaybeText),
        ("prohibited", Field::Texts),
        ("near", Field::MaybeObject),
        ("near_status", Field::MaybeText),
        ("candidates", Field::Objects),
        ("next_page_token", Field::Text),
        ("changes", Field::Objects),
        ("changes_not_shown", Field::Flag),
        ("policy", Field::Object),
        ("nodes", Field::MaybeObjects),
        ("nodes_not_shown", Field::Whole),
        ("revision", Field::Whole),
    ]],
    theirs: &[
        OF_CANDIDATES,
        OF_NEAR,
        &["value", "prohibited", "normalized_phrase", "nodes[].node"],
        &[
            "changes[].before",
            "changes[].after",
            "changes[].by",
            "changes[].reason",
        ],
    ],
};

/// Of `get_status`.
pub(super) const STATUS: Answer = Answer {
    fields: &[&[
        ("blocked_domains", Field::Objects),
        ("next_page_token", Field::Text),
        ("review", Field::MaybeObject),
    ]],
    theirs: &[&[
        "blocked_domains[].domain",
        "blocked_domains[].reason",
        "blocked_domains[].cause_id",
        "blocked_domains[].contradicting_claims",
    ]],
};

/// Of `get_materials`.
pub(super) const MATERIALS: Answer = Answer {
    fields: &[&[
        ("pages", Field::Objects),
        ("fragments", Field::Objects),
        ("claims", Field::Objects),
        ("edges", Field::Objects),
        ("next_page_token", Field::Text),
    ]],
    theirs: &[&["pages[]", "fragments[]", "claims[]", "edges[]"]],
};

/// Of `get_prompt`.
pub(super) const PROMPT: Answer = Answer {
    fields: &[&[
        ("text", Field::Text),
        ("version", Field::Whole),
        ("settings", Field::Object),
        ("good_examples", Field::Whole),
        ("bad_examples", Field::Whole),
        ("revision", Field::Whole),
    ]],
    theirs: &[&["text", "settings"]],
};

/// Of what a resource shows of a kind.
pub(super) const LEARNED: Answer = Answer {
    fields: &[],
    theirs: &[&[
        "learned[].key",
        "learned[].qualifier",
        "learned[].written_as",
        "learned[].value",
    ]],
};

/// Of what a resource shows of a claim.
pub(super) const CLAIM: Answer = Answer {
    fields: &[],
    theirs: &[&["claim", "edges[]"]],
};

/// Of what a resource shows of a target.
pub(super) const PROMPTS: Answer = Answer {
    fields: &[],
    theirs: &[&["target", "prompts[]", "examples"]],
};

/// Of what explains a domain.
pub(super) const DOMAIN: Answer = Answer {
    fields: &[],
    theirs: &[&[
        "domain",
        "blocked.domain",
        "blocked.reason",
        "blocked.cause_id",
        "blocked.contradicting_claims",
        "rules[].pattern",
        "rules[].reason",
        "rules[].caller",
        "rules[].on_behalf_of",
    ]],
};

/// Of what a day's report is made of.
pub(super) const REPORT: Answer = Answer {
    fields: &[],
    theirs: &[&[
        "changes[].key",
        "changes[].before",
        "changes[].after",
        "changes[].by",
        "changes[].reason",
    ]],
};
