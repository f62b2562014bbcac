//! An identified caller, and where it holds which roles.

use std::sync::Arc;

use emend_core::{Caller, Namespace};

use super::role::Role;

/// A set of namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// All namespaces, present and future.
    All,
    /// These, sorted.
    Only(Arc<[Namespace]>),
}

impl Reach {
    /// No namespace.
    pub fn none() -> Self {
        Self::Only(Arc::default())
    }

    /// Exactly these.
    pub fn only(mut namespaces: Vec<Namespace>) -> Self {
        namespaces.sort_unstable();
        namespaces.dedup();
        Self::Only(namespaces.into())
    }

    /// The union of both.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Only(one), Self::Only(another)) => {
                Self::only(one.iter().chain(&**another).cloned().collect())
            }
            _ => Self::All,
        }
    }

    /// Whether the namespace of that name is in the set.
    pub fn covers(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces
                .binary_search_by(|known| known.as_str().cmp(namespace))
                .is_ok(),
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::Only(namespaces) if namespaces.is_empty())
    }
}

/// Roles in some namespaces.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Which roles.
    pub roles: Vec<Role>,
    /// Where they are held.
    pub reach: Reach,
    /// Whether the principal may use the roles there on a user's behalf.
    pub act_for_users: bool,
}

/// A caller and what it may do. Made once, when the file is read.
#[derive(Debug, PartialEq, Eq)]
pub struct Principal {
    caller: Caller,
    /// Where it holds each role, by [`Role::index`].
    held: [Reach; Role::ALL.len()],
    /// Where it may use each role on a user's behalf.
    for_users: [Reach; Role::ALL.len()],
}

impl Principal {
    /// A caller with its grants.
    pub fn new(caller: Caller, grants: &[Grant]) -> Self {
        let where_held = |role: Role, only_for_users: bool| {
            grants
                .iter()
                .filter(|grant| !only_for_users || grant.act_for_users)
                .filter(|grant| grant.roles.iter().any(|held| held.includes(role)))
                .fold(Reach::none(), |reach, grant| reach.or(&grant.reach))
        };
        Self {
            caller,
            held: Role::ALL.map(|role| where_held(role, false)),
            for_users: Role::ALL.map(|role| where_held(role, true)),
        }
    }

    /// Its name in feedback and in the audit trail.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Where it holds a role; `None` if nowhere.
    pub fn reach(&self, role: Role) -> Option<&Reach> {
        self.held.get(role.index()).filter(|reach| !reach.is_none())
    }

    /// Where it holds any role.
    pub(crate) fn anywhere(&self) -> Reach {
        self.held.iter().fold(Reach::none(), |all, reach| all.or(reach))
    }

    /// Whether it may use the role there on a user's behalf; the empty name is anywhere.
    pub(crate) fn acts_for_users(&self, role: Role, namespace: &str) -> bool {
        self.for_users
            .get(role.index())
            .is_some_and(|reach| reach.covers(namespace) || (namespace.is_empty() && !reach.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(names: &[&str]) -> Reach {
        Reach::only(names.iter().map(|name| Namespace::parse(name).unwrap()).collect())
    }

    #[test]
    fn a_grant_gives_its_roles_and_those_that_they_include() {
        let grant = |role, names: &[&str], act_for_users| Grant {
            roles: vec![role],
            reach: namespaces(names),
            act_for_users,
        };
        let principal = Principal::new(
            Caller::parse("ops").unwrap(),
            &[
                grant(Role::Operator, &["b", "a"], false),
                grant(Role::Reviewer, &["c"], true),
            ],
        );
        assert_eq!(principal.reach(Role::Operator), Some(&namespaces(&["a", "b"])));
        assert_eq!(
            principal.reach(Role::Reviewer),
            Some(&namespaces(&["a", "b", "c"]))
        );
        assert_eq!(principal.reach(Role::Admin), None);
        assert_eq!(principal.reach(Role::Ingester), None);
        assert!(principal.acts_for_users(Role::Reviewer, "c"));
        assert!(!principal.acts_for_users(Role::Reviewer, "a"));
        assert!(!principal.acts_for_users(Role::Operator, "c"));
    }

    #[test]
    fn all_namespaces_and_some_are_all_namespaces() {
        assert_eq!(Reach::All.or(&namespaces(&["a"])), Reach::All);
        assert!(Reach::All.covers("whatever"));
        assert!(!namespaces(&["a"]).covers("b"));
    }
}
