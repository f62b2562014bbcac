//! Prompts as files of a directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use emend_client::prompt_files::{PromptFile, file_name, names_in, replace, target_of};
use emend_core::{Prompt, ratings::target_name};
use emend_proto::learning::v1::PromptVersion;
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::{
    Current, Decision, Label, MAX_BYTES, current, diff, prompt_of, pulled::Pulled, put_request,
    targets::Targets, versions, warn,
};
use crate::{
    context::Context,
    failure::{Failure, Result},
    output::Output,
    transfer::source,
};

#[derive(Debug, clap::Args)]
pub(super) struct PullArgs {
    /// The directory; made if there is none
    directory: PathBuf,
    #[command(flatten)]
    label: Label,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Also replace files that say what no version says: changes that were not pushed are lost
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct PushArgs {
    /// The directory
    directory: PathBuf,
    #[command(flatten)]
    label: Label,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Also set files over what others set since the pull
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    decision: Decision,
}

/// Writes each file that does not say what is current. Other files stay as they are.
pub(super) async fn pull(args: PullArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let directory = &args.directory;
    let prompts = current(context, Some(&args.label.label)).await?;
    let files = files_of(directory)?;
    let lost = if args.force {
        Vec::new()
    } else {
        changed(directory, &files, &prompts, context).await?
    };
    if !args.dry_run {
        fs::create_dir_all(directory).map_err(|error| named(directory, &error))?;
    }
    let mut pulled = Pulled::read(directory, &args.label.label, context)?;
    let mut left: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
    let mut unchanged = 0;
    for Current { target, prompt, .. } in &prompts {
        let (name, is_there) = file_for(target, &files);
        left.retain(|known| *known != name);
        if lost.contains(&name) {
            continue;
        }
        let held = is_there.then(|| read(directory, &name)).transpose()?;
        // What says the same stays as people wrote it.
        let says = |file: &PromptFile| file.prompt().is_ok_and(|held| held.says_the_same(prompt));
        let is_same = held
            .as_deref()
            .is_some_and(|held| PromptFile::parse(held).as_ref().is_ok_and(says));
        let action = match (is_same, is_there) {
            (true, _) => "unchanged",
            (false, true) => "updated",
            (false, false) => "created",
        };
        if is_same {
            unchanged += 1;
        } else if !args.dry_run {
            let contents = PromptFile::of(target, prompt).to_string();
            replace(directory, &name, &contents).map_err(|error| named(&directory.join(&name), &error))?;
        }
        pulled.note(target, prompt.version);
        report(&name, target, action, prompt.version, output, || {
            (!is_same).then(|| {
                let done = if args.dry_run {
                    format!("would be {action}")
                } else {
                    action.to_owned()
                };
                format!("{name}: {done}, version {}", prompt.version)
            })
        })?;
    }
    if !args.dry_run {
        pulled.write()?;
    }
    if !output.is_json() {
        for name in &left {
            output.line(&format!(
                "{name}: left as it is, not a current prompt under {}",
                args.label.label
            ))?;
        }
        output.line(&format!("{unchanged} unchanged"))?;
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "{} would lose changes that were not pushed: {}\n  push them, or pull with --force; other files are as they should be",
        directory.display(),
        lost.join(", ")
    )))
}

/// The files of a directory that may be prompts', each with the target that its name says.
fn files_of(directory: &Path) -> Result<Vec<(String, Option<String>)>> {
    let names = names_in(directory).map_err(|error| named(directory, &error))?;
    let with_target = names.into_iter().map(|name| {
        let target = target_of(&name).map(|target| target_name(&target).to_owned());
        (name, target)
    });
    Ok(with_target.collect())
}

/// The name of a target's file in a directory with these, however it is spelt there, and whether there is one.
fn file_for(target: &str, files: &[(String, Option<String>)]) -> (String, bool) {
    let own = file_name(target);
    if files.iter().any(|(name, _)| *name == own) {
        return (own, true);
    }
    let other = files
        .iter()
        .find(|(_, named)| named.as_ref().is_some_and(|named| named == target));
    other.map_or((own, false), |(name, _)| (name.clone(), true))
}

/// The files that say what no version of their prompt says: a pull leaves them as they are.
async fn changed(
    directory: &Path,
    files: &[(String, Option<String>)],
    prompts: &[Current],
    context: &Context,
) -> Result<Vec<String>> {
    let mut changed = Vec::new();
    for Current { target, prompt, .. } in prompts {
        let (name, is_there) = file_for(target, files);
        if !is_there {
            continue;
        }
        let held = read(directory, &name)?;
        let held = PromptFile::parse(&held).and_then(|file| file.prompt()).ok();
        let says = |version: &Prompt| held.as_ref().is_some_and(|held| held.says_the_same(version));
        if says(prompt) {
            continue;
        }
        let (all, _) = versions(context, target, 0).await?;
        let prompt = |version: &PromptVersion| prompt_of(version.candidate.as_ref()?.value.as_ref());
        if !all.iter().filter_map(prompt).any(|version| says(&version)) {
            changed.push(name);
        }
    }
    Ok(changed)
}

/// A file to push, and what is current.
struct Pushed {
    name: String,
    target: String,
    prompt: Prompt,
    current: Option<Current>,
}

