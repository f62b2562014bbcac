//! What several renderings of the same manifests have in common, and on which choices the rest of them depends.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Which components a rendering has: bit n stands for component n.
pub(crate) type Choice = u32;

/// When something is part of a rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Whether all of `literals` must hold, or one of them.
    pub(crate) all: bool,
    /// Components, and whether each has to be chosen or has to be left out.
    pub(crate) literals: Vec<(usize, bool)>,
}

/// What is at one place of the renderings.
#[derive(Debug)]
pub(crate) struct Place {
    /// When there is anything here, provided that there is what it is part of; `None`: always.
    pub(crate) condition: Option<Condition>,
    /// What is here, of which exactly one applies.
    pub(crate) nodes: Vec<(Option<Condition>, Node)>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Scalar(Value),
    /// Places by key.
    Map(Vec<(String, Place)>),
    /// Places by what identifies an item: its `name`, or all of it.
    List(Vec<(String, Place)>),
}

/// Merges what is at `path` in those renderings of `scope` that have something there. Fails if it depends on the choice in
/// another way than a [`Condition`] can say.
pub(crate) fn merge(
    path: &str,
    scope: &[Choice],
    renderings: &[(Choice, &Value)],
    components: usize,
) -> Result<Place> {
    let condition_of = |scope: &[Choice], those: &[Choice]| {
        condition(scope, those, components).with_context(|| format!("{path}: when it is there"))
    };
    let present: Vec<Choice> = renderings.iter().map(|(choice, _)| *choice).collect();
    let mut groups: Vec<Vec<(Choice, &Value)>> = Vec::new();
    for (choice, value) in renderings {
        let alike = |group: &&mut Vec<(Choice, &Value)>| match (group[0].1, value) {
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => true,
            (one, other) => one == *other,
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push((*choice, value)),
            None => groups.push(vec![(*choice, value)]),
        }
    }
    let mut nodes = Vec::new();
    for group in groups {
        let those: Vec<Choice> = group.iter().map(|(choice, _)| *choice).collect();
        nodes.push((condition_of(&present, &those)?, node(path, &group, components)?));
    }
    Ok(Place {
        condition: condition_of(scope, &present)?,
        nodes,
    })
}

fn node(path: &str, group: &[(Choice, &Value)], components: usize) -> Result<Node> {
    let scope: Vec<Choice> = group.iter().map(|(choice, _)| *choice).collect();
    let mut sequences = Vec::new();
    let mut found = BTreeMap::<String, Vec<(Choice, &Value)>>::new();
    for (choice, value) in group {
        let parts: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
            Value::Array(list) => list.iter().map(|item| (identity(item), item)).collect(),
            scalar => return Ok(Node::Scalar((*scalar).clone())),
        };
        let names: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
        ensure!(
            names.iter().collect::<BTreeSet<_>>().len() == names.len(),
            "{path}: something is in there twice"
        );
        for (name, value) in parts {
            found.entry(name).or_default().push((*choice, value));
        }
        sequences.push(names);
    }
    let mut places = Vec::new();
    for name in in_order(&sequences).with_context(|| path.to_owned())? {
        let place = merge(&format!("{path}/{name}"), &scope, &found[&name], components)?;
        places.push((name, place));
    }
    Ok(if group[0].1.is_array() {
        Node::List(places)
    } else {
        Node::Map(places)
    })
}

fn identity(item: &Value) -> String {
    let named = item.get("name").or(Some(item).filter(|item| item.is_string()));
    named
        .and_then(Value::as_str)
        .map_or_else(|| item.to_string(), str::to_owned)
}

/// All names in an order that each of the sequences keeps.
fn in_order(sequences: &[Vec<String>]) -> Result<Vec<String>> {
    let mut left: Vec<&[String]> = sequences.iter().map(Vec::as_slice).collect();
    let mut ordered = Vec::new();
    loop {
        left.retain(|sequence| !sequence.is_empty());
        if left.is_empty() {
            return Ok(ordered);
        }
        let next = left
            .iter()
            .map(|sequence| &sequence[0])
            .find(|first| left.iter().all(|sequence| !sequence[1..].contains(first)));
        let next = next
            .context("renderings have the same items in different orders")?
            .clone();
        for sequence in &mut left {
            if sequence[0] == next {
                *sequence = &sequence[1..];
            }
        }
        ordered.push(next);
    }
}

