//! The generator that needs no model and no network: equal material gives equal texts.

use async_trait::async_trait;
use emend_core::outputs::{Improved, Material, Suggested, SuggestionMaterial, improve, suggest};

use super::{Generator, GeneratorError};

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded;

#[async_trait]
impl Generator for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError> {
        improve(material).ok_or_else(|| {
            GeneratorError::BadAnswer(
                "the ratings name no issues and no corrected texts, or the prompt has no room for them"
                    .to_owned(),
            )
        })
    }

    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Vec<Suggested>, GeneratorError> {
        Ok(suggest(material))
    }

    async fn run(&self, _prompt: &str, _input: &str) -> Option<Result<String, GeneratorError>> {
        None
    }
}
