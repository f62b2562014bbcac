//! How soon a change of trust is in force: a trust file gives one domain, to which many edges lead, another level.

use anyhow::{Result, anyhow, ensure};
use emend_base::Error;
use emend_core::{Caller, evidence::TrustLevel};
use learning_store::{
    actor::Actor,
    evidence::{EdgeFilter, EdgePosition},
};
use learning_svc::{
    capabilities::Capabilities,
    evidence::trust_file::{Format, ReadTrustFile},
};
use tokio::time::Instant;

use super::graph::{PER_HOST, TRUSTED_DOMAIN, TRUSTED_HOSTS, namespace};

/// Applies trust files with other levels of [`TRUSTED_DOMAIN`], while another task does what the worker does.
pub(super) async fn changes(name: &str, app: &Capabilities, edges: usize) -> Result<()> {
    let concerned = edges.min(TRUSTED_HOSTS * PER_HOST);
    // The last one changes which sources are independent: all of its claims are verified anew.
    for (version, written, level) in [
        (1, "TRUSTED", TrustLevel::Trusted),
        (2, "ACADEMIC", TrustLevel::Academic),
    ] {
        let text = format!(
            "namespaces: [{}]\nversion: {version}\ndomains:\n  - {{ pattern: {TRUSTED_DOMAIN}, level: {written} }}\n",
            namespace()?
        );
        let file = ReadTrustFile::read(&text, Format::Yaml).map_err(|invalid| anyhow!("{invalid}"))?;
        let before = app.store.head().await?.revision;
        let began = Instant::now();
        let worker = tokio::spawn({
            let app = app.clone();
            async move {
                loop {
                    app.evidence.changed().await;
                    if app.evidence.follow_once().await? {
                        return Ok::<_, Error>(began.elapsed());
                    }
                }
            }
        });
        app.evidence
            .apply_trust_file(&file, &namespace()?, &Actor::caller(Caller::system()))
            .await?;
        let applied = began.elapsed();
        while !is_in_force(app, level).await? {
            ensure!(!worker.is_finished(), "some edges keep their level");
        }
        let in_force = began.elapsed();
        let followed = worker.await??;
        let after = app.store.head().await?.revision;
        println!(
            "{name}: {TRUSTED_DOMAIN} is {written}: {} revisions for {concerned} edges, applied in {applied:.2?}, listed so after {in_force:.2?}, all that follows computed after {followed:.2?}",
            after - before
        );
    }
    Ok(())
}

/// Whether no edge from the domain is listed with another level. Its hosts were added first, and are listed first.
async fn is_in_force(app: &Capabilities, level: TrustLevel) -> Result<bool> {
    let others = EdgeFilter {
        namespace: namespace()?,
        claim: None,
        relations: Vec::new(),
        levels: TrustLevel::ALL
            .into_iter()
            .filter(|other| *other != level)
            .collect(),
        reviewed: None,
        corrected: None,
        task: None,
        edge: None,
    };
    let evidence: &dyn learning_store::evidence::EvidenceStore = &*app.store;
    let found = evidence.edges(&others, EdgePosition::default(), 1).await?;
    let host = found.into_iter().next().and_then(|(_, edge)| edge.source_host);
    Ok(host.is_none_or(|host| !host.name.ends_with(TRUSTED_DOMAIN)))
}
