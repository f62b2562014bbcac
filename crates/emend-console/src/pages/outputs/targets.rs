//! Which targets a namespace has, and what their ratings come to.

use emend_core::{Kind, ratings::TARGETS};
use emend_proto::{
    feedback::v1::{GetSettingsRequest, RatedTarget},
    learning::v1::{
        GetOutputStatsRequest, GetOutputStatsResponse, ListOutputStatsRequest, ListResourcesRequest,
    },
};
use tonic::Status;

use crate::{page::Visitor, pages::chart::Shares};

/// How many prompts and sets of examples are looked through for targets.
const RESOURCES: i32 = 200;
/// How many targets are read at once, and how often: all that one page shows.
const TARGETS_AT_ONCE: i32 = 50;
const MOST_PAGES: usize = 4;

/// A target and its ratings.
#[derive(Debug)]
pub(super) struct Target {
    pub name: String,
    pub stats: GetOutputStatsResponse,
}

impl Target {
    /// All its ratings.
    pub(super) fn shares(&self) -> Shares {
        let versions = self.stats.versions.iter().map(|version| Shares {
            good: version.good,
            neutral: version.neutral,
            bad: version.bad,
        });
        versions.fold(Shares::default(), Shares::plus)
    }

    /// Those that an improvement would be made of: of the current version, and all since it was made current.
    pub(super) fn since_current(&self) -> Shares {
        Shares {
            good: self.stats.good_counted,
            neutral: self.stats.neutral_counted,
            bad: self.stats.bad_counted,
        }
    }
}

/// The targets that the application added; none where the visitor may not read the settings, or they can't be read now.
pub(crate) async fn own(visitor: &Visitor) -> Vec<RatedTarget> {
    if !visitor.may("feedback.v1.SettingsService/GetSettings") {
        return Vec::new();
    }
    let request = visitor.services.call(GetSettingsRequest {
        namespace: visitor.namespace.clone(),
    });
    match visitor.services.settings().get_settings(request).await {
        Ok(answer) => answer.into_inner().settings.unwrap_or_default().rated_targets,
        Err(status) => {
            // The other targets are shown all the same.
            tracing::debug!(%status, "the targets of the settings can't be read");
            Vec::new()
        }
    }
}

/// Those that every namespace has, those of the settings, and those that have a prompt or examples.
pub(crate) async fn names(visitor: &Visitor) -> Result<Vec<String>, Status> {
    let mut names: Vec<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    let own = own(visitor).await;
    let mut found: Vec<String> = own.into_iter().map(|target| target.name).collect();
    if visitor.may("learning.v1.ResourceService/ListResources") {
        let request = visitor.services.call(ListResourcesRequest {
            namespace: visitor.namespace.clone(),
            kinds: vec![Kind::Prompt.number(), Kind::FewShotSet.number()],
            page_size: RESOURCES,
            ..ListResourcesRequest::default()
        });
        let answer = visitor.services.resources().list_resources(request).await?;
        let resources = answer.into_inner().resources.into_iter();
        found.extend(resources.filter_map(|resource| Some(resource.key?.key)));
    }
    found.sort_unstable();
    found.dedup();
    found.retain(|name| !names.contains(name));
    names.append(&mut found);
    Ok(names)
}

/// The ratings of a target.
pub(super) async fn read(visitor: &Visitor, name: &str) -> Result<Target, Status> {
    let request = visitor.services.call(GetOutputStatsRequest {
        namespace: visitor.namespace.clone(),
        target: name.to_owned(),
    });
    let answer = visitor.services.outputs().get_output_stats(request).await?;
    Ok(Target {
        name: name.to_owned(),
        stats: answer.into_inner(),
    })
}

/// All targets with their ratings: first those that were rated or have a prompt, then what else could be rated.
pub(super) async fn all(visitor: &Visitor) -> Result<Vec<Target>, Status> {
    let (mut targets, mut token) = (Vec::new(), String::new());
    for _ in 0..MOST_PAGES {
        let request = visitor.services.call(ListOutputStatsRequest {
            namespace: visitor.namespace.clone(),
            page_size: TARGETS_AT_ONCE,
            page_token: token,
        });
        let answer = visitor.services.outputs().list_output_stats(request).await?;
        let answer = answer.into_inner();
        targets.extend(answer.targets.into_iter().map(|target| Target {
            name: target.target,
            stats: target.stats.unwrap_or_default(),
        }));
        token = answer.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    for name in names(visitor).await? {
        if !targets.iter().any(|target| target.name == name) {
            targets.push(Target {
                name,
                stats: GetOutputStatsResponse {
                    cannot_reason: "NO_PROMPT".to_owned(),
                    ..GetOutputStatsResponse::default()
                },
            });
        }
    }
    Ok(targets)
}
