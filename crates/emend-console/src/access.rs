//! What the person at the browser may do, as the services say it, so that no button is shown that would be refused.

use std::collections::HashSet;

use emend_proto::access::v1::{GetAccessRequest, GetAccessResponse};
use tonic::{Code, Status};

use crate::{
    failure::{FEEDBACK_SVC, LEARNING_SVC},
    services::ServicesAs,
};

/// Who somebody is and what they may call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    /// Their name in the audit trail; empty where callers are not authenticated.
    pub caller: String,
    /// Whether callers are authenticated.
    pub authenticated: bool,
    /// The namespaces that they may reach; none where they may reach all.
    pub namespaces: Vec<String>,
    methods: HashSet<String>,
    for_users: HashSet<String>,
    /// The packages of the services that could not be asked.
    away: Vec<&'static str>,
}

/// How the names of each service's methods begin.
const LEARNING: &str = "learning.";
const FEEDBACK: &str = "feedback.";

impl Access {
    /// Asks both services.
    pub(crate) async fn read(services: &ServicesAs, namespace: &str) -> Result<Self, Status> {
        let request = || {
            services.call(GetAccessRequest {
                namespace: namespace.to_owned(),
            })
        };
        let (mut learning, mut feedback) = (services.learning_access(), services.feedback_access());
        let (learning, feedback) =
            tokio::join!(learning.get_access(request()), feedback.get_access(request()));
        match (learning, feedback) {
            (Ok(learning), Ok(feedback)) => Ok(Self::of([learning.into_inner(), feedback.into_inner()])),
            // One of them is away: its pages say so themselves.
            (Ok(learning), Err(status)) if status.code() != Code::Unauthenticated => {
                Ok(Self::without([learning.into_inner()], FEEDBACK))
            }
            (Err(status), Ok(feedback)) if status.code() != Code::Unauthenticated => {
                Ok(Self::without([feedback.into_inner()], LEARNING))
            }
            (Err(status), _) | (_, Err(status)) => Err(status),
        }
    }

    /// Of somebody about whom neither service could be asked.
    pub(crate) fn unknown() -> Self {
        Self {
            away: vec![LEARNING, FEEDBACK],
            ..Self::default()
        }
    }

    fn without<const N: usize>(answers: [GetAccessResponse; N], away: &'static str) -> Self {
        Self {
            away: vec![away],
            ..Self::of(answers)
        }
    }

    fn of<const N: usize>(answers: [GetAccessResponse; N]) -> Self {
        let mut access = Self::default();
        let mut all_namespaces = false;
        for answer in answers {
            access.authenticated |= answer.authenticated;
            all_namespaces |= answer.all_namespaces;
            access.namespaces.extend(answer.namespaces);
            access.methods.extend(answer.methods);
            access.for_users.extend(answer.methods_for_users);
            if access.caller.is_empty() {
                access.caller = answer.caller;
            }
        }
        access.namespaces.sort_unstable();
        access.namespaces.dedup();
        if all_namespaces {
            access.namespaces.clear();
        }
        access
    }

    /// Whether they may call a method, for example `learning.v1.CandidateService/ApproveCandidate`.
    pub(crate) fn may(&self, method: &str) -> bool {
        self.methods.contains(&format!("emend.{method}"))
    }

    /// Whether they may, or may for all that is known while its service is away.
    pub(crate) fn may_perhaps(&self, method: &str) -> bool {
        self.may(method) || self.away.iter().any(|package| method.starts_with(package))
    }

    /// The services that could not be asked.
    pub(crate) fn away(&self) -> Vec<&'static str> {
        let name = |package: &&'static str| match *package {
            LEARNING => LEARNING_SVC,
            _ => FEEDBACK_SVC,
        };
        self.away.iter().map(name).collect()
    }

    /// Whether they may call it for a user.
    pub(crate) fn may_for_users(&self, method: &str) -> bool {
        self.for_users.contains(&format!("emend.{method}"))
    }
}
