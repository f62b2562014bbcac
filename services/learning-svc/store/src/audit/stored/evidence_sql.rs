//! The reads of an audit of the evidence graph.

use async_trait::async_trait;
use emend_core::{Kind, Namespace, key_hash};
use emend_store::StoreError;
use emend_store::sql::{Row, Statement};
use futures::stream::BoxStream;

use crate::audit::stored::evidence::{
    AuditEvidence, AuditedClaim, AuditedDomain, AuditedEdge, AuditedHost, AuditedWork, FoundClaim,
    RuleInForce, RulingInForce, Stray, SupportedClaim, Supporting,
};
use crate::audit::stored::sql::Reading;
use crate::{
    batches::batches,
    evidence::{
        known_rows::WorkPageRow,
        rows::{NamespacePolicyRow, reversed},
    },
};

type Result<T> = std::result::Result<T, StoreError>;

const CLAIMS: &str = "SELECT c.claim, c.claim_id, s.namespace, c.host, COALESCE(p.host, 0) AS page_host, c.patterns, \
     c.ruled, c.status, c.stale FROM evidence_claims AS c LEFT JOIN evidence_spaces AS s ON s.space = c.space \
     LEFT JOIN evidence_pages AS p ON p.page = c.page WHERE c.claim > ";

/// Edges with what their ends give.
const EDGES: &str = "SELECT e.edge, e.edge_id, s.namespace, \
     CASE WHEN (CASE e.source_sort WHEN 1 THEN sp.space WHEN 2 THEN sf.space WHEN 3 THEN sc.space END) = e.space \
     AND (CASE e.target_sort WHEN 1 THEN tp.space WHEN 3 THEN tc.space END) = e.space THEN 1 ELSE 0 END AS has_ends, \
     CASE WHEN e.task = 0 OR t.space = e.space THEN 1 ELSE 0 END AS has_task, e.page, e.host, \
     COALESCE(op.page, 0) AS source_page, COALESCE(op.host, 0) AS source_host, e.given, e.label, e.confidence, \
     e.ruled, e.ruled_at, e.ruled_by, e.model_weight, e.relation, e.weight \
     FROM evidence_edges AS e LEFT JOIN evidence_spaces AS s ON s.space = e.space \
     LEFT JOIN evidence_tasks AS t ON t.task = e.task \
     LEFT JOIN evidence_pages AS sp ON e.source_sort = 1 AND sp.page = e.source \
     LEFT JOIN evidence_fragments AS sf ON e.source_sort = 2 AND sf.fragment = e.source \
     LEFT JOIN evidence_claims AS sc ON e.source_sort = 3 AND sc.claim = e.source \
     LEFT JOIN evidence_pages AS tp ON e.target_sort = 1 AND tp.page = e.target \
     LEFT JOIN evidence_claims AS tc ON e.target_sort = 3 AND tc.claim = e.target \
     LEFT JOIN evidence_pages AS op \
     ON op.page = CASE e.source_sort WHEN 1 THEN sp.page WHEN 2 THEN sf.page WHEN 3 THEN sc.page END \
     WHERE e.edge > ";

const RULINGS: &str = "SELECT c.namespace, c.key, r.value, k.ruling_order, b.feedback_id FROM contests AS c \
     LEFT JOIN resources AS r ON r.contest = c.contest \
     LEFT JOIN candidates AS k ON k.contest = c.contest AND k.status = 3 \
     LEFT JOIN ballots AS b ON b.contest = k.contest AND b.candidate_id = k.candidate_id WHERE c.kind = ";

const SUPPORTING: &str = "SELECT e.target AS claim, p.page_id, p.work, h.reversed, h.set_level \
     FROM evidence_edges AS e JOIN evidence_pages AS p ON p.page = e.page LEFT JOIN evidence_hosts AS h ON h.host = p.host \
     WHERE e.target_sort = 3 AND e.relation = 1 AND e.target > $1 AND e.target <= $2 ORDER BY e.target";

const SUPPORTED: &str = "SELECT found.domain, c.claim_id, c.ruled, c.patterns, \
     CASE WHEN c.status = 2 THEN 1 ELSE 0 END AS is_verified, c.stale FROM \
     (SELECT DISTINCT h.domain, e.target FROM evidence_hosts AS h JOIN evidence_edges AS e ON e.host = h.host \
     WHERE e.relation = 1 AND e.target_sort = 3 AND h.domain > $1 AND h.domain <= $2) AS found \
     JOIN evidence_claims AS c ON c.claim = found.target ORDER BY found.domain";

