//! The port through which texts are generated: better prompts, suggestions for profiles. Nothing is generated within a
//! transaction, and what comes back is checked before it is stored.

pub mod embedded;
pub mod http;

use std::time::Duration;

use async_trait::async_trait;
use emend_base::Error;
use emend_core::outputs::{Improved, Material, Suggested, SuggestionMaterial, Unimproved};

/// The reason of an error whose cause is a setting: the same would be refused again.
pub(crate) const REFUSED: &str = "GENERATOR_REFUSED";

/// Why nothing was generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeneratorError {
    /// The model could not be asked, or did not answer in time: it may work later.
    #[error("the generator is unavailable: {0}")]
    Unavailable(String),
    /// It refuses what it is asked, and will again: its settings are wrong, or what is asked.
    #[error("the generator refuses the request: {0}")]
    Refused(String),
    /// What it answered can't be used.
    #[error("the generator's answer can't be used: {0}")]
    BadAnswer(String),
    /// There is nothing to make a better prompt of.
    #[error(transparent)]
    Unimproved(#[from] Unimproved),
}

/// Suggested entries for a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// Those that can be used.
    pub usable: Vec<Suggested>,
    /// Why others can't, each named by its place in the answer.
    pub unusable: Vec<String>,
}

/// Generates texts.
#[async_trait]
pub trait Generator: Send + Sync {
    /// What generates: `embedded`, or the model's name.
    fn name(&self) -> &str;

    /// How long it may take for one text.
    fn patience(&self) -> Duration;

    /// A better prompt.
    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError>;

    /// Entries for a profile: those that can be used, and why others can't.
    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Suggestions, GeneratorError>;

    /// What a model makes of an input, asked with a prompt; `None` if there is no model to ask.
    async fn run(&self, prompt: &str, input: &str) -> Option<Result<String, GeneratorError>>;
}

impl GeneratorError {
    /// Logs that a generator made no `text`, and is the error for who asked for it. What is refused is not worth another try before
    /// somebody changes a setting.
    pub(crate) fn logged(&self, generator: &dyn Generator, text: &str) -> Error {
        let message = self.to_string();
        tracing::warn!(
            generator = generator.name(),
            text,
            reason = message,
            "nothing was generated"
        );
        let reason = match self {
            Self::Refused(_) => {
                return Error::FailedPrecondition {
                    reason: REFUSED,
                    message,
                    violations: Vec::new(),
                };
            }
            Self::Unavailable(_) => "GENERATOR_UNAVAILABLE",
            Self::BadAnswer(_) | Self::Unimproved(_) => "GENERATOR_BAD_ANSWER",
        };
        Error::Unavailable {
            reason,
            message,
            retry_after: None,
        }
    }
}
