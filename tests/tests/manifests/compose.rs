//! deploy/docker: what compose.yaml, the Dockerfile and the files beside them say about each other and about the
//! programs.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use emend_tests::harness::{
    deployment::Up,
    eventually,
    process::{Process, binary, free_port},
};
use serde_json::Value;

use crate::{
    objects::{list, text, texts},
    running::{ask_as, ends_well},
};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/docker")
}

fn read(file: &str) -> String {
    fs::read_to_string(directory().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn services(compose: &Value) -> &serde_json::Map<String, Value> {
    compose["services"].as_object().expect("services")
}

/// The settings of a program in its container, from the file that its command names.
async fn settings(program: &str, compose: &Value, service: &Value) -> BTreeMap<String, String> {
    let command: Vec<String> = list(service, "/command")
        .iter()
        .map(|word| word.as_str().expect("text").to_owned())
        .collect();
    let [config] = &command[..] else {
        panic!("{command:?}")
    };
    let target = config.strip_prefix("--config=").expect("a file");
    let mounted = list(service, "/configs")
        .iter()
        .find(|mounted| text(mounted, "/target") == target);
    let source = text(mounted.expect("it is mounted"), "/source");
    let file = text(&compose["configs"][&source], "/file");
    let output = Command::new(binary(program).await)
        .env_clear()
        .arg("--config")
        .arg(directory().join(file))
        .arg("--print-config")
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8(output.stdout).expect("text");
    let lines = printed
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split_once(" = "));
    lines
        .filter_map(|(key, rest)| {
            let value = rest.rsplit_once("  # ")?.0.trim().trim_matches('"');
            Some((key.to_owned(), value.to_owned()))
        })
        .collect()
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or("", |(_, port)| port)
}

#[tokio::test]
async fn the_programs_are_configured_for_each_other() {
    let compose = yaml("compose.yaml");
    let all = services(&compose);
    let [feedback, learning] = ["feedback", "learning"].map(|name| &all[name]);
    let of_feedback = settings("feedback-svc", &compose, feedback).await;
    let of_learning = settings("learning-svc", &compose, learning).await;
    let learning_port = port(&of_learning["listen"]);
    assert_eq!(of_feedback["learning-addr"], format!("learning:{learning_port}"));
    for (service, settings) in [(feedback, &of_feedback), (learning, &of_learning)] {
        let raters = settings
            .get("rating-http")
            .and_then(|binding| binding.split_once('='));
        let listens = [Some(&*settings["listen"]), raters.map(|(address, _)| address)];
        let own = listens.into_iter().flatten().map(port);
        let published: Vec<String> = own.map(|own| format!("127.0.0.1:{own}:{own}")).collect();
        assert_eq!(list(service, "/ports"), published, "on this machine alone");
        assert_eq!(settings["metrics-addr"], "0.0.0.0:9464", "where Prometheus looks");
        let url = &settings["database-url-file"];
        let mounted = list(service, "/configs")
            .iter()
            .find(|mounted| text(mounted, "/target") == *url);
        let source = text(mounted.expect("the URL's file is mounted"), "/source");
        let file = text(&compose["configs"][&source], "/file");
        let url = fs::read_to_string(directory().join(file)).unwrap();
        let (_, host) = url.rsplit_once('@').unwrap();
        assert!(all.contains_key(host.split(':').next().unwrap()), "{host}");
    }
}

/// The console is started by the variables of the compose file, but where it and the services are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_finds_the_services_and_answers_under_its_published_address() {
    let compose = yaml("compose.yaml");
    let all = services(&compose);
    let console = &all["console"];
    let environment: BTreeMap<String, String> = texts(console, "/environment");
    for (variable, service) in [
        ("EMEND_FEEDBACK_ADDR", "feedback"),
        ("EMEND_LEARNING_ADDR", "learning"),
    ] {
        let (host, port) = environment[variable].split_once(':').expect("HOST:PORT");
        assert_eq!(host, service);
        let published = format!("127.0.0.1:{port}:{port}");
        assert!(
            list(&all[service], "/ports").iter().any(|own| *own == published),
            "{variable}"
        );
    }
    assert_eq!(
        environment["EMEND_METRICS_ADDR"], "0.0.0.0:9464",
        "where Prometheus looks"
    );
    let own = port(&environment["EMEND_CONSOLE_ADDR"]);
    assert_eq!(list(console, "/ports"), [format!("127.0.0.1:{own}:{own}")]);
    let address = SocketAddr::from(([127, 0, 0, 1], free_port().await));
    let program = binary("emend").await;
    let mut command = tokio::process::Command::new(&program);
    command.args(list(console, "/command").iter().filter_map(Value::as_str));
    command.env_clear().envs(&environment);
    command.env("EMEND_CONSOLE_ADDR", address.to_string());
    command.env("EMEND_METRICS_ADDR", "127.0.0.1:0");
    let mut process = Process::spawn("emend", command);
    process
        .says("that it is ready", |line| {
            line.starts_with("emend: ready console=").then_some(())
        })
        .await;
    for (host, status) in [
        (format!("127.0.0.1:{own}"), "303"),
        (format!("localhost:{own}"), "303"),
        ("evil.example".to_owned(), "421"),
    ] {
        let answer = ask_as(address, "GET /", &host, "", "").await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{host}: {answer}");
    }
    let mut probe: Vec<&str> = list(console, "/healthcheck/test")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(
        probe.drain(..2).collect::<Vec<_>>(),
        ["CMD", "/usr/local/bin/emend"]
    );
    let probed = |at: SocketAddr| {
        let mut command = Command::new(&program);
        command.args(&probe).env("EMEND_CONSOLE_ADDR", at.to_string());
        command.output().expect("it runs").status.code()
    };
    assert_eq!(probed(address), Some(0));
    assert_eq!(
        probed(SocketAddr::from(([127, 0, 0, 1], free_port().await))),
        Some(1)
    );
    ends_well(process).await;
}

