//! Whether what was packed does what it promises, out of the archive and out of an image, whose layers are unpacked to be
//! its root. A program that starts may still lack a part: nothing but asking for it tells.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::process::{self, Workspace};

/// How many seconds a program may take to do what it is asked.
const PATIENCE: &str = "60";
/// Makes the namespaces in which an image is tried.
const UNSHARE: [&str; 4] = ["unshare", "--map-root-user", "--mount", "--net"];

/// What serves a console, and what is said before its address.
const CONSOLES: [(&[&str], &str); 2] = [
    (
        &[
            "up",
            "--ephemeral",
            "--feedback-addr=127.0.0.1:0",
            "--learning-addr=127.0.0.1:0",
            "--console-addr=127.0.0.1:0",
        ],
        " console=http://",
    ),
    (
        &["demo", "--console", "--console-addr=127.0.0.1:0"],
        "The console is at http://",
    ),
];

/// Ends a program that would go on, when this is dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // `timeout` hands its own signal on to what it runs; a kill it could not.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// The answer to a GET.
fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A header of an answer.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = answer.lines().filter_map(|line| line.split_once(": "));
    let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim_end())
}

/// What the programs promise.
pub(super) struct Promises {
    version: String,
    /// The tools of `emend mcp`.
    tools: Vec<String>,
}

/// A program, and the words that start it.
struct Program<'a> {
    workspace: &'a Workspace,
    name: String,
    words: Vec<OsString>,
    directory: &'a Path,
}

impl Promises {
    /// Those of this version, with the tools that docs/mcp.md names.
    pub(super) fn of(workspace: &Workspace, version: &str) -> Result<Self> {
        let tools = tools(&fs::read_to_string(workspace.path("docs/mcp.md"))?);
        ensure!(!tools.is_empty(), "docs/mcp.md names no tools");
        Ok(Self {
            version: version.to_owned(),
            tools,
        })
    }

    /// Tries an unpacked program; it runs in `scratch`.
    pub(super) fn are_kept_by(&self, workspace: &Workspace, program: &Path, scratch: &Path) -> Result<()> {
        self.kept(&Program::unpacked(workspace, program, scratch))
    }

    /// Tries the program of an image. Where namespaces are not allowed it cannot be tried, which is said.
    pub(super) fn are_kept_in(&self, workspace: &Workspace, archive: &Path, scratch: &Path) -> Result<()> {
        let [unshare, may @ ..] = UNSHARE;
        if process::output(workspace.command(unshare).args(may).arg("true")).is_err() {
            ensure!(!process::in_ci(), "unshare may not make namespaces here");
            eprintln!(
                "{}: not tried: unshare may not make namespaces",
                archive.display()
            );
            return Ok(());
        }
        let (root, program) = unpacked(workspace, archive, scratch)?;
        let mut words: Vec<OsString> = UNSHARE.map(OsString::from).into();
        words.push(format!("--root={}", root.display()).into());
        words.push(program.clone().into());
        self.kept(&Program {
            workspace,
            name: file_name(&program),
            words,
            directory: scratch,
        })
    }

    fn kept(&self, program: &Program<'_>) -> Result<()> {
        let name = &program.name;
        let version = process::output(&mut program.asked(&["--version"]))?;
        let expected = format!("{name} {}", self.version);
        ensure!(
            version.trim() == expected,
            "{name} --version says {version:?}, not {expected:?}"
        );
        let help = process::output(&mut program.asked(&["--help"]))?;
        ensure!(
            help.contains(&format!("Usage: {name} ")),
            "{name} --help says {help:?}"
        );
        if name == "emend" {
            let help = process::output(&mut program.asked(&["console", "--help"]))?;
            ensure!(
                help.contains("Usage: emend console "),
                "{name} console --help says {help:?}"
            );
            let listed = program.tools()?;
            ensure!(
                listed == self.tools,
                "{name} mcp lists the tools {listed:?}, docs/mcp.md has {:?}",
                self.tools
            );
        } else {
            let checked = process::output(&mut program.asked(&["--check-config"]))?;
            ensure!(
                checked.lines().next() == Some("ok"),
                "{name} --check-config says {checked:?}"
            );
        }
        Ok(())
    }
}

