//! Between the messages of each kind and what they mean: corrections, and the values of resources. One exhaustive match each
//! way; a kind or form that is missing in one does not compile.

mod corrections;
mod numbers;
mod values;

pub use self::{
    corrections::{claim_decision, domain_decision, edge_correction, form_of, task_of, tuning_correction},
    numbers::{edge_relation, language, level_number, relation_number, search_rating, search_rating_value},
    values::{learned, value},
};
pub(crate) use self::{
    corrections::{correction, form, new_correction, rating_message},
    values::kind_of,
};
