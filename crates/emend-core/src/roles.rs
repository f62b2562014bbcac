//! Who may decide what by itself: the roles of a sender, and how much harm a wrong decision does.

use std::fmt;

use crate::violation::Invalid;

/// How much harm a wrong promotion does, and therefore what a promotion requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RiskLevel {
    /// Applied with the first vote.
    Low,
    /// Applied at the policy's threshold of net confirmations.
    Medium,
    /// Only a person can apply it.
    High,
}

/// A role that decides by rulings; each does what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Whoever submits corrections.
    Reporter,
    /// Whoever reviews candidates.
    Reviewer,
    /// Whoever sets and reverts values.
    Operator,
    /// Whoever sets policies.
    Admin,
}

impl Role {
    /// All roles, in the order of their numbers on the wire.
    pub const ALL: [Self; 4] = [Self::Reporter, Self::Reviewer, Self::Operator, Self::Admin];

    /// Its name in configuration files and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reporter => "reporter",
            Self::Reviewer => "reviewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let mut all = Self::ALL.into_iter();
        all.find(|role| role.name() == name).ok_or_else(|| {
            Invalid::new(format!(
                "must be reporter, reviewer, operator or admin, is {name:?}"
            ))
        })
    }
}

/// The roles that the sender of a correction or retraction had when it was sent, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Roles(Vec<String>);

/// The most roles of one sender.
const MAX_ROLES: usize = 16;

impl Roles {
    /// Roles by their names, at most 16 of 1 to 32 characters `[a-z_-]` each. Names that this version does not know are
    /// kept.
    pub fn parse<'a>(names: impl Iterator<Item = &'a str>) -> Result<Self, Invalid> {
        let mut roles = Vec::new();
        for name in names {
            let is_name = (1..=32).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'));
            if !is_name {
                return Err(Invalid::new(format!("has an entry that is no role: {name:?}")));
            }
            if roles.len() == MAX_ROLES {
                return Err(Invalid::new(format!("must have at most {MAX_ROLES} entries")));
            }
            roles.push(name.to_owned());
        }
        Ok(Self(roles))
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The strongest of them, of those that decide.
    pub fn strongest(&self) -> Option<Role> {
        self.names().filter_map(|name| Role::parse(name).ok()).max()
    }

    /// Whether they permit what `role` does.
    pub fn permit(&self, role: Role) -> bool {
        self.strongest() >= Some(role)
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_permits_what_those_before_it_do() {
        let roles = |names: &str| Roles::parse(names.split(',').filter(|name| !name.is_empty())).unwrap();
        assert!(roles("ingester,operator").permit(Role::Reviewer));
        assert!(!roles("reporter,subscriber").permit(Role::Reviewer));
        assert!(!roles("").permit(Role::Reporter));
        assert_eq!(
            roles("reporter,of_the_future").to_string(),
            "reporter,of_the_future"
        );
        assert!(Roles::parse(["a,b"].into_iter()).is_err());
        assert!(Roles::parse(["a"; 17].into_iter()).is_err());
    }
}
