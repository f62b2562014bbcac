//! What an address says behind its question mark.

use std::{str::FromStr, time::Duration};

use emend_binding::{Error, Node};
use serde_json::{Map, Value};

/// How long `min_revision` is waited for unless `timeout` says something else.
pub(crate) const PATIENCE: f64 = 5.0;
/// The longest that `timeout` may say, in seconds.
pub(crate) const LONGEST: f64 = 60.0;

/// Texts, or lists of texts where a name comes more than once, and `variables.NAME` as an object.
pub(crate) struct Fields(pub(crate) Map<String, Value>);

impl Fields {
    pub(crate) fn of(query: Option<&str>) -> Self {
        let mut fields = Map::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let value = Value::String(value.into_owned());
            match name.split_once('.') {
                Some((outer, inner)) => {
                    let object = fields.entry(outer).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(object) = object {
                        object.insert(inner.to_owned(), value);
                    }
                }
                None => match fields.get_mut(&*name) {
                    None => drop(fields.insert(name.into_owned(), value)),
                    Some(Value::Array(list)) => list.push(value),
                    Some(one) => *one = Value::Array(vec![one.take(), value]),
                },
            }
        }
        Self(fields)
    }

    /// Takes what says how current the answer must be, and waits until it is.
    pub(crate) async fn waited(&mut self, node: &Node) -> Result<(), Error> {
        let least = self.number::<i64>("min_revision")?;
        let within = self.number::<f64>("timeout")?.unwrap_or(PATIENCE);
        if !(0.0..=LONGEST).contains(&within) {
            return Err(Error::of_field(
                "timeout",
                format!("must be 0 to {LONGEST} s, is {within}"),
            ));
        }
        match least {
            Some(least) => {
                node.wait_for_revision(least, Duration::from_secs_f64(within))
                    .await
            }
            None => Ok(()),
        }
    }

    fn number<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Error> {
        let value = self.0.remove(name);
        let parsed = value
            .as_ref()
            .map(|value| value.as_str().and_then(|text| text.parse().ok()));
        match parsed {
            None => Ok(None),
            Some(Some(number)) => Ok(Some(number)),
            Some(None) => {
                let value = value.unwrap_or_default();
                Err(Error::of_field(name, format!("must be one number, is {value}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_says_texts_lists_and_variables() {
        let fields = Fields::of(Some(
            "text=a+b%26&fields=title%5E2&fields=body&variables.day=Monday",
        ));
        assert_eq!(
            Value::Object(fields.0),
            json!({"text": "a b&", "fields": ["title^2", "body"], "variables": {"day": "Monday"}})
        );
    }

    #[test]
    fn a_number_that_is_none_is_named() {
        let mut fields = Fields::of(Some("min_revision=x"));
        let refused = fields.number::<i64>("min_revision").unwrap_err();
        assert_eq!(refused.violations[0].field, "min_revision");
        assert!(refused.text.contains("is \"x\""), "{refused}");
    }
}
