//! Feedback on what an AI made: what can be rated, ratings, and the few-shot examples that they become.

mod alias;
mod few_shot;
mod language;
mod own;
mod rating;
mod window;

pub use self::{
    alias::{target_name, target_named},
    few_shot::{OutputTally, Place, Rated, RatedId, VOICES, set_of, voices},
    language::Language,
    own::{MAX_OWN_TARGETS, MAX_OWN_VALUES, OwnTarget, OwnValue, check_own_targets},
    rating::{
        JUDGEMENT_CHARS, MAX_ISSUES, RATED_TEXT_BYTES, RatedTexts, Rating, RatingClass, RatingFields,
        RatingTarget, RatingValue, RefusedRating, TARGETS,
    },
    window::{Example, FewShotSet, MAX_WINDOW, WindowPolicy},
};
