//! The classes of the Python package: a class for each message and enum, and for each service one whose methods are its RPCs, for
//! threads and for asyncio. Texts come from the protos' comments.

mod messages;
mod services;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};

/// Services that backends do not call: feedback-svc does, or they offer it themselves.
const INTERNAL: [&str; 2] = ["IngestService", "SearchService"];
/// Words that can't be names in Python.
const KEYWORDS: [&str; 6] = ["class", "from", "global", "import", "is", "pass"];

/// Numbers of fields in the descriptors of descriptors, of which the paths of comments are made.
mod place {
    pub(super) const MESSAGE: i32 = 4;
    pub(super) const ENUM: i32 = 5;
    pub(super) const SERVICE: i32 = 6;
    pub(super) const PART: i32 = 2;
    pub(super) const NESTED_MESSAGE: i32 = 3;
}

/// Writes `messages.py` and `services.py`.
pub(crate) fn generate(descriptors: &FileDescriptorSet, out: &Path) -> Result<()> {
    let contract = Contract::read(descriptors)?;
    let about = "\"\"\"Generated from the wire contract by `cargo xtask proto`.\"\"\"\n";
    fs::write(out.join("__init__.py"), about)?;
    fs::write(out.join("messages.py"), messages::module(&contract)?)?;
    fs::write(out.join("services.py"), services::module(&contract)?)?;
    Ok(())
}

/// A descriptor and the comment above it.
struct Commented<'d, T> {
    descriptor: &'d T,
    comments: &'d Comments,
    path: Vec<i32>,
}

impl<T> Commented<'_, T> {
    fn comment(&self) -> String {
        self.comments.get(&self.path).cloned().unwrap_or_default()
    }

    fn part(&self, index: usize) -> String {
        let mut path = self.path.clone();
        path.extend([place::PART, i32::try_from(index).unwrap_or_default()]);
        self.comments.get(&path).cloned().unwrap_or_default()
    }
}

type Comments = BTreeMap<Vec<i32>, String>;

/// What the wire contract has, by name.
struct Contract<'d> {
    messages: BTreeMap<String, Commented<'d, DescriptorProto>>,
    enums: BTreeMap<String, Commented<'d, EnumDescriptorProto>>,
    services: BTreeMap<String, Commented<'d, ServiceDescriptorProto>>,
    /// Entries of maps, by full name.
    maps: BTreeMap<String, &'d DescriptorProto>,
}

impl<'d> Contract<'d> {
    fn read(descriptors: &'d FileDescriptorSet) -> Result<Self> {
        let mut contract = Self {
            messages: BTreeMap::new(),
            enums: BTreeMap::new(),
            services: BTreeMap::new(),
            maps: BTreeMap::new(),
        };
        for file in &descriptors.file {
            if file.package().starts_with("emend.") {
                contract.add(file)?;
            }
        }
        Ok(contract)
    }

    fn add(&mut self, file: &'d FileDescriptorProto) -> Result<()> {
        // They live as long as the program, which ends when they are written.
        let comments: &'static Comments = Box::leak(Box::new(comments(file)));
        let commented = |path: Vec<i32>| (comments, path);
        for (index, message) in file.message_type.iter().enumerate() {
            let path = vec![place::MESSAGE, number(index)];
            self.add_message(&format!(".{}", file.package()), message, comments, path)?;
        }
        for (index, found) in file.enum_type.iter().enumerate() {
            let (comments, path) = commented(vec![place::ENUM, number(index)]);
            let name = found.name().to_owned();
            let twice = self.enums.insert(
                name,
                Commented {
                    descriptor: found,
                    comments,
                    path,
                },
            );
            ensure!(twice.is_none(), "two enums are named {}", found.name());
        }
        for (index, service) in file.service.iter().enumerate() {
            let (comments, path) = commented(vec![place::SERVICE, number(index)]);
            if !INTERNAL.contains(&service.name()) {
                self.services.insert(
                    service.name().to_owned(),
                    Commented {
                        descriptor: service,
                        comments,
                        path,
                    },
                );
            }
        }
        Ok(())
    }

    fn add_message(
        &mut self,
        within: &str,
        message: &'d DescriptorProto,
        comments: &'d Comments,
        path: Vec<i32>,
    ) -> Result<()> {
        let full_name = format!("{within}.{}", message.name());
        if message
            .options
            .as_ref()
            .is_some_and(prost_types::MessageOptions::map_entry)
        {
            self.maps.insert(full_name, message);
            return Ok(());
        }
        for (index, nested) in message.nested_type.iter().enumerate() {
            let mut path = path.clone();
            path.extend([place::NESTED_MESSAGE, number(index)]);
            self.add_message(&full_name, nested, comments, path)?;
        }
        let twice = self.messages.insert(
            message.name().to_owned(),
            Commented {
                descriptor: message,
                comments,
                path,
            },
        );
        ensure!(twice.is_none(), "two messages are named {}", message.name());
        Ok(())
    }

