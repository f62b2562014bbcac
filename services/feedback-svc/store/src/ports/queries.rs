//! The port of queries. Each method is one transaction.

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Debug,
    time::Duration,
};

use async_trait::async_trait;
use emend_core::{Namespace, QueryId};
use emend_store::StoreError;

use crate::{
    ports::SettledRating,
    records::{
        mining::{ClickedQuery, NewMined, SessionQuery},
        queries::{Interaction, KeptCounts, New, Pruned, Query, QueryFilter, StoredQuery},
        stats::{Compared, KeptSearch, Shares, StatsFilter, WorstQuery},
    },
};

/// Keeps queries, interactions, and what is counted of them.
#[async_trait]
pub trait QueryStore: Send + Sync + Debug + 'static {
    /// Stores a group as a whole or nothing of it. What is stored already under its id is passed over.
    async fn record(&self, group: &Group) -> Result<Written, StoreError>;

    /// Queries of a namespace, newest first.
    async fn queries(&self, filter: &QueryFilter) -> Result<Vec<StoredQuery>, StoreError>;

    /// One query, if it is kept.
    async fn find_query(
        &self,
        namespace: &Namespace,
        id: &QueryId,
    ) -> Result<Option<StoredQuery>, StoreError>;

    /// The namespaces of which queries are kept.
    async fn namespaces(&self) -> Result<Vec<Namespace>, StoreError>;

    /// Calls `each` with the newest queries of sessions in which a query found nothing, at most `limit`; session by session, in
    /// order of time. They are read one by one.
    async fn failed_sessions(
        &self,
        namespace: &Namespace,
        limit: u32,
        each: &mut (dyn FnMut(SessionQuery) + Send),
    ) -> Result<(), StoreError>;

    /// Calls `each` with what was searched for in sessions, found something or may have, and of which a result was clicked; of the
    /// newest `limit` queries, in any order. They are read one by one.
    async fn clicked_queries(
        &self,
        namespace: &Namespace,
        limit: u32,
        each: &mut (dyn FnMut(ClickedQuery) + Send),
    ) -> Result<(), StoreError>;

    /// Stores events of rewordings that were not proposed before, due at once; returns how many there were.
    async fn propose(&self, mined: &[NewMined]) -> Result<u64, StoreError>;

    /// Stores events of queries of a namespace that found nothing, due at once; returns how many there were. Left out are those
    /// that were told less than `again` ago and those whose event is still in the outbox; of the others the first `most` are told.
    async fn tell(
        &self,
        namespace: &Namespace,
        unanswered: &[NewMined],
        again: Duration,
        most: usize,
    ) -> Result<u64, StoreError>;

    /// Ratings and queries by every dimension, of each the [`MAX_NAMES`](super::stats::MAX_NAMES) names that come first and those
    /// that are compared; all of one moment.
    async fn shares(&self, filter: &StatsFilter, compared: Option<&Compared>) -> Result<Shares, StoreError>;

    /// The queries that most people rated −1, of the ratings that count and that nobody has dealt with, those first; at most
    /// `limit`, with how many there are in all.
    async fn worst_queries(
        &self,
        filter: &StatsFilter,
        limit: u32,
    ) -> Result<(Vec<WorstQuery>, u64), StoreError>;

    /// Calls `each` with searches whose queries are kept and not erased, newest first: the newest
    /// [`MAX_SEARCHES`](crate::records::stats::MAX_SEARCHES) that were searched in the period. They are read one by one.
    async fn kept_searches(
        &self,
        filter: &StatsFilter,
        each: &mut (dyn FnMut(KeptSearch) + Send),
    ) -> Result<(), StoreError>;

    /// What was searched for where the results were rated −1, newest first, each with its rating's order and its query's id: at
    /// most `limit`, of those before that order. Empty where it is erased.
    async fn negative_texts(
        &self,
        filter: &StatsFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(i64, String, String)>, StoreError>;

    /// In how many queries of a namespace each of these words was.
    async fn term_counts(&self, namespace: &Namespace, terms: &[&str]) -> Result<CountedTerms, StoreError>;

    /// Keeps no more than that of what is counted of each namespace.
    async fn prune_counts(&self, kept: KeptCounts) -> Result<Pruned, StoreError>;

    /// Forgets what was erased longer ago than that, at most `limit` queries and sessions; returns how many.
    async fn forget_erased(&self, known: Duration, limit: u32) -> Result<u64, StoreError>;

    /// Forgets queries and interactions that are older or more than the settings of their namespaces allow, at most `limit`
    /// of each in each namespace; returns how many.
    async fn forget(&self, limit: u32) -> Result<u64, StoreError>;
}

/// What is counted of words.
#[derive(Debug, Clone, Default)]
pub struct CountedTerms {
    /// In how many queries each word was; those that were in none are not there.
    pub by_term: HashMap<String, u64>,
    /// All queries.
    pub queries: u64,
    /// How many words were pruned.
    pub pruned: u64,
    /// By how much the count of a word may be too low for that.
    pub undercount: u64,
}

/// What is stored in one transaction.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Queries, each with the words that it is counted under.
    pub queries: Vec<(New<Query>, BTreeSet<String>)>,
    /// What was done with results.
    pub interactions: Vec<New<Interaction>>,
}

/// How many of a group were new, and what follows from them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// Queries.
    pub queries: u64,
    /// Interactions.
    pub interactions: u64,
    /// Ratings that waited for the queries.
    pub rated: Vec<SettledRating>,
}
