//! What a node makes of a query: terms found in running text and what else to search for, what to try when nothing is
//! found, and how good a list of results is; what counts as a click on one, and how somebody rates it.

mod click;
mod cut;
mod expand;
mod fold;
mod function_words;
mod matcher;
mod measures;
mod negative_terms;
mod rating;
mod retry;
mod rewrites;
mod significance;
mod spellings;
mod terms;
mod tuning;

pub use self::{
    click::is_click,
    expand::{Alternatives, ExpandMode, ExpandedText, OrGroup, Term, expand},
    fold::FoldedText,
    function_words::is_function_word,
    matcher::{Found, FoundTerm, Matcher, find},
    measures::{Judged, mean, ndcg, precision, recall, reciprocal_rank},
    negative_terms::{NegativeTerm, TermCounts, negative_terms},
    rating::{Rater, SearchRating},
    retry::{Attempt, RetryPlan, Step},
    rewrites::{REWRITE_WITHIN, Rewrite, Searched, rewrites},
    significance::{Interval, paired_randomisation, two_proportions, wilson},
    spellings::{Respelled, Successes},
    terms::{MAX_TERM_CHARS, MAX_TERMS, terms, written_terms},
    tuning::{
        COMBINED, DEFAULT_MIN_SCORE, DEFAULT_TOP_K, Decimal, MAX_TOP_K, RetryStep, RetryStepFields, Tuning,
        TuningFields,
    },
};