const FOUND: &str = "SELECT h.domain, c.claim_id, c.ruled, c.patterns, c.stale FROM evidence_hosts AS h \
     JOIN evidence_claims AS c ON c.host = h.host \
     WHERE c.patterns <> '[]' AND h.domain > $1 AND h.domain <= $2 ORDER BY h.domain";

const PAGES_OF_WORKS: &str = "SELECT page, work, doi, pmid, arxiv_id FROM evidence_pages \
     WHERE work <> 0 AND work > $1 AND work <= $2 ORDER BY work";

const IDS_OF_WORKS: &str =
    "SELECT work, identity FROM evidence_identities WHERE work > $1 AND work <= $2 ORDER BY work";

const WORKS_OF_NOTHING: &str = "
    SELECT 'page' AS what, p.page AS id, CASE WHEN p.work = 0 THEN 'it has an id, but no work'
        WHEN w.work IS NULL THEN 'its work does not exist' ELSE 'it has a work, but no id' END AS wrong
    FROM evidence_pages AS p LEFT JOIN evidence_works AS w ON w.work = p.work AND w.space = p.space
    WHERE CASE WHEN p.doi = '' AND p.pmid = '' AND p.arxiv_id = '' THEN p.work <> 0 ELSE w.work IS NULL END
    UNION ALL SELECT 'work', i.work, 'an id names it, but it does not exist' FROM evidence_identities AS i
    LEFT JOIN evidence_works AS w ON w.work = i.work AND w.space = i.space WHERE w.work IS NULL
    LIMIT 1000";

const STRAYS: &str = "
    SELECT 'claim' AS what, c.claim AS id, 'its task does not exist' AS wrong FROM evidence_claims AS c
    LEFT JOIN evidence_tasks AS t ON t.task = c.task AND t.space = c.space WHERE c.task <> 0 AND t.task IS NULL
    UNION ALL SELECT 'claim', c.claim, 'its page does not exist' FROM evidence_claims AS c
    LEFT JOIN evidence_pages AS p ON p.page = c.page AND p.space = c.space WHERE c.page <> 0 AND p.page IS NULL
    UNION ALL SELECT 'fragment', f.fragment, 'its page does not exist' FROM evidence_fragments AS f
    LEFT JOIN evidence_pages AS p ON p.page = f.page AND p.space = f.space WHERE p.page IS NULL
    UNION ALL SELECT 'page', p.page, 'its host does not exist' FROM evidence_pages AS p
    LEFT JOIN evidence_hosts AS h ON h.host = p.host AND h.space = p.space WHERE p.host <> 0 AND h.host IS NULL
    UNION ALL SELECT 'host', h.host, 'its registrable domain does not exist' FROM evidence_hosts AS h
    LEFT JOIN evidence_domains AS d ON d.domain = h.domain AND d.space = h.space WHERE d.domain IS NULL
    UNION ALL SELECT 'task', t.task, 'its namespace does not exist' FROM evidence_tasks AS t
    LEFT JOIN evidence_spaces AS s ON s.space = t.space WHERE s.space IS NULL
    LIMIT 1000";

/// Contests of claims and edges say whether there is one; all others need none.
const WRONG_TARGETS: &str = "
    SELECT 'contest' AS what, found.contest AS id, CASE
        WHEN found.target_known = 0 THEN 'it waits for a target that it does not need, or that is known'
        WHEN found.is_known = 0 THEN 'it says that its target is known, but there is none'
        ELSE 'it is mistaken about whether its target is a citation' END AS wrong
    FROM (SELECT c.contest, c.target_known, CASE
        WHEN c.kind = $1 THEN CASE WHEN EXISTS (SELECT 1 FROM evidence_spaces AS s
            JOIN evidence_claims AS t ON t.space = s.space WHERE s.namespace = c.namespace AND t.claim_id = c.key)
            THEN 1 ELSE 0 END
        WHEN c.kind = $2 THEN COALESCE((SELECT CASE t.given WHEN 4 THEN 2 ELSE 1 END FROM evidence_spaces AS s
            JOIN evidence_edges AS t ON t.space = s.space
            WHERE s.namespace = c.namespace AND t.edge_id = c.key), 0)
        ELSE 1 END AS is_known FROM contests AS c) AS found
    WHERE found.target_known <> found.is_known LIMIT 1000";