/// The edge is started by its file, but where it and learning-svc are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_edge_answers_under_its_published_address_and_is_probed_where_it_is_scraped() {
    let compose = yaml("compose.yaml");
    let all = services(&compose);
    let edge = &all["edge"];
    let file = fs::read_to_string(directory().join(text(&compose["configs"]["edge"], "/file"))).unwrap();
    let config = emend_edge::Config::parse(&file).unwrap();
    config.check().unwrap();
    let [emend_edge::Listen::Address(listens)] = config.listen[..] else {
        panic!("{:?}", config.listen);
    };
    let own = listens.port();
    assert_eq!(list(edge, "/ports"), [format!("127.0.0.1:{own}:{own}")]);
    let (host, port) = config.node.connection.addresses[0]
        .split_once(':')
        .expect("HOST:PORT");
    let published = format!("127.0.0.1:{port}:{port}");
    assert!(list(&all[host], "/ports").iter().any(|own| *own == published));
    let environment: BTreeMap<String, String> = texts(edge, "/environment");
    assert_eq!(
        environment["EMEND_METRICS_ADDR"], "0.0.0.0:9464",
        "where Prometheus looks"
    );

    let directory = tempfile::tempdir().unwrap();
    let (address, operators) = (
        SocketAddr::from(([127, 0, 0, 1], free_port().await)),
        SocketAddr::from(([127, 0, 0, 1], free_port().await)),
    );
    let file = file
        .replace(&listens.to_string(), &address.to_string())
        .replace("/tmp/emend", &directory.path().display().to_string())
        .replace("learning:7402", &format!("127.0.0.1:{}", free_port().await));
    let path = directory.path().join("edge.toml");
    fs::write(&path, file).unwrap();
    let program = binary("emend").await;
    let mut command = tokio::process::Command::new(&program);
    command.args(["edge", &format!("--config={}", path.display())]);
    command.env("EMEND_METRICS_ADDR", operators.to_string());
    let mut process = Process::spawn("emend", command);
    process
        .says("that it is ready", |line| {
            line.starts_with("emend: ready edge=").then_some(())
        })
        .await;
    for (host, status) in [
        (format!("127.0.0.1:{own}"), "200"),
        (format!("edge:{own}"), "200"),
        ("evil.example".to_owned(), "403"),
    ] {
        let answer = ask_as(address, "GET /v1/status", &host, "", "").await.unwrap();
        assert_eq!(answer.split(' ').nth(1), Some(status), "{host}: {answer}");
    }
    let probe: Vec<&str> = list(edge, "/healthcheck/test")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(probe[..2], ["CMD", "/usr/local/bin/emend"]);
    let mut command = Command::new(&program);
    command
        .args(&probe[2..])
        .env("EMEND_METRICS_ADDR", operators.to_string());
    // It has no state yet.
    let probed = command.output().expect("it runs");
    assert_eq!(probed.status.code(), Some(1), "{probed:?}");
    assert!(
        String::from_utf8_lossy(&probed.stdout).contains("state"),
        "{probed:?}"
    );
    ends_well(process).await;
}

