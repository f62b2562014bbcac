//! The results of a replay, as a table and as JSON.

mod json;

use super::{Audit, Settings, dataset::Dataset};

/// The figures of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Day {
    /// From 1.
    pub number: u32,
    /// Queries asked.
    pub queries: u64,
    /// How many of them the node answered right.
    pub hits: u64,
    /// How many of them would have been answered right without learning.
    pub base_hits: u64,
    /// How many of them were answered from what was learned.
    pub learned: u64,
    /// How many of the learned answers were right.
    pub learned_hits: u64,
    /// Corrections submitted.
    pub corrections: u64,
    /// Confirmations of answers that were right, or that the reporter took for right.
    pub confirmations: u64,
    /// Values promoted by votes.
    pub promotions: u64,
    /// How many of them are not the true label.
    pub wrong_promotions: u64,
    /// The share of all traffic that the node answers from what is learned at the end of the day, computed from Zipf's
    /// law and not from the draws.
    pub covered: f64,
    /// Phrases learned by the end of the day.
    pub phrases: u64,
    /// Queries that were not learned and had a near answer at the least confidence.
    pub near: u64,
    /// How many of the near answers were right.
    pub near_hits: u64,
    /// How many queries are answered right with near answers before those of the base matcher.
    pub hits_with_near: u64,
    /// The test set at the end of the day.
    pub test: TestSet,
}

impl Day {
    /// Queries that were answered wrong and so still need a correction.
    pub fn corrections_needed(&self) -> u64 {
        self.queries - self.hits
    }

    /// A row of the table under [`Report::heading`].
    pub fn row(&self) -> String {
        format!(
            "{:>3} {:>7} {:>7} {:>8} {:>8} {:>12} {:>11} {:>10} {:>7} {:>8} {:>8}",
            self.number,
            self.queries,
            percent(self.hits, self.queries),
            percent(self.base_hits, self.queries),
            percent(self.learned, self.queries),
            self.corrections_needed(),
            self.corrections,
            self.promotions,
            self.wrong_promotions,
            self.phrases,
            percent_of(self.covered),
        )
    }
}

/// Who reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct People {
    /// How many say what is right.
    pub honest: usize,
    /// How many err.
    pub erring: usize,
    /// How many collude.
    pub colluding: usize,
    /// The label that the colluders push.
    pub target: String,
}

/// How the node does on utterances that nobody asked while it learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TestSet {
    /// Utterances of test.csv.
    pub queries: u64,
    /// How many of them the node answers right.
    pub hits: u64,
    /// How many of them the base matcher answers right.
    pub base_hits: u64,
    /// How many of them the node answers from what was learned.
    pub learned: u64,
    /// How many others have a near answer at the least confidence.
    pub near: u64,
    /// How many of the near answers are right.
    pub near_hits: u64,
    /// How many utterances are answered right if every near answer counts, however unsure.
    pub hits_at_any_confidence: u64,
}

/// All results.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The settings of the simulation.
    pub settings: Settings,
    /// Who reported.
    pub people: People,
    /// Labels in the data set.
    pub labels: usize,
    /// Utterances that users may ask.
    pub utterances: usize,
    /// Rows of the data set that were left out.
    pub left_out: usize,
    /// The days.
    pub days: Vec<Day>,
    /// The results on the test set, at the end.
    pub test: TestSet,
    /// What the services' records show.
    pub audit: Audit,
    /// How long the replay took.
    pub seconds: f64,
}

impl Report {
    /// The text above the days.
    pub fn heading(dataset: &Dataset, settings: &Settings, people: &People) -> String {
        let row = |cells: [&str; 11]| {
            let [
                day,
                queries,
                hits,
                base,
                learned,
                needed,
                submitted,
                promotions,
                wrong,
                phrases,
                covered,
            ] = cells;
            format!(
                "{day:>3} {queries:>7} {hits:>7} {base:>8} {learned:>8} {needed:>12} {submitted:>11} {promotions:>10} \
                 {wrong:>7} {phrases:>8} {covered:>8}"
            )
        };
        [
            format!(
                "{} utterances of {} labels; {} reporters: {} honest, {} erring,",
                dataset.train.len(),
                dataset.labels.len(),
                settings.reporters,
                people.honest,
                people.erring,
            ),
            format!("{} colluding on {:?};", people.colluding, people.target),
            format!(
                "{} net confirmations promote; seed {}; namespace {}",
                settings.threshold, settings.seed, settings.namespace
            ),
            String::new(),
            row([
                "",
                "",
                "hit",
                "without",
                "answered",
                "corrections",
                "corrections",
                "",
                "of them",
                "phrases",
                "traffic",
            ]),
            row([
                "day",
                "queries",
                "rate",
                "learning",
                "learned",
                "still needed",
                "submitted",
                "promotions",
                "wrong",
                "learned",
                "covered",
            ]),
        ]
        .join("\n")
    }

    /// The text below the days.
    pub fn summary(&self) -> String {
        let Audit {
            submitted,
            revisions,
            resources,
            wrong_resources,
            awaiting_review,
            ..
        } = &self.audit;
        let (promotions, wrong) = self.promotions();
        let test = &self.test;
        let submissions = if self.days.iter().any(|day| day.confirmations > 0) {
            "corrections and confirmations"
        } else {
            "corrections"
        };
        let mut lines = vec![
            String::new(),
            format!(
                "promotions   {promotions}, {wrong} of them wrong ({}); of {resources} phrases learned at the end, {wrong_resources} are wrong",
                percent_fine(wrong, promotions),
            ),
            format!(
                "test.csv     {} right with what was learned, {} without: {} of {} had been learned.",
                percent(test.hits, test.queries),
                percent(test.base_hits, test.queries),
                test.learned,
                test.queries,
            ),
        ];
        lines.extend(self.near_table());
        if *awaiting_review > 0 {
            lines.push(match awaiting_review {
                1 => "for review   1 candidate awaits a person's decision".to_owned(),
                count => format!("for review   {count} candidates await a person's decision"),
            });
        }
        if self.audit.problems.is_empty() {
            lines.push(format!(
                "nothing lost {submitted} {submissions} stored, delivered, evaluated and counted once; {revisions} revisions;"
            ));
            lines.push(format!(
                "             the node holds what the database holds. {:.1} s in all.",
                self.seconds
            ));
        }
        lines.join("\n")
    }

