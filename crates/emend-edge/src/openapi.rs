//! The description of the look-ups for programs: `OpenAPI` 3.1, made from the types that are taken and answered.

use std::sync::LazyLock;

use emend_binding::answers::Status;
use schemars::{
    JsonSchema, SchemaGenerator,
    generate::{Contract, SchemaSettings},
};
use serde_json::{Map, Value, json};

use crate::{
    answer::{Answered, Answers, Refusal},
    lookups::{self, Lookup, Visitor},
    routes::MOST,
};

static TEXT: LazyLock<String> = LazyLock::new(|| {
    // Sorted, whether or not another package of the program has the maps of `serde_json` keep their order.
    let mut document = document();
    document.sort_all_objects();
    let text = serde_json::to_string_pretty(&document).expect("invariant: it is made of JSON");
    text + "\n"
});

/// The document as JSON.
pub fn text() -> &'static str {
    &TEXT
}

fn document() -> Value {
    let generator = |contract| {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings.contract = contract;
        });
        settings.into_generator()
    };
    let mut described = Described {
        taken: generator(Contract::Deserialize),
        answered: generator(Contract::Serialize),
        paths: Map::new(),
    };
    lookups::each(&mut described);
    described
        .paths
        .insert("/v1/status".into(), described_status(&mut described.answered));
    let mut schemas = described.taken.take_definitions(true);
    schemas.append(&mut described.answered.take_definitions(true));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Emend edge",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "What was learned from corrections, for every language",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7420", "description": "On the same machine"}],
        "security": [{}, {"token": []}],
        "paths": described.paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of a caller with the role subscriber, where the edge authenticates its callers",
                },
            },
        },
    });
    plain_choices(&mut document);
    // In the same order whatever else is built with serde_json.
    document.sort_all_objects();
    document
}

