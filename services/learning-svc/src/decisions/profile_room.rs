//! How many entries a list of a profile may have. That is checked wherever an entry comes into being, as part of its transaction
//! and under its user's lock, so that no two calls take the last place.

use std::collections::{BTreeMap, BTreeSet};

use emend_core::{Key, Kind, Namespace, UserId};
use learning_store::UnitOfWork;

use crate::{
    decisions::open::OpenContests,
    failure::{Failure, resource_limit},
};

/// Entries of a list of a profile at most.
pub(crate) const MAX_ENTRIES: usize = 200;

/// The entries that come into a list and that leave it.
#[derive(Default)]
struct Moved<'a> {
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
}

/// Checks that every list of a profile has room for what a unit of work adds to it. The users must be locked.
pub(crate) async fn check(tx: &mut dyn UnitOfWork, unit: &OpenContests) -> Result<(), Failure> {
    let mut lists: BTreeMap<(&Namespace, &UserId, &Key), Moved<'_>> = BTreeMap::new();
    for (key, is_there) in unit.moved(Kind::Profile) {
        let Some(user) = &key.user else { continue };
        let moved = lists.entry((&key.namespace, user, &key.key)).or_default();
        if is_there {
            moved.added.push(&key.qualifier);
        } else {
            moved.removed.push(&key.qualifier);
        }
    }
    for ((namespace, user, field), moved) in lists {
        if moved.added.is_empty() {
            continue;
        }
        let stored = tx.entries().stored(namespace, user).await?.entries;
        let listed = stored.iter().filter(|(key, _)| key.key == *field);
        let mut entries: BTreeSet<&str> = listed.map(|(key, _)| key.qualifier.as_str()).collect();
        entries.extend(moved.added);
        entries.retain(|entry| !moved.removed.contains(entry));
        if entries.len() > MAX_ENTRIES {
            let full = format!("{field} would have more than {MAX_ENTRIES} entries");
            return Err(resource_limit(full).into());
        }
    }
    Ok(())
}