/// Has an unpacked `emend` serve its console, which it does on loopback alone.
pub(super) fn console_is_served(workspace: &Workspace, program: &Path, scratch: &Path) -> Result<()> {
    Program::unpacked(workspace, program, scratch).serves_its_console()
}

impl<'a> Program<'a> {
    /// One that runs in `scratch`.
    fn unpacked(workspace: &'a Workspace, program: &Path, scratch: &'a Path) -> Self {
        Self {
            workspace,
            name: file_name(program),
            words: vec![program.into()],
            directory: scratch,
        }
    }
    /// The program with these arguments, which is ended if it takes too long.
    fn asked(&self, arguments: &[&str]) -> Command {
        let mut command = self.workspace.command("timeout");
        command.arg(PATIENCE).args(&self.words).args(arguments);
        command.current_dir(self.directory).env_clear();
        command
    }

    /// Starts both services and the demonstration with the console, and asks for a page of each and for what is embedded.
    fn serves_its_console(&self) -> Result<()> {
        for (arguments, says) in CONSOLES {
            let mut asked = self.asked(arguments);
            let mut ended = Ended(asked.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
            // Kept open: what it goes on to say must not end it.
            let mut lines = BufReader::new(ended.0.stdout.take().context("its standard output")?).lines();
            let mut address = None;
            for line in lines.by_ref() {
                if let Some((_, rest)) = line?.split_once(says) {
                    address = rest.split(' ').next().map(ToOwned::to_owned);
                    break;
                }
            }
            let address = address.with_context(|| format!("emend {arguments:?} does not say {says:?}"))?;
            let home = get(&address, "/")?;
            let page = header(&home, "location").context("the console's home leads nowhere")?;
            let page = get(&address, page)?;
            ensure!(page.contains("</html>"), "emend {arguments:?} answers {page:?}");
            let embedded: Vec<&str> = page
                .split('"')
                .filter(|text| text.starts_with("/assets/"))
                .collect();
            ensure!(
                embedded.len() >= 4,
                "emend {arguments:?} has the assets {embedded:?}"
            );
            for asset in embedded {
                let answer = get(&address, asset)?;
                ensure!(answer.starts_with("HTTP/1.1 200 "), "{asset}: {answer:?}");
            }
        }
        Ok(())
    }

    /// The tools that `emend mcp` lists, sorted.
    fn tools(&self) -> Result<Vec<String>> {
        let mut asked = self.asked(&["mcp"]);
        let mut assistant = asked.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut input = assistant.stdin.take().context("its standard input")?;
        let lines = BufReader::new(assistant.stdout.take().context("its standard output")?).lines();
        for message in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "xtask", "version": "1"},
            }}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        ] {
            writeln!(input, "{message}").context("emend mcp does not read")?;
        }
        let mut listed = None;
        for line in lines {
            let answer: Value = serde_json::from_str(&line?)?;
            if answer["id"] == 2 {
                listed = Some(answer);
                break;
            }
        }
        drop(input);
        let ended = assistant.wait()?;
        ensure!(ended.success(), "emend mcp ends with {ended}");
        let listed = listed.context("emend mcp lists no tools")?;
        let tools = listed["result"]["tools"].as_array();
        let tools = tools.with_context(|| format!("emend mcp answers {listed}"))?;
        let mut names = Vec::new();
        for tool in tools {
            names.push(tool["name"].as_str().context("a tool's name")?.to_owned());
        }
        names.sort();
        Ok(names)
    }
}

/// The tools that a page names in its table of tools, sorted.
fn tools(page: &str) -> Vec<String> {
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| tool | does |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split(','));
    let mut tools: Vec<String> = names
        .map(|name| name.trim().trim_matches('`').to_owned())
        .collect();
    tools.sort();
    tools
}

