//! How an image is run, as its stage in deploy/docker/Dockerfile says: so an image is the same whichever of the two makes
//! it, except for the base.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use parse_dockerfile::{
    Command, Dockerfile, HealthcheckArguments, HealthcheckInstruction, Instruction, JsonOrStringArray,
    UnescapedString,
};
use serde_json::{Map, Value, json};

use super::runtime::CERTIFICATES;

/// What the base image of the Dockerfile sets.
const BASE: [(&str, &str); 2] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("SSL_CERT_FILE", CERTIFICATES),
];

/// A stage from which an image is made.
#[derive(Default)]
pub(super) struct Stage {
    /// Whom the program runs as, `uid:gid`.
    pub(super) user: String,
    /// The program and what it is always given.
    pub(super) entrypoint: Vec<String>,
    /// Directories that outlive a container.
    pub(super) volumes: Vec<String>,
    pub(super) labels: BTreeMap<String, String>,
    command: Vec<String>,
    directory: String,
    environment: Vec<(String, String)>,
    ports: Vec<String>,
    health: Option<Value>,
}

impl Stage {
    /// Reads a stage and those that it is made from. `arguments` are the values of build arguments; labels whose value is
    /// empty are left out.
    pub(super) fn read(text: &str, name: &str, arguments: &BTreeMap<&str, String>) -> Result<Self> {
        let dockerfile = parse_dockerfile::parse(text)?;
        let mut stage = Self::default();
        for (name, value) in BASE {
            stage.environment.push((name.to_owned(), value.to_owned()));
        }
        stage.follow(&dockerfile, name, arguments)?;
        stage.labels.retain(|_, value| !value.is_empty());
        ensure!(!stage.entrypoint.is_empty(), "{name} has no ENTRYPOINT");
        Ok(stage)
    }

    fn follow(
        &mut self,
        dockerfile: &Dockerfile<'_>,
        name: &str,
        arguments: &BTreeMap<&str, String>,
    ) -> Result<()> {
        let stage = dockerfile
            .stage(name)
            .with_context(|| format!("there is no stage {name}"))?;
        let from = &stage.from.image.value;
        if dockerfile.stage(from).is_some() {
            self.follow(dockerfile, from, arguments)?;
        }
        for instruction in stage.instructions {
            self.apply(instruction, arguments)
                .with_context(|| format!("stage {name}"))?;
        }
        Ok(())
    }

    fn apply(&mut self, instruction: &Instruction<'_>, arguments: &BTreeMap<&str, String>) -> Result<()> {
        match instruction {
            // What is copied are the program, its licence and its directories, which a layer has.
            Instruction::Arg(_) | Instruction::Copy(_) => {}
            Instruction::User(user) => self.user = user.arguments.value.clone().into_owned(),
            Instruction::Workdir(directory) => {
                self.directory = directory.arguments.value.clone().into_owned();
            }
            Instruction::Label(label) => self.labels.extend(pairs(&label.arguments, arguments)?),
            Instruction::Env(env) => self.environment.extend(pairs(&env.arguments, arguments)?),
            Instruction::Expose(expose) => self.ports.extend(strings(&expose.arguments)),
            Instruction::Volume(volume) => match &volume.arguments {
                JsonOrStringArray::Json(paths) => self.volumes.extend(strings(&paths.value)),
                JsonOrStringArray::String(paths) => self.volumes.extend(strings(paths)),
            },
            Instruction::Healthcheck(check) => self.health = health(check)?,
            Instruction::Entrypoint(entrypoint) => self.entrypoint = words(&entrypoint.arguments)?,
            Instruction::Cmd(command) => self.command = words(&command.arguments)?,
            other => bail!("only an engine can do this: {other:?}"),
        }
        Ok(())
    }

    /// The object `config` of an image's configuration.
    pub(super) fn config(&self) -> Value {
        let set = |names: &[String]| -> Map<String, Value> {
            names.iter().map(|name| (name.clone(), json!({}))).collect()
        };
        let environment: Vec<String> = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let ports: Vec<String> = self.ports.iter().map(|port| format!("{port}/tcp")).collect();
        let mut config = json!({
            "User": self.user,
            "ExposedPorts": set(&ports),
            "Env": environment,
            "Entrypoint": self.entrypoint,
            "WorkingDir": self.directory,
            "Labels": self.labels,
        });
        if !self.command.is_empty() {
            config["Cmd"] = json!(self.command);
        }
        if !self.volumes.is_empty() {
            config["Volumes"] = json!(set(&self.volumes));
        }
        if let Some(health) = &self.health {
            config["Healthcheck"] = health.clone();
        }
        config
    }
}

