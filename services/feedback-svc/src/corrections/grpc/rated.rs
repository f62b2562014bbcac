//! Requests to submit, where what can be rated is said by settings. A new request may rate what the settings have now; that a
//! request was stored before holds whatever they say since.

use std::collections::BTreeMap;

use emend_base::Error;
use emend_core::{
    Caller, Namespace,
    ratings::{OwnTarget, target_named},
};
use emend_proto::{common::v1::correction::Correction as Oneof, feedback::v1::SubmitFeedbackRequest};
use feedback_store::ports::ReadSettings;

use crate::corrections::{
    Corrections,
    grpc::parse::{self, Wait},
    submit::Item,
};

/// Parses the requests of one call. The settings of a namespace are read at most once, and only where a request needs them.
#[derive(Debug)]
pub(super) struct Requests<'a> {
    corrections: &'a Corrections,
    settings: &'a dyn ReadSettings,
    caller: &'a Caller,
    own_targets: BTreeMap<Namespace, Vec<OwnTarget>>,
}

impl<'a> Requests<'a> {
    pub(super) fn new(
        corrections: &'a Corrections,
        settings: &'a dyn ReadSettings,
        caller: &'a Caller,
    ) -> Self {
        Self {
            corrections,
            settings,
            caller,
            own_targets: BTreeMap::new(),
        }
    }

    /// What is to be stored, or what was.
    pub(super) async fn parse(&mut self, request: &SubmitFeedbackRequest) -> Result<(Item, Wait), Error> {
        let refused = match parse::submission(request, self.own_targets(request).await?) {
            Ok((submission, wait)) => return Ok((Item::New(Box::new(submission)), wait)),
            Err(refused) => refused,
        };
        if let Some((repeated, wait)) = refused.refused_by_settings
            && let Some(id) = self.corrections.stored_as(self.caller, &repeated).await?
        {
            return Ok((Item::Stored(repeated.namespace, id), wait));
        }
        Err(refused.violations.into())
    }

    /// What the request may rate beside what can be rated everywhere.
    async fn own_targets(&mut self, request: &SubmitFeedbackRequest) -> Result<&[OwnTarget], Error> {
        let namespace = Namespace::parse(&request.namespace).ok();
        let Some(namespace) = namespace.filter(|_| rates_an_own_target(request)) else {
            return Ok(&[]);
        };
        if !self.own_targets.contains_key(&namespace) {
            let settings = self.settings.settings(&namespace).await?;
            let targets = settings
                .map(|settings| settings.rated_targets)
                .unwrap_or_default();
            self.own_targets.insert(namespace.clone(), targets);
        }
        Ok(self.own_targets.get(&namespace).map_or(&[], Vec::as_slice))
    }
}

/// Whether a request rates what not every namespace has.
fn rates_an_own_target(request: &SubmitFeedbackRequest) -> bool {
    let correction = request.correction.as_ref();
    match correction.and_then(|correction| correction.correction.as_ref()) {
        Some(Oneof::Rating(rating)) => target_named(&rating.target).is_none(),
        _ => false,
    }
}