    /// What near answers add, day by day.
    fn near_table(&self) -> Vec<String> {
        let used = &self.settings.near;
        let mut lines = vec![
            String::new(),
            format!(
                "Near answers from a confidence of {}, to what was not learned itself; {}.",
                used.min_confidence,
                if used.answered {
                    "people saw them"
                } else {
                    "people did not see them"
                },
            ),
            format!(
                "{:>3} {:>9} {:>9} {:>10}   {:>19} {:>16}",
                "", "answered", "right", "hit rate", "test.csv: answered,", "right at any"
            ),
            format!(
                "{:>3} {:>9} {:>9} {:>10}   {:>19} {:>16}",
                "day", "near", "of them", "with near", "right of them", "confidence"
            ),
        ];
        lines.extend(self.days.iter().map(|day| {
            let test = &day.test;
            format!(
                "{:>3} {:>9} {:>9} {:>10}   {:>9} {:>9} {:>16}",
                day.number,
                percent(day.near, day.queries),
                percent(day.near_hits, day.near),
                percent(day.hits_with_near, day.queries),
                percent(test.near, test.queries),
                percent(test.near_hits, test.near),
                percent(test.hits_at_any_confidence, test.queries),
            )
        }));
        lines.push(String::new());
        lines
    }

    /// The numbers of promotions and of wrong ones among them.
    pub fn promotions(&self) -> (u64, u64) {
        self.days.iter().fold((0, 0), |(all, wrong), day| {
            (all + day.promotions, wrong + day.wrong_promotions)
        })
    }
}

/// A part as a share of the whole; 0 if the whole is 0.
#[expect(clippy::cast_precision_loss, reason = "counts are far smaller than 2^52")]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn percent(part: u64, whole: u64) -> String {
    percent_of(share(part, whole))
}

fn percent_of(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn percent_fine(part: u64, whole: u64) -> String {
    format!("{:.2} %", 100.0 * share(part, whole))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::replay::{near::Use, reporters::Habits};

    pub(in crate::replay) fn report() -> Report {
        let day = |number, hits, learned| Day {
            number,
            queries: 1_000,
            hits,
            base_hits: 310,
            learned,
            learned_hits: learned,
            corrections: 1_000 - hits,
            confirmations: 0,
            promotions: 40,
            wrong_promotions: u64::from(number == 2),
            covered: 0.25,
            phrases: 40 * u64::from(number),
            near: 200,
            near_hits: 190,
            hits_with_near: hits + 100,
            test: TestSet {
                queries: 3_080,
                near: 1_000,
                near_hits: 950,
                hits_at_any_confidence: 2_000,
                ..TestSet::default()
            },
        };
        Report {
            settings: Settings {
                namespace: "replay".into(),
                days: 3,
                queries_per_day: 1_000,
                reporters: 200,
                noise: 0.1,
                colluders: 0.05,
                habits: Habits {
                    attack_right_answers: false,
                    confirmations: 0.0,
                },
                zipf_exponent: 1.0,
                threshold: 3,
                near: Use {
                    min_confidence: 0.8,
                    answered: false,
                },
                seed: 7,
            },
            people: People {
                honest: 170,
                erring: 20,
                colluding: 10,
                target: "a & <b>".into(),
            },
            labels: 77,
            utterances: 9_999,
            left_out: 4,
            days: vec![day(1, 540, 230), day(2, 670, 340), day(3, 720, 400)],
            test: TestSet {
                queries: 3_080,
                hits: 990,
                base_hits: 984,
                learned: 7,
                ..TestSet::default()
            },
            audit: Audit {
                submitted: 1_070,
                stored: 1_070,
                ..Audit::default()
            },
            seconds: 12.0,
        }
    }

    #[test]
    fn rows_align_with_their_headings_within_a_hundred_columns() {
        let report = report();
        let dataset = Dataset::new(vec![("a".into(), "b".into())], vec![]);
        let heading = Report::heading(&dataset, &report.settings, &report.people);
        let last = heading.lines().last().unwrap().chars().count();
        assert_eq!(report.days[0].row().chars().count(), last);
        assert!(
            heading
                .lines()
                .chain(report.summary().lines())
                .all(|line| line.chars().count() <= 100),
            "{heading}"
        );
        assert!(last <= 100);
    }

    #[test]
    fn rates_follow_from_the_counts() {
        let json = report().to_json();
        assert_eq!(json["days"][0]["hitRate"], 0.54);
        assert_eq!(json["days"][1]["correctionsNeeded"], 330);
        assert_eq!(
            (json["promotions"].as_u64(), json["wrongPromotions"].as_u64()),
            (Some(120), Some(1))
        );
        assert!(report().summary().contains("(0.83 %)"));
        let mut report = report();
        report.audit.awaiting_review = 1;
        let summary = report.summary();
        assert!(
            summary.contains("1 candidate awaits a person's decision"),
            "{summary}"
        );
        assert!((share(0, 0)).abs() < f64::EPSILON);
    }
}
