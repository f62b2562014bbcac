//! Upserting nodes and edges in SQL.
//!
//! Rows are written in the order of their ids, claims before edges, so that two upserts seldom wait for each other in turn; where they
//! do, the database says so and the use case is retried. Upserts hold the namespace shared. One that changes what edges of others
//! depend on, which pages are one work, holds it alone: it waits for upserts under way, whose edges it could not see.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use emend_core::{
    Namespace, Violations,
    evidence::{EvidenceId, NodeRef, NodeType, registrable_domain},
};
use emend_store::StoreError;
use emend_store::sql::Statement;

use crate::{
    batches::batches,
    conflict,
    database::plan_anew,
    evidence::{
        EvidenceAction,
        element_rows::Says,
        elements_sql::{save_element_events, says},
        graph::{By, ClaimUpsert, EdgeUpsert, ElementSort, Page, Upsert, Upserted},
        known_rows::{KnownEdgeRow, KnownNode, KnownNodeRow, identities},
        levels_sql::levels,
        replace_sql::{follow, mark_domains_of_hosts},
        rows::reversed,
        works_sql::{Identified, relate},
    },
    work::Work,
};

type Result<T> = std::result::Result<T, StoreError>;

/// An upsert under way: what is known of the nodes that it names.
struct Upserting<'u> {
    upsert: &'u Upsert,
    /// Whether what is otherwise as before may be another.
    replaces: bool,
    /// Whether the namespace is locked alone: what edges of others depend on may change.
    is_alone: bool,
    space: i64,
    violations: Violations,
    added: usize,
    nodes: HashMap<NodeRef, KnownNode>,
    tasks: HashMap<String, i64>,
}

/// See [`EvidenceRepository::upsert`](crate::evidence::EvidenceRepository::upsert).
pub(crate) async fn upsert(
    work: &mut Work,
    upsert: &Upsert,
    replaced: Option<&By>,
) -> Result<std::result::Result<Upserted, Violations>> {
    // Most of a graph may come before its tables are analysed.
    plan_anew(work.transaction().await?).await?;
    let space = space(work, &upsert.namespace).await?;
    let mut is_alone = replaced.is_some() || names_new_ids(work, space, &upsert.pages).await?;
    lock(work, space, is_alone).await?;
    let (mut upserting, known_edges) = loop {
        let mut upserting = Upserting {
            upsert,
            replaces: replaced.is_some(),
            is_alone,
            space,
            violations: Violations::new(),
            added: 0,
            nodes: HashMap::new(),
            tasks: HashMap::new(),
        };
        upserting.read(work).await?;
        let known_edges = upserting.known_edges(work).await?;
        upserting.check(&known_edges);
        if !upserting.violations.is_empty() {
            return Ok(Err(upserting.violations));
        }
        if is_alone || !upserting.changes_others() {
            break (upserting, known_edges);
        }
        // What was read may change until it is locked alone.
        lock(work, space, true).await?;
        is_alone = true;
    };
    let before = upserting.nodes.clone();
    let said = upserting.says(work, replaced, &before, &known_edges).await?;
    upserting.save_pages(work).await?;
    upserting.save_fragments(work).await?;
    upserting.save_claims(work).await?;
    if is_alone {
        // Also what is named and not upserted may be of a page that has another host.
        upserting.read(work).await?;
    }
    let mut left = follow(work, &before, &upserting.nodes).await?;
    upserting.save_edges(work, &known_edges).await?;
    if let Some(by) = replaced {
        left.extend(
            known_edges
                .values()
                .map(|edge| edge.host)
                .filter(|host| *host != 0),
        );
        let says = upserting.says(work, replaced, &before, &known_edges).await?;
        for ((sort, before), (_, after)) in said.iter().zip(&says) {
            save_element_events(
                work,
                &upsert.namespace,
                EvidenceAction::Replaced,
                *sort,
                (before, after),
                by,
            )
            .await?;
        }
    }
    mark_domains_of_hosts(work, &left).await?;
    Ok(Ok(Upserted {
        added: upserting.added,
    }))
}

