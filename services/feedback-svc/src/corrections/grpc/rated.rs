//! Requests to submit, where what can be rated is said by settings. A new request may rate what the settings have now; that a
//! request was stored before holds whatever they say since.

use std::collections::BTreeMap;

use emend_base::Error;
use emend_core::{
    Caller, Namespace,
    outputs::{OwnTarget, RatingClass, TARGETS},
};
use emend_proto::{
    common::v1::{Rating, correction::Correction as Oneof},
    feedback::v1::SubmitFeedbackRequest,
};
use feedback_store::{ports::ReadSettings, records::feedback::Submission};

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
        if let Some((submission, wait)) = when_its_target_existed(request)
            && let Some(id) = self.corrections.stored_as(self.caller, &submission).await?
        {
            return Ok((Item::Stored(submission.namespace, id), wait));
        }
        Err(refused.into())
    }

    /// What the request may rate beside what can be rated everywhere.
    async fn own_targets(&mut self, request: &SubmitFeedbackRequest) -> Result<&[OwnTarget], Error> {
        let namespace = Namespace::parse(&request.namespace).ok();
        let Some(namespace) = namespace.filter(|_| own_rating(request).is_some()) else {
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

/// The rating that a request is, if not every namespace has its target.
fn own_rating(request: &SubmitFeedbackRequest) -> Option<&Rating> {
    let Oneof::Rating(rating) = request.correction.as_ref()?.correction.as_ref()? else {
        return None;
    };
    let name = rating.target.trim();
    let is_everywhere = TARGETS.iter().any(|target| target.name == name);
    (!is_everywhere).then_some(rating)
}

/// The same request as it was parsed when the application had the target and the value that it rates. It only serves to ask
/// whether it was stored then.
fn when_its_target_existed(request: &SubmitFeedbackRequest) -> Option<(Submission, Wait)> {
    let rating = own_rating(request)?;
    let class = RatingClass::from_number(rating.counts_as).unwrap_or(RatingClass::Neutral);
    let target = OwnTarget::parse(&rating.target, [(rating.value.as_str(), class)], true).ok()?;
    parse::submission(request, &[target]).ok()
}
