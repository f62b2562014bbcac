//! Feedback on what an AI made: ratings, the few-shot examples that they become, and how those are shown to the AI.

mod few_shot;
mod rating;
mod render;

pub use self::{
    few_shot::{Rated, RatedId, set_of},
    rating::{
        JUDGEMENT_CHARS, MAX_ISSUES, RATED_TEXT_CHARS, RatedTexts, Rating, RatingClass, RatingFields,
        RatingTarget, RatingValue, TARGETS,
    },
    render::{Language, render},
};
