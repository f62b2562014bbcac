//! The generator that needs no model and no network: equal material gives equal texts.

use std::time::Duration;

use async_trait::async_trait;
use emend_core::outputs::{Improved, Material, SuggestionMaterial, improve, suggest};

use super::{Generator, GeneratorError, Suggestions};

/// See the module.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded;

#[async_trait]
impl Generator for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn patience(&self) -> Duration {
        Duration::from_mins(1)
    }

    async fn improve(&self, material: &Material) -> Result<Improved, GeneratorError> {
        Ok(improve(material)?)
    }

    async fn suggest(&self, material: &SuggestionMaterial) -> Result<Suggestions, GeneratorError> {
        Ok(Suggestions {
            usable: suggest(material),
            unusable: Vec::new(),
        })
    }

    async fn run(&self, _prompt: &str, _input: &str) -> Option<Result<String, GeneratorError>> {
        None
    }
}