/// What distinguishes `those` from the rest of `scope`; `None` if there is no rest.
fn condition(scope: &[Choice], those: &[Choice], components: usize) -> Result<Option<Condition>> {
    if those.len() == scope.len() {
        return Ok(None);
    }
    let holds = |choice: Choice, (component, chosen): (usize, bool)| (choice >> component & 1 == 1) == chosen;
    let literals = || (0..components).flat_map(|component| [(component, true), (component, false)]);
    // All that hold of each of `those`; or all that hold of none of the rest.
    let required = literals().filter(|literal| those.iter().all(|choice| holds(*choice, *literal)));
    let sufficient = literals().filter(|literal| {
        let mut with = scope.iter().filter(|choice| holds(**choice, *literal));
        with.all(|choice| those.contains(choice))
    });
    for (all, candidates) in [
        (true, required.collect::<Vec<_>>()),
        (false, sufficient.collect()),
    ] {
        let says = |literals: &[(usize, bool)]| {
            scope.iter().all(|choice| {
                let mut each = literals.iter().map(|literal| holds(*choice, *literal));
                let applies = if all {
                    each.all(|holds| holds)
                } else {
                    each.any(|holds| holds)
                };
                applies == those.contains(choice)
            })
        };
        if says(&candidates) {
            let mut literals = candidates.clone();
            for candidate in candidates {
                let mut fewer = literals.clone();
                fewer.retain(|literal| *literal != candidate);
                if says(&fewer) {
                    literals = fewer;
                }
            }
            return Ok(Some(Condition { all, literals }));
        }
    }
    anyhow::bail!("neither all nor one of some components being chosen or left out says it")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Choice, Condition, Node, condition, in_order, merge};

    const ALL: [Choice; 4] = [0b00, 0b01, 0b10, 0b11];

    #[test]
    fn what_some_choices_have_in_common_is_said_in_the_fewest_words() {
        let says = |those: &[Choice]| condition(&ALL, those, 2);
        let literals = |all: bool, literals: &[(usize, bool)]| {
            Some(Condition {
                all,
                literals: literals.to_vec(),
            })
        };
        assert_eq!(says(&ALL).unwrap(), None);
        for (those, expected) in [
            (&[0b01, 0b11][..], literals(true, &[(0, true)])),
            (&[0b00, 0b10], literals(true, &[(0, false)])),
            (&[0b11], literals(true, &[(0, true), (1, true)])),
            (&[0b01], literals(true, &[(0, true), (1, false)])),
            (&[0b01, 0b10, 0b11], literals(false, &[(0, true), (1, true)])),
        ] {
            assert_eq!(says(those).unwrap(), expected, "{those:?}");
        }
        assert!(says(&[0b01, 0b10]).is_err(), "either, but not both");
    }

    #[test]
    fn an_order_is_kept_or_refused() {
        let names = |sequences: &[&str]| -> Vec<Vec<String>> {
            let split = |names: &&str| names.split(' ').map(str::to_owned).collect();
            sequences.iter().map(split).collect()
        };
        assert_eq!(in_order(&names(&["a c", "b c", "a b"])).unwrap(), ["a", "b", "c"]);
        assert!(in_order(&names(&["a b", "b a"])).is_err());
    }

    #[test]
    fn what_differs_between_renderings_gets_its_condition() {
        let of = |choice: Choice| -> Value {
            if choice & 1 == 0 {
                json!({"port": 1, "args": ["--a"]})
            } else {
                json!({"port": 2, "args": ["--a", "--b"]})
            }
        };
        let renderings = ALL.map(|choice| (choice, of(choice)));
        let renderings: Vec<(Choice, &Value)> = renderings
            .iter()
            .map(|(choice, rendering)| (*choice, rendering))
            .collect();
        let place = merge("", &ALL, &renderings, 2).unwrap();
        let Node::Map(places) = &place.nodes[0].1 else {
            panic!("{place:?}");
        };
        let with = |chosen| {
            Some(Condition {
                all: true,
                literals: vec![(0, chosen)],
            })
        };
        let at = |name: &str| &places.iter().find(|(key, _)| key == name).unwrap().1;
        let said: Vec<_> = at("port")
            .nodes
            .iter()
            .map(|(condition, _)| condition.clone())
            .collect();
        assert_eq!(said, [with(false), with(true)]);
        let Node::List(items) = &at("args").nodes[0].1 else {
            panic!("{place:?}");
        };
        assert_eq!(
            (&items[0].1.condition, &items[1].1.condition),
            (&None, &with(true))
        );
    }
}
