//! Feedback on what an AI made: ratings, the few-shot examples that they become, what users know and want to learn, and how
//! those are shown to the AI.

mod few_shot;
mod guidelines;
mod improvement;
mod own;
mod profile;
mod question;
mod rating;
mod render;
mod suggestion;

pub use self::{
    few_shot::{OutputTally, Place, Rated, RatedId, VOICES, set_of, voices},
    guidelines::improve,
    improvement::{Improved, Material, RatedOutput, Unimproved},
    own::{MAX_OWN_TARGETS, MAX_OWN_VALUES, OwnTarget, OwnValue, check_own_targets},
    profile::{Learning, LearningLevel, Profile, rank_learnings},
    question::{Question, improvement_question, json_object, suggestion_question},
    rating::{
        JUDGEMENT_CHARS, MAX_ISSUES, RATED_TEXT_CHARS, RatedTexts, Rating, RatingClass, RatingFields,
        RatingTarget, RatingValue, RefusedRating, TARGETS,
    },
    render::{Language, render, render_for},
    suggestion::{Activity, SURE, Suggested, SuggestionMaterial, SuggestionType, suggest},
};
