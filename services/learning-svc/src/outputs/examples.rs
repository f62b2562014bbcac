//! Exports of rated outputs for training, page by page as the client takes them.
//!
//! Each page is a read of its own: what is retracted or redacted meanwhile is not in the pages that follow. An output that is
//! rated meanwhile moves on; it is not exported again.

use std::collections::HashSet;

use emend_base::Error;
use emend_core::{ContestId, Prompt, Rated, RatedId, RatingClass, ResourceKey, ratings::Place};
use futures::stream::{self, BoxStream, StreamExt as _};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::outputs::{
    Outputs,
    improve::window_of,
    rendered::{asked, asked_whole},
};

/// Outputs of one page: each may have 16 ratings with three texts of 256 KiB.
const PAGE: u32 = 4;

/// The form of examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExampleFormat {
    /// Messages, the last of which is what the AI should have made.
    Chat,
    /// A prompt, what is better and what is worse.
    Preference,
}

impl ExampleFormat {
    const fn classes(self) -> &'static [RatingClass] {
        match self {
            Self::Chat => &[RatingClass::Good, RatingClass::Bad],
            Self::Preference => &[RatingClass::Bad],
        }
    }
}

/// An export under way.
struct Examples {
    outputs: Outputs,
    window: ContestId,
    target: String,
    format: ExampleFormat,
    prompt: Option<Prompt>,
    after: Option<Place>,
    /// What was exported, or left out.
    seen: HashSet<RatedId>,
    _slot: OwnedSemaphorePermit,
}

impl Outputs {
    /// The lines of an export, by pages.
    pub(crate) fn export_examples(
        &self,
        key: &ResourceKey,
        format: ExampleFormat,
        prompt: Option<Prompt>,
        slot: OwnedSemaphorePermit,
    ) -> BoxStream<'static, Result<Vec<String>, Error>> {
        let export = Examples {
            outputs: self.clone(),
            window: window_of(key).contest_id(),
            target: key.key.to_string(),
            format,
            prompt,
            after: None,
            seen: HashSet::new(),
            _slot: slot,
        };
        let pages = stream::try_unfold(export, |mut export| async move {
            Ok(export.next().await?.map(|lines| (lines, export)))
        });
        pages.boxed()
    }
}

impl Examples {
    /// The next lines; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<String>>, Error> {
        loop {
            let classes = self.format.classes();
            let page = self
                .outputs
                .stored()
                .outputs_after(self.window, classes, self.after, PAGE)
                .await?;
            let Some((last, _)) = page.last() else {
                return Ok(None);
            };
            self.after = last.place;
            let mut lines = Vec::new();
            for (output, ratings) in &page {
                if self.seen.insert(output.rated) {
                    lines.extend(self.line(ratings));
                }
            }
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
        }
    }

    /// An output, by the ratings that its example is made of, the newest first.
    fn line(&self, ratings: &[Rated]) -> Option<String> {
        let rated = ratings.first()?;
        let texts = &rated.texts;
        let right = ratings.iter().find_map(|rated| rated.texts.right());
        let common = Common {
            target: &self.target,
            prompt_version: &rated.prompt_version,
            split: split(rated),
        };
        let line = match self.format {
            ExampleFormat::Chat => {
                let right = match rated.class {
                    RatingClass::Good => texts.output.as_str(),
                    _ => right?,
                };
                let (system, user) = match &self.prompt {
                    None => (None, texts.input.clone()),
                    Some(prompt) => match asked(prompt, &texts.input) {
                        (filled, "") => (None, filled),
                        (filled, input) => (Some(filled), input.to_owned()),
                    },
                };
                let message = |role, content| Message { role, content };
                let system = system.map(|content| message("system", content));
                let messages = system
                    .into_iter()
                    .chain([message("user", user), message("assistant", right.to_owned())]);
                serde_json::to_string(&Chat {
                    messages: messages.collect(),
                    common,
                })
            }
            ExampleFormat::Preference => serde_json::to_string(&Preference {
                prompt: match &self.prompt {
                    None => texts.input.clone(),
                    Some(prompt) => asked_whole(prompt, &texts.input),
                },
                chosen: right?,
                rejected: &texts.output,
                common,
            }),
        };
        line.ok()
    }
}

#[derive(Serialize)]
struct Common<'a> {
    target: &'a str,
    prompt_version: &'a str,
    split: &'static str,
}

#[derive(Serialize)]
struct Chat<'a> {
    messages: Vec<Message>,
    #[serde(flatten)]
    common: Common<'a>,
}

#[derive(Serialize)]
struct Message {
    role: &'static str,
    content: String,
}

#[derive(Serialize)]
struct Preference<'a> {
    prompt: String,
    chosen: &'a str,
    rejected: &'a str,
    #[serde(flatten)]
    common: Common<'a>,
}

/// In which part an example is, of 100: by what was rated alone, so that it stays there, whoever rates it again.
fn split(rated: &Rated) -> &'static str {
    let [a, b, c, d, ..] = *rated.rated.0.as_bytes();
    match u32::from_be_bytes([a, b, c, d]) % 100 {
        0..80 => "train",
        80..90 => "validation",
        _ => "test",
    }
}