/// The key of a namespace's graph, which begins if there is none.
async fn space(work: &mut Work, namespace: &Namespace) -> Result<i64> {
    loop {
        let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE namespace = ");
        query.push_bind(namespace.as_str());
        if let Some((space,)) = work.rows::<(i64,)>(query).await?.first() {
            return Ok(*space);
        }
        let mut query = Statement::new("INSERT INTO evidence_spaces (namespace, rules) VALUES (");
        query.push_bind(namespace.as_str());
        query.push(", 0) ON CONFLICT (namespace) DO NOTHING");
        work.run(query).await?;
    }
}

/// Locks a namespace's graph: no rule about its domains changes before the end. Alone, it waits for upserts under way, and later
/// ones wait.
async fn lock(work: &mut Work, space: i64, alone: bool) -> Result<()> {
    let mut query = Statement::new("SELECT space FROM evidence_spaces WHERE space = ");
    query.push_bind(space);
    if alone {
        query.for_update();
    } else {
        query.for_share();
    }
    work.rows::<(i64,)>(query).await?;
    Ok(())
}

/// Whether a page has ids that it was not stored with: so an upsert of papers takes the lock that it needs at once, and two of them
/// don't wait for each other in turn.
async fn names_new_ids(work: &mut Work, space: i64, pages: &[Page]) -> Result<bool> {
    let with_ids: HashMap<&str, Vec<String>> = pages
        .iter()
        .map(|page| (page.id.as_str(), identities(&page.works_by_type())))
        .filter(|(_, ids)| !ids.is_empty())
        .collect();
    let names: Vec<&str> = with_ids.keys().copied().collect();
    let mut same = 0;
    for names in batches(&names) {
        let mut query =
            Statement::new("SELECT page_id, doi, pmid, arxiv_id FROM evidence_pages WHERE space = ");
        query.push_bind(space).push(" AND page_id IN ");
        push_names(&mut query, names.iter().copied());
        for (id, doi, pmid, arxiv) in work.rows::<(String, String, String, String)>(query).await? {
            same += usize::from(with_ids.get(id.as_str()) == Some(&identities(&[doi, pmid, arxiv])));
        }
    }
    Ok(same < with_ids.len())
}