/// Sets what differs. A file that is no prompt's, that the service refuses, or that others have set something else for since it was
/// pulled, is named at the end, and the others go on.
pub(super) async fn push(args: PushArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let label = &args.label.label;
    let mut unchanged = 0;
    let (files, mut wrong) = pushed(&args.directory, label, context).await?;
    let mut pulled = Pulled::read(&args.directory, label, context)?;
    let mut overtaken = Vec::new();
    for pushed in files {
        let Pushed {
            name,
            target,
            prompt,
            current,
        } = &pushed;
        let before = current.as_ref().map(|current| &current.prompt);
        if let Some(before) = before.filter(|before| before.says_the_same(prompt)) {
            unchanged += 1;
            pulled.note(target, before.version);
            report(name, target, "unchanged", before.version, output, || None)?;
            continue;
        }
        let now = before.map_or(0, |before| before.version);
        if pulled.version(target).is_some_and(|base| base != now) && !args.force {
            overtaken.push(name.clone());
            report(name, target, "conflict", now, output, || None)?;
            continue;
        }
        if args.dry_run {
            let changes = diff::painted(&diff::prompts(target, before, prompt), output.is_coloured());
            report(name, target, "set", 0, output, || {
                Some(format!(
                    "{name}: a new version of {target} would be set\n{changes}"
                ))
            })?;
            continue;
        }
        let mut request = put_request(context, target, label, prompt);
        // What changed meanwhile is not overwritten.
        request.etag = current
            .as_ref()
            .map_or_else(String::new, |current| current.resource.etag.clone());
        request.reason.clone_from(&args.decision.reason);
        request.on_behalf_of.clone_from(&args.decision.by);
        let mut client = context.resources().await?;
        let response = match client.put_resource(context.request(request)).await {
            Ok(response) => response.into_inner(),
            Err(status) if is_about_the_prompt(&status) => {
                let path = args.directory.join(name);
                wrong.push(format!("{}: {}", path.display(), Failure::from(status)));
                continue;
            }
            Err(status) => return Err(status.into()),
        };
        warn(&args.directory.join(name), &response.warnings);
        let resource = response.resource.unwrap_or_default();
        let version = prompt_of(resource.value.as_ref()).map_or(0, |prompt| prompt.version);
        pulled.note(target, version);
        pulled.write()?;
        report(name, target, "set", version, output, || {
            Some(format!(
                "{name}: set, version {version} of {target} is current under {label} (revision {})",
                response.revision
            ))
        })?;
    }
    if !output.is_json() {
        output.line(&format!("{unchanged} unchanged"))?;
    }
    if !args.dry_run {
        pulled.write()?;
    }
    if !overtaken.is_empty() {
        wrong.push(format!(
            "others set something else since it was pulled: {}\n  `emend outputs prompts diff TARGET` shows what; push with --force sets \
             the file over it, pull with --force takes it",
            overtaken.join(", ")
        ));
    }
    match (wrong.len(), overtaken.len()) {
        (0, _) => Ok(()),
        (1, 1..) => Err(Failure::Conflict(wrong.concat())),
        _ => Err(Failure::usage(wrong.join("\n"))),
    }
}

/// Whether a refusal concerns one prompt, so that others may be taken.
fn is_about_the_prompt(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument | Code::FailedPrecondition | Code::Aborted
    )
}

/// The prompts of a directory, with what is current for each; and of every file that is none, why.
async fn pushed(directory: &Path, label: &str, context: &Context) -> Result<(Vec<Pushed>, Vec<String>)> {
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "{} is not a directory",
            directory.display()
        )));
    }
    let mut files: Vec<(String, String, Prompt)> = Vec::new();
    let mut wrong = Vec::new();
    for name in names_in(directory).map_err(|error| named(directory, &error))? {
        let read = read(directory, &name).map_err(|error| error.to_string());
        let parsed = read.and_then(|contents| {
            let parts =
                PromptFile::parse(&contents).and_then(|file| Ok((file.target(&name)?, file.prompt()?)));
            let (target, prompt) = parts.map_err(|error| error.to_string())?;
            match files.iter().find(|(_, known, _)| *known == target) {
                Some((other, ..)) => Err(format!("is a prompt of {target}, as {other} is")),
                None => Ok((target, prompt)),
            }
        });
        match parsed {
            Ok((target, prompt)) => files.push((name, target, prompt)),
            Err(error) => wrong.push(format!("{}: {error}", directory.join(name).display())),
        }
    }
    let targets = Targets::read(context, files.iter().map(|(_, target, _)| &**target)).await;
    files.retain(|(name, target, _)| {
        let checked = targets.check(target);
        wrong.extend(
            checked
                .as_ref()
                .err()
                .map(|error| format!("{}: {error}", directory.join(name).display())),
        );
        checked.is_ok()
    });
    let mut prompts = current(context, Some(label)).await?;
    let with_current = files.into_iter().map(|(name, target, prompt)| {
        let at = prompts.iter().position(|current| current.target == target);
        Pushed {
            name,
            target,
            prompt,
            current: at.map(|at| prompts.swap_remove(at)),
        }
    });
    Ok((with_current.collect(), wrong))
}

fn read(directory: &Path, name: &str) -> Result<String> {
    source::text(&directory.join(name), MAX_BYTES)
}

fn named(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: {error}", path.display()))
}

/// Prints what was done about one file: always as JSON, as text if there is one.
fn report(
    name: &str,
    target: &str,
    action: &str,
    version: u32,
    output: &mut Output<'_>,
    text: impl FnOnce() -> Option<String>,
) -> Result {
    if output.is_json() {
        let version = if version == 0 { Value::Null } else { version.into() };
        let json = json!({"file": name, "target": target, "action": action, "version": version});
        output.json_line(&json.to_string())
    } else {
        text().map_or(Ok(()), |text| output.line(&text))
    }
}
