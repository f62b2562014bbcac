//! deploy/docker: what compose.yaml, the Dockerfile and the files beside them say about each other and about the
//! programs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use emend_tests::harness::process::binary;
use serde_json::Value;

use crate::objects::{list, text};

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
    assert_eq!(scraped, ["feedback:9464", "learning:9464"]);
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
        // As in the page on deploying: of feedback-svc, of ratings over HTTP, of learning-svc.
        let ports = match program {
            "feedback-svc" => "7401 7403",
            "learning-svc" => "7402",
            _ => "7401 7402 7403",
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
