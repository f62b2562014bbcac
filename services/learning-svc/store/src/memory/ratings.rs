//! Ratings, and what outputs come to, in memory.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use async_trait::async_trait;
use emend_core::{CandidateId, ContestId, FeedbackId, OutputTally, Rated, RatedId, RatedTexts};
use emend_store::{CorruptRow, simulation::unique_violation};

use super::{
    Result,
    tables::{Tables, Write},
    work::Work,
};
use crate::outputs::{
    KnownRating, OfClass, OfOutput, OfVoter, RatingRepository, RatingWrites, improvements::Redactions,
};

impl Tables {
    pub(super) fn write_ratings(&mut self, writes: &RatingWrites) -> Result<()> {
        for new in &writes.new {
            let mut new = new.clone();
            if new.rated.excluded {
                new.rated.texts = RatedTexts::default();
            }
            if self.ratings.insert(new.rated.feedback, new).is_some() {
                return Err(unique_violation("ratings"));
            }
        }
        for change in &writes.changed {
            if let Some(stored) = self.ratings.get_mut(&change.feedback) {
                stored.rated.live = change.live;
                stored.rated.excluded = change.excluded;
                if change.excluded {
                    stored.rated.texts = RatedTexts::default();
                }
            }
        }
        for (contest, output) in &writes.outputs {
            self.outputs.insert((*contest, output.rated), *output);
        }
        Ok(())
    }

    /// The newest ratings of a contest that `counts`, with the first characters of their texts.
    fn newest_ratings(
        &self,
        contest: ContestId,
        limit: u32,
        max_text_chars: u32,
        counts: impl Fn(&Rated) -> bool,
    ) -> Vec<(ContestId, Rated)> {
        let ratings = self.ratings.values();
        let mut found: Vec<&Rated> = ratings
            .filter(|stored| stored.contest == contest && counts(&stored.rated))
            .map(|stored| &stored.rated)
            .collect();
        found.sort_by_key(|rated| Reverse((rated.accept_order, rated.feedback)));
        let newest = found.into_iter().take(limit as usize);
        newest
            .map(|rated| (contest, shortened(rated, max_text_chars)))
            .collect()
    }
}

fn shortened(rated: &Rated, max_text_chars: u32) -> Rated {
    let first = |text: &str| text.chars().take(max_text_chars as usize).collect::<String>();
    let texts = &rated.texts;
    Rated {
        texts: RatedTexts {
            input: first(&texts.input),
            output: first(&texts.output),
            corrected: first(&texts.corrected),
            ..texts.clone()
        },
        ..rated.clone()
    }
}

#[async_trait]
impl RatingRepository for Work {
    async fn known(&mut self, feedback: &[FeedbackId]) -> Result<HashMap<FeedbackId, KnownRating>> {
        self.read("known_ratings", |tables| {
            let stored = feedback.iter().filter_map(|id| tables.ratings.get(id));
            let known = stored.map(|stored| {
                let missing = || CorruptRow::new("ratings", "contest", stored.contest, "the row is missing");
                let row = tables.contests.get(&stored.contest).ok_or_else(missing)?;
                let rated = Rated {
                    texts: RatedTexts::default(),
                    ..stored.rated.clone()
                };
                Ok((
                    rated.feedback,
                    KnownRating {
                        key: row.key.clone(),
                        rated,
                    },
                ))
            });
            known.collect()
        })
        .await
    }

    async fn of_voters(
        &mut self,
        wanted: &[OfVoter],
        max_text_chars: u32,
    ) -> Result<Vec<(ContestId, Rated)>> {
        self.read("ratings_of_voters", |tables| {
            let found = wanted.iter().flat_map(|asked| {
                tables.newest_ratings(asked.contest, asked.limit, max_text_chars, |rated| {
                    !rated.excluded && (rated.voter, rated.rated) == (asked.voter, asked.rated)
                })
            });
            Ok(found.collect())
        })
        .await
    }

    async fn of_outputs(
        &mut self,
        wanted: &[OfOutput],
        max_text_chars: u32,
    ) -> Result<Vec<(ContestId, Rated)>> {
        self.read("ratings_of_outputs", |tables| {
            let found = wanted.iter().flat_map(|asked| {
                tables.newest_ratings(asked.contest, asked.limit, max_text_chars, |rated| {
                    rated.live && (rated.rated, rated.class) == (asked.rated, asked.class)
                })
            });
            Ok(found.collect())
        })
        .await
    }

    async fn outputs(&mut self, wanted: &[(ContestId, RatedId)]) -> Result<Vec<(ContestId, OutputTally)>> {
        self.read("outputs", |tables| {
            let wanted: HashSet<_> = wanted.iter().collect();
            let found = wanted.into_iter().filter_map(|place| {
                let output = tables.outputs.get(place)?;
                Some((place.0, *output))
            });
            Ok(found.collect())
        })
        .await
    }

    async fn newest_outputs(&mut self, wanted: &[OfClass]) -> Result<Vec<(ContestId, OutputTally)>> {
        self.read("newest_outputs", |tables| {
            let mut found = Vec::new();
            for asked in wanted {
                let outputs = tables.outputs.iter();
                let mut of_class: Vec<OutputTally> = outputs
                    .filter(|((contest, _), output)| {
                        *contest == asked.contest && output.class() == Some(asked.class)
                    })
                    .map(|(_, output)| *output)
                    .collect();
                of_class.sort_by_key(|output| Reverse(output.place));
                of_class.truncate(asked.limit as usize);
                found.extend(of_class.into_iter().map(|output| (asked.contest, output)));
            }
            Ok(found)
        })
        .await
    }

    async fn save(&mut self, writes: &RatingWrites) -> Result<()> {
        self.note("save_ratings", Write::Ratings(Arc::new(writes.clone())))
            .await
    }
}

/// This store keeps no prompts that were generated: nobody can generate one here.
#[async_trait]
impl Redactions for Work {
    async fn redacted(&mut self, _candidate: CandidateId) -> Result<u64> {
        Ok(0)
    }
}

#[cfg(test)]
impl super::MemoryStore {
    /// How many ratings have texts.
    pub(crate) fn ratings_with_texts(&self) -> i64 {
        let state = self.state();
        let with_texts = state.tables.ratings.values();
        let with_texts = with_texts.filter(|stored| stored.rated.texts != RatedTexts::default());
        i64::try_from(with_texts.count()).unwrap()
    }
}
