//! How what people said is shown to an AI: few-shot examples, what makes a prompt better, what users know and want to learn, and how
//! those are shown to the AI.

mod guidelines;
mod improvement;
mod profile;
mod question;
mod render;
mod suggestion;

pub use self::{
    guidelines::improve,
    improvement::{Improved, Material, RatedOutput, Unimproved},
    profile::{Learning, LearningLevel, Profile, rank_learnings},
    question::{Question, improvement_question, suggestion_question},
    render::{render, render_for},
    suggestion::{Activity, SURE, Suggested, SuggestionMaterial, SuggestionType, suggest},
};