    fn message(&self, full_name: &str) -> Result<&Commented<'d, DescriptorProto>> {
        self.messages
            .get(last(full_name))
            .with_context(|| format!("the contract has no message {full_name}"))
    }

    /// A field in Python.
    fn field(&self, field: &FieldDescriptorProto) -> Field {
        let single = match field.r#type() {
            Type::Bool => Single::scalar("bool", "False"),
            Type::Double | Type::Float => Single::scalar("float", "0.0"),
            Type::String | Type::Bytes | Type::Fixed64 | Type::Sfixed64 => Single::scalar("str", "\"\""),
            Type::Enum => Single {
                python: last(field.type_name()).to_owned(),
                default: "\"\"".to_owned(),
                kind: None,
            },
            Type::Message | Type::Group => Single::message(field.type_name()),
            _ => Single::scalar("int", "0"),
        };
        if let Some(entry) = self.maps.get(field.type_name()) {
            let value = self.field(&entry.field[1]);
            return Field {
                python: format!("Mapping[str, {}]", value.single.trim_end_matches(" | None")),
                given: "Mapping[str, Any]".to_owned(),
                default: "NONE".to_owned(),
                kind: value.kind.map(|(kind, _)| (kind, Shape::Map)),
                single: value.single,
            };
        }
        if field.label() == Label::Repeated {
            return Field {
                python: format!("Sequence[{}]", single.python),
                given: format!("Sequence[{}]", single.given()),
                default: "()".to_owned(),
                kind: single.kind.map(|kind| (kind, Shape::List)),
                single: single.python,
            };
        }
        let is_choice = field.oneof_index.is_some();
        let default = if single.kind.is_some() || is_choice {
            "None"
        } else {
            &single.default
        };
        Field {
            python: match default {
                "None" => format!("{} | None", single.python),
                // Absent only where a server does not set it.
                _ if field.r#type() == Type::Enum => format!("{} | Literal[\"\"]", single.python),
                _ => single.python.clone(),
            },
            given: single.given(),
            default: default.to_owned(),
            kind: single.kind.map(|kind| (kind, Shape::One)),
            single: single.python,
        }
    }
}

/// How often a value stands in a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
    Map,
}

/// One value in Python.
struct Single {
    python: String,
    default: String,
    /// The name of the message's class, or of what converts it; `None`: it is as it is in JSON.
    kind: Option<String>,
}

impl Single {
    fn scalar(python: &str, default: &str) -> Self {
        Self {
            python: python.to_owned(),
            default: default.to_owned(),
            kind: None,
        }
    }

    fn message(full_name: &str) -> Self {
        let (python, kind) = match full_name {
            ".google.protobuf.Timestamp" => ("datetime", Some("Timestamp")),
            ".google.protobuf.Duration" => ("timedelta", Some("Duration")),
            ".google.protobuf.FieldMask" => ("str", None),
            ".emend.common.v1.ItemStatus" => ("Error", Some("ItemStatus")),
            other => (last(other), Some(last(other))),
        };
        Self {
            python: python.to_owned(),
            default: "\"\"".to_owned(),
            kind: kind.map(str::to_owned),
        }
    }

    /// What a call may give: of a message also its fields as a mapping.
    fn given(&self) -> String {
        match &self.kind {
            Some(kind) if !["Timestamp", "Duration", "ItemStatus"].contains(&&**kind) => {
                format!("{} | Mapping[str, Any]", self.python)
            }
            _ => self.python.clone(),
        }
    }
}

/// A field in Python.
struct Field {
    /// Its type in an answer.
    python: String,
    /// Its type in a call.
    given: String,
    default: String,
    /// What its values are made of, if they are not as in JSON.
    kind: Option<(String, Shape)>,
    /// The type of one value.
    single: String,
}

/// The comments of a file, by the paths of what they are about.
fn comments(file: &FileDescriptorProto) -> Comments {
    let locations = file.source_code_info.iter().flat_map(|info| &info.location);
    locations
        .filter_map(|location| {
            let text = location.leading_comments.as_deref()?.trim();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            Some((location.path.clone(), lines.join("\n")))
        })
        .collect()
}

fn last(full_name: &str) -> &str {
    full_name.rsplit('.').next().unwrap_or(full_name)
}

fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or_default()
}

/// A name that Python takes.
fn python_name(name: &str) -> String {
    if KEYWORDS.contains(&name) {
        format!("{name}_")
    } else {
        name.to_owned()
    }
}

/// A docstring, with its indentation.
fn docstring(text: &str, indent: &str) -> String {
    let text = text.replace('\\', "\\\\").replace("\"\"\"", "'''");
    let text = if text.is_empty() {
        "Nothing more is said of it.".to_owned()
    } else {
        text
    };
    let text = if text.ends_with('"') {
        format!("{text} ")
    } else {
        text
    };
    let indented = text.replace('\n', &format!("\n{indent}"));
    // No space stands alone in a line.
    let indented = indented.replace(&format!("\n{indent}\n"), "\n\n");
    format!("{indent}\"\"\"{indented}\"\"\"\n")
}

/// The names that two lists have in common must not differ in what they mean: methods of one client come from several services.
fn all_different<'n>(names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = BTreeSet::new();
    for name in names {
        ensure!(seen.insert(name), "two methods are named {name}");
    }
    Ok(())
}