/// The tools for assistants are started as the compose file says, but where they and the services are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assistants_are_served_under_the_published_address_once_both_services_answer() {
    let compose = yaml("compose.yaml");
    let all = services(&compose);
    let mcp = &all["mcp"];
    let environment: BTreeMap<String, String> = texts(mcp, "/environment");
    for (variable, service) in [
        ("EMEND_FEEDBACK_ADDR", "feedback"),
        ("EMEND_LEARNING_ADDR", "learning"),
    ] {
        let (host, port) = environment[variable].split_once(':').expect("HOST:PORT");
        assert_eq!(host, service);
        let published = format!("127.0.0.1:{port}:{port}");
        assert!(
            list(&all[service], "/ports").iter().any(|own| *own == published),
            "{variable}"
        );
    }
    assert_eq!(
        environment["EMEND_METRICS_ADDR"], "0.0.0.0:9464",
        "where Prometheus looks"
    );
    let mut arguments: Vec<String> = list(mcp, "/command").iter().map(|word| text(word, "")).collect();
    let listens = arguments
        .iter()
        .position(|word| word.starts_with("--http="))
        .expect("where it listens");
    let own = port(&arguments[listens]).to_owned();
    assert_eq!(list(mcp, "/ports"), [format!("127.0.0.1:{own}:{own}")]);
    let (address, operators) = (
        SocketAddr::from(([127, 0, 0, 1], free_port().await)),
        SocketAddr::from(([127, 0, 0, 1], free_port().await)),
    );
    arguments[listens] = format!("--http={address}");
    let up = Up::start().await;
    let program = binary("emend").await;
    let probe: Vec<String> = list(mcp, "/healthcheck/test")
        .iter()
        .map(|word| text(word, ""))
        .collect();
    assert_eq!(probe[..2], ["CMD", "/usr/local/bin/emend"]);
    let probed = || {
        let mut command = Command::new(&program);
        command
            .args(&probe[2..])
            .env("EMEND_METRICS_ADDR", operators.to_string());
        command.output().expect("it runs").status.code()
    };
    for (learning, expected) in [
        (format!("127.0.0.1:{}", free_port().await), Some(1)),
        (up.learning.to_string(), Some(0)),
    ] {
        let mut command = tokio::process::Command::new(&program);
        command.args(&arguments).env_clear().envs(&environment);
        command
            .env("EMEND_FEEDBACK_ADDR", up.feedback.to_string())
            .env("EMEND_LEARNING_ADDR", learning)
            .env("EMEND_METRICS_ADDR", operators.to_string());
        let mut process = Process::spawn("emend", command);
        process
            .says("that it is ready", |line| {
                line.starts_with("emend: ready mcp=").then_some(())
            })
            .await;
        eventually("that the probe passes where it should", async || {
            let code = probed();
            if code == expected {
                Ok(())
            } else {
                Err(format!("{code:?}"))
            }
        })
        .await;
        for (host, is_refused) in [
            (format!("127.0.0.1:{own}"), false),
            ("evil.example".to_owned(), true),
        ] {
            let answer = ask_as(address, "GET /mcp", &host, "", "").await.unwrap();
            let status = answer.split(' ').nth(1);
            assert_eq!(status == Some("403"), is_refused, "{host}: {answer}");
        }
        ends_well(process).await;
    }
}

#[test]
fn mounted_files_exist_and_ports_are_on_loopback_only() {
    let compose = yaml("compose.yaml");
    let volumes = compose["volumes"].as_object().unwrap();
    for (name, service) in services(&compose) {
        for volume in list(service, "/volumes") {
            let source = volume.as_str().unwrap().split(':').next().unwrap();
            let there = volumes.contains_key(source) || directory().join(source).exists();
            assert!(there, "{name}: {source}");
        }
        for port in list(service, "/ports") {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port}");
        }
        let image = text(service, "/image");
        let (_, tag) = image
            .rsplit_once(':')
            .unwrap_or_else(|| panic!("{name}: {image} has no tag"));
        assert!(tag.contains(|c: char| c.is_ascii_digit()), "{name}: {image}");
    }
    for (name, config) in compose["configs"].as_object().unwrap() {
        // Compose can only put files into read-only containers.
        let file = text(config, "/file");
        assert!(directory().join(&file).is_file(), "{name}: {file:?}");
    }
    let scraped = list(
        &yaml("prometheus.yaml"),
        "/scrape_configs/0/static_configs/0/targets",
    )
    .to_vec();
    let scraped: Vec<&str> = scraped.iter().map(|target| target.as_str().unwrap()).collect();
    assert_eq!(
        scraped,
        [
            "feedback:9464",
            "learning:9464",
            "console:9464",
            "edge:9464",
            "mcp:9464"
        ]
    );
    let collector = text(&yaml("collector.yaml"), "/receivers/otlp/protocols/grpc/endpoint");
    let told = text(
        &services(&compose)["feedback"],
        "/environment/OTEL_EXPORTER_OTLP_ENDPOINT",
    );
    assert_eq!(told, format!("http://collector:{}", port(&collector)));
}