fn file_name(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Unpacks an image's layers; returns its root, and its program as seen from there.
fn unpacked(workspace: &Workspace, archive: &Path, scratch: &Path) -> Result<(PathBuf, PathBuf)> {
    let (layout, root) = (scratch.join("layout"), scratch.join("root"));
    for directory in [&layout, &root] {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
    }
    unpack(workspace, archive, &layout)?;
    let read = |path: &Path| -> Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
    let blob = |descriptor: &Value| -> Result<_> {
        let digest = descriptor["digest"].as_str().context("a digest")?;
        Ok(layout.join("blobs").join(digest.replace(':', "/")))
    };
    let index = read(&layout.join("index.json"))?;
    let manifest = read(&blob(&index["manifests"][0])?)?;
    for layer in manifest["layers"].as_array().context("layers")? {
        unpack(workspace, &blob(layer)?, &root)?;
    }
    let config = read(&blob(&manifest["config"])?)?;
    let program = config["config"]["Entrypoint"][0].as_str().context("ENTRYPOINT")?;
    Ok((root, program.into()))
}

fn unpack(workspace: &Workspace, archive: &Path, directory: &Path) -> Result<()> {
    process::run(
        workspace
            .command("tar")
            .arg("--extract")
            .arg("--file")
            .arg(archive)
            .arg("--directory")
            .arg(directory),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_those_of_the_table_and_no_others() {
        let page = "| tool | call |\n|---|---|\n| `no` | x |\n\n| tool | does | arguments |\n|---|---|---|\n\
                    | `c` | x | `y` |\n| `b`, `a` | x | |\n\nno `d`\n| `e` | |\n";
        assert_eq!(tools(page), ["a", "b", "c"]);
        assert!(tools("# Nothing").is_empty());
    }

    /// A stand-in for a packed program.
    fn program(directory: &Path, name: &str, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;

        let path = directory.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path
    }

    #[test]
    fn a_program_that_lacks_what_it_promises_is_told_apart_from_one_that_has_it() {
        const START: &str = "case \"$1\" in --version) echo \"${0##*/} 1.2.3\" ;; --help) echo \"Usage: ${0##*/} [OPTIONS]\" ;; \
             console) echo \"Usage: emend console [OPTIONS]\" ;;";
        const MCP: &str = "mcp) read a; read b; read c; echo '{\"id\":1}'; \
                           echo '{\"id\":2,\"result\":{\"tools\":[{\"name\":\"b\"},{\"name\":\"a\"}]}}' ;; esac";
        let workspace = Workspace::locate();
        let directory = workspace
            .target("tmp")
            .join(format!("tried-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let promises = Promises {
            version: "1.2.3".to_owned(),
            tools: vec!["a".to_owned(), "b".to_owned()],
        };
        let tried = |name: &str, script: String| {
            let program = program(&directory, name, &script);
            promises
                .are_kept_by(&workspace, &program, &directory)
                .map_err(|error| error.to_string())
        };
        assert_eq!(tried("emend", format!("{START} {MCP}")), Ok(()));
        assert_eq!(
            tried("feedback-svc", format!("{START} --check-config) echo ok ;; esac")),
            Ok(())
        );
        for (name, script, told) in [
            ("emend", format!("{START} mcp) exit 2 ;; esac"), "emend mcp"),
            (
                "emend",
                format!("{START} {}", MCP.replace("\"a\"", "\"z\"")),
                "docs/mcp.md has",
            ),
            (
                "emend",
                format!("{} {MCP}", START.replace("emend console", "emend")),
                "emend console --help",
            ),
            (
                "learning-svc",
                format!("{START} *) exit 2 ;; esac"),
                "--check-config",
            ),
            ("emend", format!("echo emend 1.2.4 # {START}"), "--version says"),
        ] {
            let refused = tried(name, script).expect_err(told);
            assert!(refused.contains(told), "{refused}");
        }
        fs::remove_dir_all(&directory).expect("it is there");
    }
}