const STRAY_EVENTS: &str = "
    SELECT 'event' AS what, e.event AS id, CASE
        WHEN e.element_sort <> 0 AND e.contest <> 0 THEN 'it tells of an element, and names a contest'
        WHEN e.element_sort = 0 AND c.contest IS NULL THEN 'its contest does not exist'
        WHEN c.namespace <> e.namespace THEN 'its contest is of another namespace'
        ELSE 'its revision is not in the log' END AS wrong
    FROM evidence_events AS e LEFT JOIN contests AS c ON c.contest = e.contest
    LEFT JOIN revisions AS r ON r.revision = e.revision
    WHERE (e.element_sort = 0 AND c.contest IS NULL) OR (e.element_sort <> 0 AND e.contest <> 0)
    OR c.namespace <> e.namespace OR (e.revision <> 0 AND r.revision IS NULL) LIMIT 1000";

const RULES_OF_NOTHING: &str = "
    SELECT CASE WHEN c.kind = $1 THEN 'verified rule of contest' ELSE 'ruling of contest' END AS what, c.contest AS id,
        'what it is about is not in the graph' AS wrong
    FROM contests AS c JOIN resources AS r ON r.contest = c.contest
    LEFT JOIN evidence_spaces AS s ON s.namespace = c.namespace
    WHERE (c.kind = $1 AND c.qualifier = 'verified' AND NOT EXISTS (
        SELECT 1 FROM evidence_domains AS t WHERE t.space = s.space AND t.name = c.key))
    OR (c.kind = $2 AND NOT EXISTS (
        SELECT 1 FROM evidence_claims AS t WHERE t.space = s.space AND t.claim_id = c.key))
    OR (c.kind = $3 AND NOT EXISTS (
        SELECT 1 FROM evidence_edges AS t WHERE t.space = s.space AND t.edge_id = c.key AND t.given <> 4)) LIMIT 1000";

impl Reading {
    /// A page of a table: `sql` ends where the last key of the page before belongs.
    async fn page<R>(
        &mut self,
        sql: &'static str,
        key: &'static str,
        after: i64,
        limit: u32,
    ) -> Result<Vec<R>>
    where
        R: Row,
    {
        let mut query = Statement::new(sql);
        query.push_bind(after);
        query.push(" ORDER BY ").push(key).push(" LIMIT ");
        query.push_bind(i64::from(limit));
        self.all(query).await
    }

    fn between<'a, R>(&'a mut self, sql: &'static str, after: i64, through: i64) -> BoxStream<'a, Result<R>>
    where
        R: Row + 'a,
    {
        let query = Statement::new(sql).bind(after).bind(through);
        self.transaction.stream(query)
    }

    async fn of_kinds(&mut self, sql: &'static str, kinds: &[Kind]) -> Result<Vec<Stray>> {
        let mut query = Statement::new(sql);
        for kind in kinds {
            query = query.bind(kind.number());
        }
        self.transaction.rows(query).await
    }
}

#[async_trait]
impl AuditEvidence for Reading {
    async fn edge_count(&mut self) -> Result<u64> {
        self.count("evidence_edges").await
    }

    async fn claims_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedClaim>> {
        self.page(CLAIMS, "c.claim", after, limit).await
    }

    async fn edges_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedEdge>> {
        self.page(EDGES, "e.edge", after, limit).await
    }

    async fn rulings_of(&mut self, kind: Kind, targets: &[&str]) -> Result<Vec<RulingInForce>> {
        let hashes: Vec<i64> = targets.iter().map(|target| key_hash(target)).collect();
        let mut found = Vec::new();
        for hashes in batches(&hashes) {
            let mut query = Statement::new(RULINGS);
            query.push_bind(kind.number()).push(" AND c.key_hash IN ");
            query.push_list(hashes.iter().copied());
            found.extend(self.all::<RulingInForce>(query).await?);
        }
        Ok(found)
    }