fn strings(list: &[UnescapedString<'_>]) -> Vec<String> {
    list.iter().map(|one| one.value.clone().into_owned()).collect()
}

/// A command in the form that needs no shell, which no image here has.
fn words(command: &Command<'_>) -> Result<Vec<String>> {
    match command {
        Command::Exec(words) => Ok(strings(&words.value)),
        other => bail!("{other:?} is not a JSON array"),
    }
}

/// `name=value` pairs, quoted or not, with arguments filled in.
fn pairs(text: &UnescapedString<'_>, arguments: &BTreeMap<&str, String>) -> Result<Vec<(String, String)>> {
    let words = shlex::split(&text.value).with_context(|| format!("quotes in {}", text.value))?;
    let pair = |word: &String| {
        let (name, value) = word
            .split_once('=')
            .with_context(|| format!("{word} is no pair"))?;
        let mut value = value.to_owned();
        for (argument, given) in arguments {
            value = value.replace(&format!("${{{argument}}}"), given);
        }
        ensure!(!value.contains('$'), "{name} needs an argument: {value}");
        Ok((name.to_owned(), value))
    };
    words.iter().map(pair).collect()
}

/// A health check as Docker's engine and Podman read it from configurations; OCI's specification has none.
fn health(check: &HealthcheckInstruction<'_>) -> Result<Option<Value>> {
    let HealthcheckArguments::Cmd { arguments, .. } = &check.arguments else {
        return Ok(None);
    };
    let mut test = vec!["CMD".to_owned()];
    test.extend(words(arguments)?);
    let mut health = json!({ "Test": test });
    for option in &check.options {
        let value = option.value.as_ref().map_or("", |value| &*value.value);
        let key = match &*option.name.value {
            "interval" => "Interval",
            "timeout" => "Timeout",
            "start-period" => "StartPeriod",
            other => bail!("--{other} of a HEALTHCHECK"),
        };
        health[key] = nanoseconds(value)?.into();
    }
    Ok(Some(health))
}

fn nanoseconds(duration: &str) -> Result<u64> {
    let (number, unit) = duration.split_at(duration.len().saturating_sub(1));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        _ => bail!("{duration:?} is not a number of seconds (s) or minutes (m)"),
    };
    let number: u64 = number.parse().with_context(|| duration.to_owned())?;
    Ok(number * seconds * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{super::PROGRAMS, Stage};

    const DOCKERFILE: &str = include_str!("../../../deploy/docker/Dockerfile");

    fn arguments() -> BTreeMap<&'static str, String> {
        let given = [("SOURCE", ""), ("VERSION", "1.2.3"), ("REVISION", "abc")];
        BTreeMap::from(given.map(|(name, value)| (name, value.to_owned())))
    }

    #[test]
    fn every_program_is_run_as_its_stage_says() {
        for (program, _) in PROGRAMS {
            let stage = Stage::read(DOCKERFILE, program, &arguments()).unwrap();
            let config = stage.config();
            assert_eq!(config["User"], "65532:65532");
            assert_eq!(config["WorkingDir"], "/");
            assert_eq!(config["Entrypoint"], json!([format!("/usr/local/bin/{program}")]));
            let labels = &config["Labels"];
            for (label, value) in [
                ("title", program),
                ("version", "1.2.3"),
                ("revision", "abc"),
                ("licenses", "Apache-2.0"),
            ] {
                assert_eq!(labels[format!("org.opencontainers.image.{label}")], value);
            }
            assert_eq!(labels.get("org.opencontainers.image.source"), None, "it is empty");
        }
    }

    #[test]
    fn the_image_of_both_services_has_all_that_its_stage_has() {
        let config = Stage::read(DOCKERFILE, "emend", &arguments()).unwrap().config();
        assert_eq!(config["Cmd"], json!(["up"]));
        assert_eq!(config["Volumes"], json!({"/var/lib/emend": {}}));
        assert_eq!(
            config["ExposedPorts"],
            json!({
                "7400/tcp": {}, "7401/tcp": {}, "7402/tcp": {}, "7403/tcp": {}, "7420/tcp": {}, "7421/tcp": {},
                "7430/tcp": {},
            })
        );
        assert_eq!(config["Env"][2], "EMEND_DATA_DIR=/var/lib/emend");
        assert_eq!(
            config["Healthcheck"],
            json!({
                "Test": ["CMD", "/usr/local/bin/emend", "up", "--probe"],
                "Interval": 5_000_000_000_u64, "Timeout": 5_000_000_000_u64, "StartPeriod": 300_000_000_000_u64,
            })
        );
    }

    #[test]
    fn what_only_an_engine_can_do_is_refused() {
        for (line, problem) in [
            ("RUN true", "only an engine"),
            ("CMD true", "JSON array"),
            ("ENV A=$B", "needs an argument"),
            ("HEALTHCHECK --interval=5h CMD [\"a\"]", "5h"),
        ] {
            let text = format!("FROM base AS one\nENTRYPOINT [\"/one\"]\n{line}\n");
            let error = Stage::read(&text, "one", &BTreeMap::new()).err().unwrap();
            assert!(format!("{error:#}").contains(problem), "{error:#}");
        }
    }
}