#[test]
fn the_dockerfile_builds_the_programs_and_exposes_their_ports() {
    let dockerfile = read("Dockerfile");
    let mut images: Vec<&str> = Vec::new();
    let mut stages: Vec<&str> = Vec::new();
    for line in dockerfile.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match &words[..] {
            // Set by the builder, and what only labels say.
            ["ARG", "TARGETARCH" | "SOURCE" | "VERSION" | "REVISION"] => {}
            ["ARG", image] => {
                let (name, image) = image.split_once('=').expect("a base image");
                let (tagged, digest) = image.split_once("@sha256:").expect("pinned by digest");
                let tag = tagged.rsplit_once(':').map_or("", |(_, tag)| tag);
                assert!(!["", "latest"].contains(&tag), "{line}");
                assert!(
                    digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
                    "{line}"
                );
                images.push(name);
            }
            ["FROM", platform @ .., from, "AS", stage] => {
                // Compilation runs on the build platform, for whatever platform the programs are to run on.
                assert!(matches!(platform, [] | ["--platform=${BUILDPLATFORM}"]), "{line}");
                // By argument, so that a build may choose the image by digest.
                let named = from.strip_prefix("${").and_then(|from| from.strip_suffix('}'));
                let known = named.map_or(stages.contains(from), |image| images.contains(&image));
                assert!(known, "{line}");
                stages.push(stage);
            }
            ["COPY", options @ .., _, _] => {
                let from = options.iter().find_map(|option| option.strip_prefix("--from="));
                assert!(from.is_none_or(|from| stages.contains(&from)), "{line}");
            }
            _ => {}
        }
    }
    for program in ["emend", "feedback-svc", "learning-svc"] {
        let (_, stage) = dockerfile
            .split_once(&format!("\nFROM runtime AS {program}\n"))
            .unwrap();
        let stage = stage.split("\nFROM ").next().unwrap();
        assert!(stage.contains(&format!(
            "COPY --from=build /out/{program} /usr/local/bin/{program}"
        )));
        // As in the page on deploying: of the console, of feedback-svc, of learning-svc, of ratings over HTTP, of the edge, of the tools for
        // assistants.
        let ports = match program {
            "feedback-svc" => "7401 7403",
            "learning-svc" => "7402",
            _ => "7400 7401 7402 7403 7420 7421 7430",
        };
        assert!(stage.contains(&format!("\nEXPOSE {ports}\n")), "{program}");
        assert!(stage.contains(&format!("ENTRYPOINT [\"/usr/local/bin/{program}\"]")));
        let stripped = dockerfile.lines().find(|line| line.contains("for program in"));
        assert!(
            stripped.is_some_and(|line| line.split([' ', ';']).any(|word| word == program)),
            "{program}"
        );
    }
    let packages: Vec<&str> = dockerfile
        .split("--package ")
        .skip(1)
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    assert_eq!(packages.len() % 3, 0);
    for package in packages {
        let places = ["crates", "services"].map(|place| format!("../{place}/{package}/Cargo.toml"));
        let there = places
            .iter()
            .any(|place| Path::new(env!("CARGO_MANIFEST_DIR")).join(place).is_file());
        assert!(there, "{package}");
    }
}

#[test]
fn the_context_of_a_build_has_every_member_of_the_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, members) = manifest.split_once("members = [").unwrap();
    let members = members.split(']').next().unwrap();
    let ignored = read("Dockerfile.dockerignore");
    let taken: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('!'))
        .collect();
    for member in members
        .split(',')
        .map(|member| member.trim().trim_matches('"'))
        .filter(|member| !member.is_empty())
    {
        let top = member.split('/').next().unwrap();
        assert!(taken.contains(&top), "{member}");
    }
    for path in taken {
        assert!(root.join(path).exists(), "{path}");
    }
}