fn described_status(answered: &mut SchemaGenerator) -> Value {
    let refusal = refusal(answered);
    json!({
        "get": {
            "operationId": "status",
            "summary": "What the edge holds, and how current it is",
            "responses": {"200": content("How current it is", &schema::<Status>(answered)), "default": refusal},
        },
    })
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

fn content(description: &str, schema: &Value) -> Value {
    json!({"description": description, "content": {"application/json": {"schema": schema}}})
}

fn refusal(answered: &mut SchemaGenerator) -> Value {
    content("Why there is no answer", &schema::<Refusal>(answered))
}

/// What is described so far.
struct Described {
    /// Makes the schemas of what is taken.
    taken: SchemaGenerator,
    /// Makes those of what is answered.
    answered: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Visitor for Described {
    fn visit<L: Lookup + 'static>(&mut self) {
        let name = L::NAME.replace('-', "_");
        let taken = schema::<L>(&mut self.taken);
        let fields = self
            .taken
            .definitions()
            .get(&*L::schema_name())
            .cloned()
            .unwrap_or_default();
        let summary = fields.get("description").cloned().unwrap_or_default();
        let summary = summary.as_str().unwrap_or_default().trim_end_matches('.');
        let one = schema::<Answered<L::Answer>>(&mut self.answered);
        let all = schema::<Answers<L::Answer>>(&mut self.answered);
        let refusal = refusal(&mut self.answered);
        let list = json!({"type": "array", "items": taken, "maxItems": MOST});
        let mut path = json!({
            "parameters": parameters(),
            "post": {
                "operationId": name,
                "summary": summary,
                "description": "One look-up, or a list of them, which is answered by a list in its order.",
                "requestBody": {"required": true, "content": {"application/json": {"schema": {"oneOf": [taken, list]}}}},
                "responses": {"200": content("The answer", &json!({"anyOf": [one, all]})), "default": refusal},
            },
        });
        if let Some(parameters) = in_address(&fields) {
            path["get"] = json!({
                "operationId": format!("get_{name}"),
                "summary": summary,
                "parameters": parameters,
                "responses": {"200": content("The answer", &one), "default": refusal},
            });
        }
        self.paths.insert(format!("/v1/{{namespace}}/{}", L::NAME), path);
    }
}

/// What every look-up takes from its address.
fn parameters() -> Value {
    json!([
        {
            "name": "namespace",
            "in": "path",
            "required": true,
            "description": "The search application",
            "schema": {"type": "string"},
        },
        {
            "name": "min_revision",
            "in": "query",
            "description": "The answer is made from this revision or a later one, which is waited for",
            "schema": {"type": "integer", "format": "int64"},
        },
        {
            "name": "timeout",
            "in": "query",
            "description": "How long min_revision is waited for, in seconds",
            "schema": {"type": "number", "minimum": 0, "maximum": 60, "default": 5},
        },
    ])
}

/// What a look-up takes, as parameters of an address: texts, lists of texts, true or false. None if it can't do without something else.
fn in_address(fields: &Value) -> Option<Value> {
    let required = fields.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let mut parameters = Vec::new();
    let mut fields: Vec<_> = fields
        .get("properties")
        .and_then(Value::as_object)?
        .iter()
        .collect();
    // Whether or not maps keep their order.
    fields.sort_unstable_by_key(|(name, _)| *name);
    for (name, schema) in fields {
        let Some(schema) = of_texts(schema) else {
            if is_required(name) {
                return None;
            }
            continue;
        };
        let mut parameter =
            json!({"name": name, "in": "query", "required": is_required(name), "schema": schema});
        if let Some(described) = parameter["schema"].as_object_mut()
            && let Some(description) = described.remove("description")
        {
            parameter["description"] = description;
        }
        if parameter["schema"]["type"] == "array" {
            parameter["style"] = json!("form");
            parameter["explode"] = json!(false);
        }
        parameters.push(parameter);
    }
    Some(Value::Array(parameters))
}

/// The schema of a field that an address can say, without the null that it can't.
fn of_texts(schema: &Value) -> Option<Value> {
    let mut schema = schema.clone();
    if let Some(given) = schema
        .get("anyOf")
        .and_then(Value::as_array)
        .and_then(|others| others.iter().find(|other| other["type"] != "null"))
        .cloned()
    {
        let described = schema.get("description").cloned();
        schema = given;
        if let (Some(described), Some(schema)) = (described, schema.as_object_mut()) {
            schema.insert("description".into(), described);
        }
    }
    match schema.get("type") {
        Some(Value::Array(types)) => {
            let given = types.iter().find(|name| *name != "null").cloned()?;
            schema["type"] = given;
        }
        Some(_) => {}
        // A choice, which stands for itself among the schemas.
        None => return schema.get("$ref").is_some().then_some(schema),
    }
    let is_text = schema["type"] == "string" || schema["type"] == "boolean";
    let is_list = schema["type"] == "array" && schema["items"]["type"] == "string";
    (is_text || is_list).then_some(schema)
}

/// Writes choices that differ in their texts alone, each with its description, as one list of texts, which every program reads.
pub(crate) fn plain_choices(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let choices = fields.get("oneOf").and_then(Value::as_array).and_then(|choices| {
                let texts = choices
                    .iter()
                    .map(|choice| match (choice.get("const"), choice.get("enum")) {
                        (Some(text @ Value::String(_)), None) => Some(vec![text.clone()]),
                        (None, Some(Value::Array(texts))) => Some(texts.clone()),
                        _ => None,
                    });
                texts.collect::<Option<Vec<_>>>()
            });
            if let Some(choices) = choices {
                fields.remove("oneOf");
                fields.insert("type".into(), json!("string"));
                fields.insert("enum".into(), Value::Array(choices.concat()));
            }
            fields.values_mut().for_each(plain_choices);
        }
        Value::Array(items) => items.iter_mut().for_each(plain_choices),
        _ => {}
    }
}
