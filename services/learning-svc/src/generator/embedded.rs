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
        Ok(improve(material)?)
    }

    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Vec<Suggested>, GeneratorError> {
        Ok(suggest(material))
    }

    async fn run(&self, _prompt: &str, _input: &str) -> Option<Result<String, GeneratorError>> {
        None
    }
}