    fn supporting(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<Supporting>> {
        self.between(SUPPORTING, after, through)
    }

    async fn works_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedWork>> {
        let works = "SELECT work, pages FROM evidence_works WHERE work > ";
        self.page(works, "work", after, limit).await
    }

    fn pages_of_works(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<WorkPageRow>> {
        self.between(PAGES_OF_WORKS, after, through)
    }

    fn ids_of_works(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<(i64, String)>> {
        self.between(IDS_OF_WORKS, after, through)
    }

    async fn works_of_nothing(&mut self) -> Result<Vec<Stray>> {
        self.of_kinds(WORKS_OF_NOTHING, &[]).await
    }

    async fn stale_names(&mut self) -> Result<Vec<(String, String)>> {
        let query = Statement::new(
            "SELECT DISTINCT s.namespace, n.reversed FROM evidence_stale_names AS n \
             JOIN evidence_spaces AS s ON s.space = n.space",
        );
        let names: Vec<(String, String)> = self.all(query).await?;
        let names = names.into_iter();
        Ok(names.map(|(space, name)| (space, reversed(&name))).collect())
    }

    async fn hosts_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedHost>> {
        let hosts = "SELECT h.host, s.namespace, h.reversed, h.level, h.set_level, h.layer FROM evidence_hosts AS h \
             LEFT JOIN evidence_spaces AS s ON s.space = h.space WHERE h.host > ";
        self.page(hosts, "h.host", after, limit).await
    }

    async fn domains_after(&mut self, after: i64, limit: u32) -> Result<Vec<AuditedDomain>> {
        let domains = "SELECT d.domain, s.namespace, d.name, \
             CASE WHEN d.stale <> 0 OR d.name > s.verify_after THEN 1 ELSE 0 END AS stale FROM evidence_domains AS d \
             LEFT JOIN evidence_spaces AS s ON s.space = d.space WHERE d.domain > ";
        self.page(domains, "d.domain", after, limit).await
    }

    async fn namespace_policies(&mut self) -> Result<Vec<NamespacePolicyRow>> {
        let query = Statement::new(
            "SELECT p.namespace, p.version, p.combining, p.min_claims, p.rejected_permille, p.updated_at \
             FROM namespace_policies AS p WHERE p.version = \
             (SELECT MAX(n.version) FROM namespace_policies AS n WHERE n.namespace = p.namespace)",
        );
        self.all(query).await
    }

    fn supported_claims(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<SupportedClaim>> {
        self.between(SUPPORTED, after, through)
    }

    fn found_claims(&mut self, after: i64, through: i64) -> BoxStream<'_, Result<FoundClaim>> {
        self.between(FOUND, after, through)
    }

    async fn rules_of(&mut self, namespace: &Namespace, patterns: &[String]) -> Result<Vec<RuleInForce>> {
        let hashes: Vec<i64> = patterns.iter().map(|pattern| key_hash(pattern)).collect();
        let mut found = Vec::new();
        for hashes in batches(&hashes) {
            let mut query = Statement::new(
                "SELECT c.key, c.qualifier, r.value FROM contests AS c JOIN resources AS r ON r.contest = c.contest \
                 WHERE c.namespace = ",
            );
            query.push_bind(namespace.as_str().to_owned());
            query.push(" AND c.kind = ").push_bind(Kind::DomainRule.number());
            query.push(" AND c.key_hash IN ");
            query.push_list(hashes.iter().copied());
            found.extend(self.all::<RuleInForce>(query).await?);
        }
        Ok(found)
    }

    async fn strays(&mut self) -> Result<Vec<Stray>> {
        self.of_kinds(STRAYS, &[]).await
    }

    async fn wrong_targets(&mut self) -> Result<Vec<Stray>> {
        self.of_kinds(WRONG_TARGETS, &[Kind::ClaimState, Kind::EdgeLabel])
            .await
    }

    async fn stray_events(&mut self) -> Result<Vec<Stray>> {
        self.of_kinds(STRAY_EVENTS, &[]).await
    }

    async fn rules_of_nothing(&mut self) -> Result<Vec<Stray>> {
        let kinds = [Kind::DomainRule, Kind::ClaimState, Kind::EdgeLabel];
        self.of_kinds(RULES_OF_NOTHING, &kinds).await
    }
}
