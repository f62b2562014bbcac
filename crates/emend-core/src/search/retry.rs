//! What is tried, step by step, until something is found.

use super::tuning::Tuning;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<'t> {
    /// Search so. If nothing is found, ask for the next step.
    Search(Attempt<'t>),
    /// Nothing was found: tell the user this. Empty: the node's own text.
    Suggest(&'t str),
}

/// One search.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt<'t> {
    /// Which one, from 1.
    pub number: usize,
    /// Where to search; empty: where the node does without being told.
    pub namespaces: &'t [String],
    /// Where to search beside that.
    pub more_namespaces: Vec<&'t str>,
    /// The score from which on results are given, 0.0 to 1.0.
    pub min_score: f64,
    /// How many results, 1 to 100.
    pub top_k: u32,
    /// Whether the text is embedded with its synonyms ([`ExpandMode::Embedding`](super::ExpandMode::Embedding)) instead of
    /// as it is. A search by words always has them.
    pub expand: bool,
}

/// The steps for a query, first the search as configured and last what the user is told.
#[derive(Debug, Clone)]
pub struct RetryPlan<'t> {
    tuning: &'t Tuning,
    /// The next search; `None` once all were tried.
    next: Option<Attempt<'t>>,
    is_over: bool,
}

impl<'t> RetryPlan<'t> {
    /// The plan of a tuning.
    pub fn new(tuning: &'t Tuning) -> Self {
        Self {
            tuning,
            next: Some(Attempt {
                number: 1,
                namespaces: tuning.namespaces(),
                more_namespaces: Vec::new(),
                min_score: tuning.min_score(),
                top_k: tuning.top_k(),
                expand: false,
            }),
            is_over: false,
        }
    }
}

impl<'t> Iterator for RetryPlan<'t> {
    type Item = Step<'t>;

    fn next(&mut self) -> Option<Step<'t>> {
        if let Some(attempt) = self.next.take() {
            self.next = following(self.tuning, &attempt);
            return Some(Step::Search(attempt));
        }
        if self.is_over {
            return None;
        }
        self.is_over = true;
        Some(Step::Suggest(self.tuning.suggestion()))
    }
}

/// The search after this one.
fn following<'t>(tuning: &'t Tuning, before: &Attempt<'t>) -> Option<Attempt<'t>> {
    let step = tuning.retry().get(before.number - 1)?;
    let mut next = before.clone();
    next.number += 1;
    for namespace in &step.namespaces {
        if !next.namespaces.contains(namespace) && !next.more_namespaces.contains(&&**namespace) {
            next.more_namespaces.push(namespace);
        }
    }
    next.min_score = lowered(next.min_score, step.lower_min_score_by.get());
    next.top_k = next.top_k.max(step.top_k);
    next.expand |= step.expand;
    Some(next)
}

/// Rounded to millionths, so that 0.4 − 0.1 is 0.3.
fn lowered(score: f64, by: f64) -> f64 {
    ((score - by) * 1e6).round().max(0.0) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(line: &str) -> Vec<String> {
        let tuning = Tuning::parse(line).unwrap();
        let shown = |step: Step<'_>| match step {
            Step::Search(search) => format!(
                "{}: {:?} + {:?} from {} top {}{}",
                search.number,
                search.namespaces,
                search.more_namespaces,
                search.min_score,
                search.top_k,
                if search.expand { " with synonyms" } else { "" }
            ),
            Step::Suggest(text) => format!("suggest {text:?}"),
        };
        RetryPlan::new(&tuning).map(shown).collect()
    }

    #[test]
    fn the_default_plan_widens_then_expands_then_suggests() {
        assert_eq!(
            steps("namespaces=effect_1,faq suggestion=Try fewer words."),
            [
                r#"1: ["effect_1", "faq"] + [] from 0.4 top 10"#,
                r#"2: ["effect_1", "faq"] + ["combined"] from 0.3 top 20"#,
                r#"3: ["effect_1", "faq"] + ["combined"] from 0.3 top 20 with synonyms"#,
                r#"suggest "Try fewer words.""#,
            ]
        );
    }

    #[test]
    fn no_step_searches_less_than_the_one_before() {
        assert_eq!(
            steps("top_k=50 min_score=0.05 namespaces=combined"),
            [
                r#"1: ["combined"] + [] from 0.05 top 50"#,
                r#"2: ["combined"] + [] from 0 top 50"#,
                r#"3: ["combined"] + [] from 0 top 50 with synonyms"#,
                r#"suggest """#,
            ]
        );
    }

    #[test]
    fn a_plan_of_its_own_replaces_the_default() {
        assert_eq!(
            steps("retry=none"),
            [r"1: [] + [] from 0.4 top 10", r#"suggest """#]
        );
        assert_eq!(steps("retry=synonyms,+a retry=+b").len(), 4);
    }
}
