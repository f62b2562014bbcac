//! The port through which texts are generated: better prompts, suggestions for profiles. Nothing is generated within a
//! transaction, and what comes back is checked before it is stored.

pub mod embedded;
pub mod http;

use async_trait::async_trait;
use emend_core::outputs::{Improved, Material, Suggested, SuggestionMaterial, Unimproved};

/// Why nothing was generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratorError {
    /// The model could not be asked, or did not answer in time: it may work later.
    #[error("the generator is unavailable: {0}")]
    Unavailable(String),
    /// What it answered can't be used.
    #[error("the generator's answer can't be used: {0}")]
    BadAnswer(String),
    /// There is nothing to make a better prompt of.
    #[error(transparent)]
    Unimproved(#[from] Unimproved),
}

/// Generates texts.
#[async_trait]
pub trait Generator: Send + Sync {
    /// What generates: `embedded`, or the model's name.
    fn name(&self) -> &str;

    /// A better prompt.
    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError>;

    /// Entries for a profile.
    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Vec<Suggested>, GeneratorError>;

    /// What a model makes of an input, asked with a prompt; `None` if there is no model to ask.
    async fn run(&self, prompt: &str, input: &str) -> Option<Result<String, GeneratorError>>;
}
