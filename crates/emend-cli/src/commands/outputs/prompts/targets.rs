//! Which targets a namespace has: those that every one has, and those of its settings.

use emend_core::ratings::{TARGETS, target_named};
use emend_proto::feedback::v1::GetSettingsRequest;

use crate::{
    context::Context,
    failure::{Failure, Result},
    output::on_standard_error,
};

/// The targets of a namespace.
pub(super) struct Targets {
    /// Those of its own; `None` where the settings could not be read.
    own: Option<Vec<String>>,
}

impl Targets {
    /// What is needed to tell whether these are targets. Where the settings can't be read, it says so, and takes every name.
    pub(super) async fn read(context: &Context, names: impl IntoIterator<Item = &str>) -> Self {
        if names.into_iter().all(|name| target_named(name).is_some()) {
            return Self {
                own: Some(Vec::new()),
            };
        }
        let own = own(context).await;
        if let Err(error) = &own {
            let hint = format!(
                "emend: the settings could not be read, so that no target is refused as unknown: {error}"
            );
            eprintln!("{}", on_standard_error(&hint));
        }
        Self { own: own.ok() }
    }

    /// Refuses what is no target.
    pub(super) fn check(&self, name: &str) -> Result<(), String> {
        let Some(own) = &self.own else { return Ok(()) };
        if target_named(name).is_some() || own.iter().any(|known| known == name) {
            return Ok(());
        }
        let known = TARGETS.iter().map(|target| target.name);
        let known: Vec<&str> = known.chain(own.iter().map(String::as_str)).collect();
        Err(format!(
            "{name:?} is not a target: there are {}\n  emend settings set --rated-target '{name}=GOOD:good,BAD:bad' adds it",
            known.join(", ")
        ))
    }
}

async fn own(context: &Context) -> Result<Vec<String>> {
    let request = GetSettingsRequest {
        namespace: context.namespace(),
    };
    let mut client = context.settings().await?;
    let response = client.get_settings(context.request(request)).await;
    let settings = response.map_err(Failure::from)?.into_inner().settings;
    let targets = settings.unwrap_or_default().rated_targets.into_iter();
    Ok(targets.map(|target| target.name).collect())
}
