//! The generator without a model: deterministic, and nothing leaves the process.

use async_trait::async_trait;
use emend_core::outputs::{Improved, Material, Suggested, SuggestionMaterial, suggest};

use super::{Generator, GeneratorError};

/// Suggests what activities name.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded;

#[async_trait]
impl Generator for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn improve(&self, _material: &Material) -> Result<Improved, GeneratorError> {
        Err(GeneratorError::Unavailable("prompts need a model".to_owned()))
    }

    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Vec<Suggested>, GeneratorError> {
        Ok(suggest(material))
    }

    async fn run(&self, _prompt: &str, _input: &str) -> Option<Result<String, GeneratorError>> {
        None
    }
}