impl Upserting<'_> {
    /// What the elements say that are upserted and were known before, where somebody replaces them.
    async fn says(
        &self,
        work: &mut Work,
        replaced: Option<&By>,
        before: &HashMap<NodeRef, KnownNode>,
        edges: &HashMap<EvidenceId, KnownEdgeRow>,
    ) -> Result<Vec<(ElementSort, HashMap<i64, Says>)>> {
        let mut all = Vec::new();
        if replaced.is_none() {
            return Ok(all);
        }
        let upsert = self.upsert;
        let of = |sort, ids: Vec<&EvidenceId>| -> Vec<i64> {
            let known = ids
                .into_iter()
                .filter_map(|id| Some(before.get(&node(sort, id))?.key));
            known.collect()
        };
        let pages = of(NodeType::Page, upsert.pages.iter().map(|of| &of.id).collect());
        let fragments = of(
            NodeType::Fragment,
            upsert.fragments.iter().map(|of| &of.id).collect(),
        );
        let claims = of(NodeType::Claim, upsert.claims.iter().map(|of| &of.id).collect());
        let edges = edges.values().map(|edge| edge.edge).collect();
        for (sort, keys) in [
            (ElementSort::Page, pages),
            (ElementSort::Fragment, fragments),
            (ElementSort::Claim, claims),
            (ElementSort::Edge, edges),
        ] {
            all.push((sort, says(work, sort, &keys).await?));
        }
        Ok(all)
    }

    /// Whether it changes what edges of other upserts depend on: ids of works, or the host of a page or the page of a claim that had
    /// none.
    fn changes_others(&self) -> bool {
        let mut pages = self.upsert.pages.iter();
        let mut claims = self.upsert.claims.iter();
        pages.any(|page| {
            let known = self.nodes.get(&node(NodeType::Page, &page.id));
            let ids = identities(&page.works_by_type());
            known.map_or(!ids.is_empty(), |known| {
                known.ids != ids || (known.host == 0 && !page.host.is_empty())
            })
        }) || claims.any(|claim| {
            let known = self.nodes.get(&node(NodeType::Claim, &claim.id));
            claim.page.is_some() && known.is_some_and(|known| known.page == 0)
        })
    }

    /// Reads what is known of every node that is upserted or named, and numbers the tasks.
    async fn read(&mut self, work: &mut Work) -> Result<()> {
        let upsert = self.upsert;
        let mut named: BTreeSet<NodeRef> = BTreeSet::new();
        let page = |id: &EvidenceId| node(NodeType::Page, id);
        named.extend(upsert.pages.iter().map(|of| page(&of.id)));
        for fragment in &upsert.fragments {
            named.insert(node(NodeType::Fragment, &fragment.id));
            named.insert(page(&fragment.page));
        }
        for claim in &upsert.claims {
            named.insert(node(NodeType::Claim, &claim.id));
            named.extend(claim.page.as_ref().map(page));
        }
        for edge in &upsert.edges {
            named.insert(edge.source.clone());
            named.insert(edge.target.clone());
        }
        for sort in NodeType::ALL {
            let ids: Vec<&str> = named
                .iter()
                .filter(|node| node.sort == sort)
                .map(|node| node.id.as_str())
                .collect();
            for ids in batches(&ids) {
                let mut query = known_nodes(sort, self.space);
                push_names(&mut query, ids.iter().copied());
                for row in work.rows::<KnownNodeRow>(query).await? {
                    let (id, known) = row.parse()?;
                    self.nodes.insert(NodeRef { sort, id }, known);
                }
            }
        }
        let tasks: BTreeSet<&str> = upsert
            .claims
            .iter()
            .map(|claim| &claim.task)
            .chain(upsert.edges.iter().map(|edge| &edge.task))
            .flatten()
            .map(EvidenceId::as_str)
            .collect();
        self.tasks = named_rows(work, &TASKS, self.space, &tasks).await?;
        Ok(())
    }

    async fn known_edges(&self, work: &mut Work) -> Result<HashMap<EvidenceId, KnownEdgeRow>> {
        let ids: Vec<&str> = self.upsert.edges.iter().map(|edge| edge.id.as_str()).collect();
        let mut known = HashMap::new();
        for ids in batches(&ids) {
            let mut query = Statement::new(
                "SELECT edge, edge_id, source_sort, source, target_sort, target, host FROM evidence_edges WHERE space = ",
            );
            query.push_bind(self.space);
            query.push(" AND edge_id IN ");
            push_names(&mut query, ids.iter().copied());
            for row in work.rows::<KnownEdgeRow>(query).await? {
                known.insert(row.id()?, row);
            }
        }
        Ok(known)
    }

    /// Whether all that is named is known or comes with it, and leads where it led before.
    fn check(&mut self, edges: &HashMap<EvidenceId, KnownEdgeRow>) {
        let upsert = self.upsert;
        let mut coming: BTreeSet<NodeRef> = BTreeSet::new();
        coming.extend(upsert.pages.iter().map(|of| node(NodeType::Page, &of.id)));
        coming.extend(upsert.fragments.iter().map(|of| node(NodeType::Fragment, &of.id)));
        coming.extend(upsert.claims.iter().map(|of| node(NodeType::Claim, &of.id)));
        let unknown = |nodes: &HashMap<NodeRef, KnownNode>, of: &NodeRef| {
            (!nodes.contains_key(of) && !coming.contains(of))
                .then(|| format!("is not known, and not in this request: {of}"))
        };
        for (index, page) in upsert.pages.iter().enumerate() {
            if let Some(known) = self.nodes.get(&node(NodeType::Page, &page.id))
                && !self.replaces
                && known.host != 0
                && !page.host.is_empty()
                && known.reversed_host != reversed(&page.host)
            {
                let before = reversed(&known.reversed_host);
                self.violations.add(
                    format!("pages[{index}].domain"),
                    format!("must be as before, {before}, unless `replace` is set: a page keeps its domain"),
                );
            }
        }
        for (index, fragment) in upsert.fragments.iter().enumerate() {
            let field = format!("fragments[{index}].page_id");
            let page = node(NodeType::Page, &fragment.page);
            let known = self.nodes.get(&node(NodeType::Fragment, &fragment.id));
            if let Some(why) = unknown(&self.nodes, &page) {
                self.violations.add(field, why);
            } else if !self.replaces
                && known.is_some_and(|known| Some(known.page) != self.nodes.get(&page).map(|of| of.key))
            {
                self.violations.add(
                    field,
                    "must be as before, unless `replace` is set: a fragment keeps its page",
                );
            }
        }
        for (index, claim) in upsert.claims.iter().enumerate() {
            let Some(page) = &claim.page else { continue };
            let field = format!("claims[{index}].page_id");
            let page = node(NodeType::Page, page);
            let known = self.nodes.get(&node(NodeType::Claim, &claim.id));
            let before = known.map_or(0, |known| known.page);
            if let Some(why) = unknown(&self.nodes, &page) {
                self.violations.add(field, why);
            } else if !self.replaces && before != 0 && Some(before) != self.nodes.get(&page).map(|of| of.key)
            {
                self.violations.add(
                    field,
                    "must be as before, unless `replace` is set: a claim keeps its page",
                );
            }
        }
        for (index, edge) in upsert.edges.iter().enumerate() {
            for (end, of) in [("source", &edge.source), ("target", &edge.target)] {
                if let Some(why) = unknown(&self.nodes, of) {
                    self.violations.add(format!("edges[{index}].{end}"), why);
                }
            }
            if let Some(known) = edges.get(&edge.id) {
                for (end, of, was) in [
                    ("source", &edge.source, (known.source_sort, known.source)),
                    ("target", &edge.target, (known.target_sort, known.target)),
                ] {
                    let now = self.nodes.get(of).map(|known| (of.sort.number(), known.key));
                    if self.replaces {
                        if end == "target" && of.sort.number() != was.0 {
                            let field = format!("edges[{index}].target");
                            self.violations
                                .add(field, "must be a node of the same sort as before");
                        }
                        continue;
                    }
                    // What comes with it was not there before.
                    if now != Some(was) && (now.is_some() || coming.contains(of)) {
                        self.violations.add(
                            format!("edges[{index}].{end}"),
                            "must be as before, unless `replace` is set: an edge keeps its ends",
                        );
                    }
                }
            }
        }
    }

    async fn save_pages(&mut self, work: &mut Work) -> Result<()> {
        let mut pages: Vec<&Page> = self.upsert.pages.iter().collect();
        pages.sort_unstable_by_key(|page| &page.id);
        let hosts = self.hosts(work, &pages).await?;
        let (mut changed, mut left) = (Vec::new(), BTreeSet::new());
        for pages in batches(&pages) {
            let mut query = Statement::new(
                "INSERT INTO evidence_pages (space, page_id, host, url, title, doi, pmid, arxiv_id, work) ",
            );
            query.push_values(pages, |mut row, page| {
                let of = page.works_by_type();
                row.push_bind(self.space)
                    .push_bind(page.id.as_str())
                    .push_bind(if page.host.is_empty() {
                        Some(0)
                    } else {
                        hosts.get(&reversed(&page.host)).copied()
                    })
                    .push_bind(page.url.as_str())
                    .push_bind(page.title.as_str());
                for id in of {
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

    async fn save_fragments(&mut self, work: &mut Work) -> Result<()> {
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

    async fn save_claims(&mut self, work: &mut Work) -> Result<()> {
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

    async fn save_edges(&mut self, work: &mut Work, known: &HashMap<EvidenceId, KnownEdgeRow>) -> Result<()> {
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
                    .push_bind(source.map(|of| of.key))
                    .push_bind(edge.target.sort.number())
                    .push_bind(target.map(|of| of.key))
                    .push_bind(source.map(|of| of.page))
                    .push_bind(source.map(|of| of.host))
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
                let ends =
                    [&edge.source, &edge.target].map(|of| Some((of.sort.number(), self.nodes.get(of)?.key)));
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

fn node(sort: NodeType, id: &EvidenceId) -> NodeRef {
    NodeRef { sort, id: id.clone() }
}

/// What only pages have.
const NO_WORK: &str =
    ", '' AS reversed_host, CAST(0 AS BIGINT) AS work, '' AS doi, '' AS pmid, '' AS arxiv_id";

/// A query for what is known of nodes, up to their ids. Pages and hosts are looked up row by row: a join may be planned while the tables
/// are small, and then reads all of them each time.
fn known_nodes(sort: NodeType, space: i64) -> Statement {
    let (columns, of_pages, table) = match sort {
        NodeType::Page => (
            "SELECT n.page_id AS id, n.page AS node, n.page, n.host",
            ", COALESCE((SELECT h.reversed FROM evidence_hosts AS h WHERE h.host = n.host), '') AS reversed_host, n.work, n.doi, n.pmid, \
             n.arxiv_id",
            "evidence_pages",
        ),
        NodeType::Fragment => (
            "SELECT n.fragment_id AS id, n.fragment AS node, n.page, \
             (SELECT p.host FROM evidence_pages AS p WHERE p.page = n.page) AS host",
            NO_WORK,
            "evidence_fragments",
        ),
        NodeType::Claim => (
            "SELECT n.claim_id AS id, n.claim AS node, n.page, n.host",
            NO_WORK,
            "evidence_claims",
        ),
    };
    let mut query = Statement::new(columns);
    query.push(of_pages);
    query
        .push(format_args!(" FROM {table} AS n WHERE n.space = "))
        .push_bind(space);
    query.push(format_args!(" AND n.{}_id IN ", sort.name()));
    query
}

/// A table whose rows are names with a key.
struct Names {
    table: &'static str,
    key: &'static str,
    name: &'static str,
    /// Further columns of a new row, with what is in them.
    new: (&'static str, &'static str),
}

const TASKS: Names = Names {
    table: "evidence_tasks",
    key: "task",
    name: "task_id",
    new: ("", ""),
};
const DOMAINS: Names = Names {
    table: "evidence_domains",
    key: "domain",
    name: "name",
    new: (", stale", "0"),
};
const HOSTS: Names = Names {
    table: "evidence_hosts",
    key: "host",
    name: "reversed",
    new: ("", ""),
};

/// The keys of the names that have a row.
async fn known_rows(
    work: &mut Work,
    of: &Names,
    space: i64,
    names: &BTreeSet<&str>,
) -> Result<HashMap<String, i64>> {
    let names: Vec<&str> = names.iter().copied().collect();
    let mut known = HashMap::with_capacity(names.len());
    for names in batches(&names) {
        let Names { table, key, name, .. } = of;
        let mut query = Statement::new("");
        query.push(format_args!("SELECT {name}, {key} FROM {table} WHERE space = "));
        query.push_bind(space);
        query.push(format_args!(" AND {name} IN "));
        push_names(&mut query, names.iter().copied());
        known.extend(work.rows::<(String, i64)>(query).await?);
    }
    Ok(known)
}

/// The keys of names, which get a row if they have none.
async fn named_rows(
    work: &mut Work,
    of: &Names,
    space: i64,
    names: &BTreeSet<&str>,
) -> Result<HashMap<String, i64>> {
    let mut known = known_rows(work, of, space, names).await?;
    let new: BTreeSet<&str> = names
        .iter()
        .copied()
        .filter(|name| !known.contains_key(*name))
        .collect();
    let added: Vec<&str> = new.iter().copied().collect();
    for added in batches(&added) {
        let Names { table, name, new, .. } = of;
        let mut query = Statement::new("");
        query.push(format_args!("INSERT INTO {table} (space, {name}{}) ", new.0));
        query.push_values(added, |mut row, name| {
            row.push_bind(space).push_bind(*name);
            if !new.1.is_empty() {
                row.push(new.1);
            }
        });
        query.push(format_args!(" ON CONFLICT (space, {name}) DO NOTHING"));
        work.run(query).await?;
    }
    if !new.is_empty() {
        known.extend(known_rows(work, of, space, &new).await?);
    }
    Ok(known)
}

/// Appends `($1, $2, …)`.
pub(crate) fn push_names<'q>(query: &mut Statement, names: impl IntoIterator<Item = &'q str>) {
    query.push("(");
    let mut list = query.separated(", ");
    for name in names {
        list.push_bind(name.to_owned());
    }
    query.push(")");
}
