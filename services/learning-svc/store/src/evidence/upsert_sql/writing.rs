//! Writing the nodes and edges of an upsert.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use emend_core::evidence::{EvidenceId, NodeRef, NodeType, registrable_domain};
use emend_store::{StoreError, sql::Statement};

use super::{NO_WORK, Upserting};
use crate::{
    batches::batches,
    conflict,
    evidence::{
        disagreements::node,
        graph::{ClaimUpsert, EdgeUpsert, Page},
        known_rows::{KnownEdgeRow, KnownNodeRow},
        levels_sql::levels,
        names_sql::{DOMAINS, HOSTS, known_rows, named_rows},
        rows::reversed,
        works_sql::{Identified, relate},
    },
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

impl Upserting<'_> {
    pub(super) async fn save_pages(&mut self, work: &mut Work) -> Result<()> {
        let mut pages: Vec<&Page> = self.upsert.pages.iter().collect();
        pages.sort_unstable_by_key(|page| &page.id);
        let hosts = self.hosts(work, &pages).await?;
        let (mut changed, mut left) = (Vec::new(), BTreeSet::new());
        for pages in batches(&pages) {
            let mut query = Statement::new(
                "INSERT INTO evidence_pages (space, page_id, host, url, title, doi, pmid, arxiv_id, work) ",
            );
            query.push_values(pages, |mut row, page| {
                let ids = page.works_by_type();
                row.push_bind(self.space)
                    .push_bind(page.id.as_str())
                    .push_bind(if page.host.is_empty() {
                        Some(0)
                    } else {
                        hosts.get(&reversed(&page.host)).copied()
                    })
                    .push_bind(page.url.as_str())
                    .push_bind(page.title.as_str());
                for id in ids {
                    row.push_bind(id);
                }
                row.push("0");
            });
            query.push(
                " ON CONFLICT (space, page_id) DO UPDATE SET url = excluded.url, title = excluded.title, \
                 doi = excluded.doi, pmid = excluded.pmid, arxiv_id = excluded.arxiv_id",
            );
            // Not alone, two that add it at once would give it a host that edges of the first do not have.
            query.push(match (self.replaces, self.is_alone) {
                (true, _) => ", host = excluded.host",
                (false, true) => {
                    ", host = CASE WHEN evidence_pages.host = 0 THEN excluded.host ELSE evidence_pages.host END"
                }
                (false, false) => "",
            });
            query.push(
                " RETURNING page_id AS id, page AS node, page, host, '' AS reversed_host, work, doi, pmid, arxiv_id",
            );
            for row in work.rows::<KnownNodeRow>(query).await? {
                let (id, known) = row.parse()?;
                let before = self.nodes.insert(node(NodeType::Page, &id), known.clone());
                self.added += usize::from(before.is_none());
                let ids = before.map_or_else(Vec::new, |before| before.ids);
                if ids == known.ids {
                    continue;
                }
                if ids.iter().any(|id| !known.ids.contains(id)) {
                    left.insert(known.work);
                }
                changed.push(Identified {
                    page: known.key,
                    work: known.work,
                    ids: known.ids,
                });
            }
        }
        relate(work, self.space, changed, &left).await
    }

    /// The keys of the pages' hosts, by their reversed names; new ones get the level that the rules give them now.
    async fn hosts(&self, work: &mut Work, pages: &[&Page]) -> Result<HashMap<String, i64>> {
        let names: BTreeMap<String, &str> = pages
            .iter()
            .filter(|page| !page.host.is_empty())
            .map(|page| (reversed(&page.host), page.host.as_str()))
            .collect();
        let all: BTreeSet<&str> = names.keys().map(String::as_str).collect();
        let mut hosts = known_rows(work, &HOSTS, self.space, &all).await?;
        let new: Vec<(&String, &str)> = names
            .iter()
            .filter(|(reversed, _)| !hosts.contains_key(*reversed))
            .map(|(reversed, host)| (reversed, *host))
            .collect();
        if new.is_empty() {
            return Ok(hosts);
        }
        let domains: BTreeSet<&str> = new.iter().map(|(_, host)| registrable_domain(host)).collect();
        let domains = named_rows(work, &DOMAINS, self.space, &domains).await?;
        let new_hosts: Vec<&str> = new.iter().map(|(_, host)| *host).collect();
        let levels = levels(work, &self.upsert.namespace, &new_hosts).await?;
        for new in batches(&new) {
            let mut query = Statement::new(
                "INSERT INTO evidence_hosts (space, reversed, domain, level, set_level, layer) ",
            );
            query.push_values(new, |mut row, (reversed, host)| {
                let level = levels.get(*host).copied().unwrap_or_default();
                row.push_bind(self.space)
                    .push_bind(reversed.as_str())
                    .push_bind(domains.get(registrable_domain(host)).copied())
                    .push_bind(level.level.number())
                    .push_bind(level.set_level.number())
                    .push_bind(level.layer_number());
            });
            query.push(" ON CONFLICT (space, reversed) DO NOTHING");
            work.run(query).await?;
        }
        hosts.extend(known_rows(work, &HOSTS, self.space, &all).await?);
        Ok(hosts)
    }

    pub(super) async fn save_fragments(&mut self, work: &mut Work) -> Result<()> {
        let mut fragments: Vec<_> = self.upsert.fragments.iter().collect();
        fragments.sort_unstable_by_key(|fragment| &fragment.id);
        for fragments in batches(&fragments) {
            let mut query =
                Statement::new("INSERT INTO evidence_fragments (space, fragment_id, page, text) ");
            query.push_values(fragments, |mut row, fragment| {
                let page = self.nodes.get(&node(NodeType::Page, &fragment.page));
                row.push_bind(self.space)
                    .push_bind(fragment.id.as_str())
                    .push_bind(page.map(|page| page.key))
                    .push_bind(fragment.text.as_str());
            });
            query.push(" ON CONFLICT (space, fragment_id) DO UPDATE SET text = excluded.text");
            query.push(if self.replaces {
                ", page = excluded.page"
            } else {
                ""
            });
            query.push(
                " RETURNING fragment_id AS id, fragment AS node, page, \
                 (SELECT p.host FROM evidence_pages AS p WHERE p.page = evidence_fragments.page) AS host",
            );
            query.push(NO_WORK);
            self.note(NodeType::Fragment, work.rows(query).await?)?;
        }
        Ok(())
    }

    pub(super) async fn save_claims(&mut self, work: &mut Work) -> Result<()> {
        let mut claims: Vec<&ClaimUpsert> = self.upsert.claims.iter().collect();
        claims.sort_unstable_by_key(|claim| &claim.id);
        for claims in batches(&claims) {
            let mut query = Statement::new(
                "INSERT INTO evidence_claims (space, claim_id, task, page, host, text, adoption, patterns, ruled, status, stale, \
                 created_at, updated_at) ",
            );
            query.push_values(claims, |mut row, claim| {
                let page = claim
                    .page
                    .as_ref()
                    .and_then(|page| self.nodes.get(&node(NodeType::Page, page)));
                let patterns = serde_json::to_string(&claim.patterns)
                    .expect("invariant: a list of strings is always a JSON array");
                let adoption = match claim.adopted {
                    None => 0,
                    Some(true) => 1,
                    Some(false) => 2,
                };
                row.push_bind(self.space)
                    .push_bind(claim.id.as_str())
                    .push_bind(self.task(claim.task.as_ref()))
                    .push_bind(page.map_or(0, |page| page.key))
                    .push_bind(page.map_or(0, |page| page.host))
                    .push_bind(claim.text.as_str())
                    .push_bind(adoption)
                    .push_bind(patterns)
                    .push("0")
                    .push_bind(if claim.patterns.is_empty() { 1_i32 } else { 3_i32 })
                    .push("1")
                    .push("(SELECT now FROM database_clock)")
                    .push("(SELECT now FROM database_clock)");
            });
            query.push(
                " ON CONFLICT (space, claim_id) DO UPDATE SET \
                 task = CASE WHEN excluded.task = 0 THEN evidence_claims.task ELSE excluded.task END, \
                 page = CASE WHEN excluded.page = 0 THEN evidence_claims.page ELSE excluded.page END, \
                 host = CASE WHEN excluded.page = 0 THEN evidence_claims.host ELSE excluded.host END, \
                 text = excluded.text, \
                 adoption = CASE WHEN excluded.adoption = 0 THEN evidence_claims.adoption ELSE excluded.adoption END, \
                 patterns = excluded.patterns, stale = 1, updated_at = excluded.updated_at, \
                 status = CASE WHEN evidence_claims.ruled = 1 OR (evidence_claims.ruled = 0 AND excluded.status = 3) \
                 THEN 3 WHEN evidence_claims.status = 3 THEN 1 ELSE evidence_claims.status END \
                 RETURNING claim_id AS id, claim AS node, page, host",
            );
            query.push(NO_WORK);
            self.note(NodeType::Claim, work.rows(query).await?)?;
        }
        Ok(())
    }

    pub(super) async fn save_edges(
        &mut self,
        work: &mut Work,
        known: &HashMap<EvidenceId, KnownEdgeRow>,
    ) -> Result<()> {
        let mut edges: Vec<&EdgeUpsert> = self.upsert.edges.iter().collect();
        edges.sort_unstable_by_key(|edge| &edge.id);
        let former = known
            .values()
            .filter(|edge| edge.target_sort == NodeType::Claim.number());
        let targets: BTreeSet<i64> = edges
            .iter()
            .filter(|edge| edge.target.sort == NodeType::Claim)
            .filter_map(|edge| Some(self.nodes.get(&edge.target)?.key))
            .chain(former.map(|edge| edge.target))
            .collect();
        let targets: Vec<i64> = targets.into_iter().collect();
        for targets in batches(&targets) {
            // Also those that are stale: who verifies one has it locked, and would not see these edges.
            let mut query = Statement::new("UPDATE evidence_claims SET stale = 1 WHERE claim IN ");
            query.push_list(targets.iter().copied());
            work.run(query).await?;
        }
        for edges in batches(&edges) {
            let mut query = Statement::new(
                "INSERT INTO evidence_edges (space, edge_id, task, source_sort, source, target_sort, target, page, host, \
                 given, label, confidence, ruled, ruled_at, ruled_by, model_weight, relation, weight) ",
            );
            query.push_values(edges, |mut row, edge| {
                let source = self.nodes.get(&edge.source);
                let target = self.nodes.get(&edge.target);
                let weight = edge.confidence.map_or(0, |(_, weight)| weight.millionths());
                let weight = i32::try_from(weight).unwrap_or(i32::MAX);
                row.push_bind(self.space)
                    .push_bind(edge.id.as_str())
                    .push_bind(self.task(edge.task.as_ref()))
                    .push_bind(edge.source.sort.number())
                    .push_bind(source.map(|node| node.key))
                    .push_bind(edge.target.sort.number())
                    .push_bind(target.map(|node| node.key))
                    .push_bind(source.map(|node| node.page))
                    .push_bind(source.map(|node| node.host))
                    .push_bind(edge.relation.number())
                    .push_bind(edge.label.map_or(0, emend_core::EdgeRelation::number))
                    .push_bind(edge.confidence.map(|(confidence, _)| confidence))
                    .push("0, 0, NULL")
                    .push_bind(weight)
                    .push_bind(edge.relation.number())
                    .push_bind(weight);
            });
            query.push(" ON CONFLICT (space, edge_id) DO UPDATE SET ");
            if self.replaces {
                query.push(
                    "source_sort = excluded.source_sort, source = excluded.source, target_sort = excluded.target_sort, \
                     target = excluded.target, page = excluded.page, host = excluded.host, ",
                );
            }
            query.push(
                "task = CASE WHEN excluded.task = 0 THEN evidence_edges.task ELSE excluded.task END, \
                 given = excluded.given, label = excluded.label, confidence = excluded.confidence, \
                 model_weight = excluded.model_weight, \
                 relation = CASE WHEN evidence_edges.ruled <> 0 THEN evidence_edges.ruled ELSE excluded.given END, \
                 weight = CASE WHEN evidence_edges.ruled <> 0 AND evidence_edges.ruled <> \
                 (CASE WHEN excluded.label = 0 THEN excluded.given ELSE excluded.label END) THEN 1000000 \
                 ELSE excluded.model_weight END \
                 RETURNING edge, edge_id, source_sort, source, target_sort, target, host",
            );
            let stored: Vec<KnownEdgeRow> = work.rows(query).await?;
            let stored: HashMap<EvidenceId, KnownEdgeRow> = stored
                .into_iter()
                .map(|row| Ok((row.id()?, row)))
                .collect::<Result<_>>()?;
            for edge in edges {
                if known.contains_key(&edge.id) {
                    continue;
                }
                self.added += 1;
                let ends = [&edge.source, &edge.target]
                    .map(|end| Some((end.sort.number(), self.nodes.get(end)?.key)));
                let written = stored
                    .get(&edge.id)
                    .map(|row| [(row.source_sort, row.source), (row.target_sort, row.target)]);
                if written.is_none_or(|written| ends != written.map(Some)) {
                    return Err(conflict("another upsert added the edge with other ends"));
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, sort: NodeType, rows: Vec<KnownNodeRow>) -> Result<()> {
        for row in rows {
            let (id, known) = row.parse()?;
            if self.nodes.insert(NodeRef { sort, id }, known).is_none() {
                self.added += 1;
            }
        }
        Ok(())
    }

    fn task(&self, task: Option<&EvidenceId>) -> i64 {
        task.and_then(|task| self.tasks.get(task.as_str()))
            .copied()
            .unwrap_or(0)
    }
}
