//! Prompts as files of a directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use emend_client::prompt_files::{PromptFile, file_name, names_in, replace};
use emend_core::Prompt;
use emend_proto::learning::v1::PromptVersion;
use serde_json::{Value, json};

use super::{Current, Decision, Label, MAX_BYTES, current, diff, prompt_of, put_request, versions, warn};
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
    #[command(flatten)]
    decision: Decision,
}

/// Writes each file that does not say what is current. Other files stay as they are.
pub(super) async fn pull(args: PullArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let directory = &args.directory;
    let prompts = current(context, Some(&args.label.label)).await?;
    if !args.force {
        nothing_is_lost(directory, &prompts, context).await?;
    }
    if !args.dry_run {
        fs::create_dir_all(directory).map_err(|error| named(directory, &error))?;
    }
    let mut left: Vec<String> = names_in(directory).map_err(|error| named(directory, &error))?;
    let mut unchanged = 0;
    for Current { target, prompt, .. } in &prompts {
        let name = file_name(target);
        let is_there = left
            .iter()
            .position(|known| *known == name)
            .map(|at| left.remove(at))
            .is_some();
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
    if !output.is_json() {
        for name in &left {
            output.line(&format!(
                "{name}: left as it is, not a current prompt under {}",
                args.label.label
            ))?;
        }
        output.line(&format!("{unchanged} unchanged"))?;
    }
    Ok(())
}

/// Refuses to replace files that say what no version of their prompt says.
async fn nothing_is_lost(directory: &Path, prompts: &[Current], context: &Context) -> Result {
    let mut changed = Vec::new();
    for Current { target, prompt, .. } in prompts {
        let name = file_name(target);
        if !directory.join(&name).exists() {
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
    if changed.is_empty() {
        return Ok(());
    }
    Err(Failure::Conflict(format!(
        "{} would lose changes that were not pushed: {}\n  push them, or pull with --force",
        directory.display(),
        changed.join(", ")
    )))
}

/// A file to push, and what is current.
struct Pushed {
    name: String,
    target: String,
    prompt: Prompt,
    current: Option<Current>,
}

/// Sets what differs. Every file is read before anything is set.
pub(super) async fn push(args: PushArgs, context: &Context, output: &mut Output<'_>) -> Result {
    let label = &args.label.label;
    let mut unchanged = 0;
    for pushed in pushed(&args.directory, label, context).await? {
        let Pushed {
            name,
            target,
            prompt,
            current,
        } = &pushed;
        let before = current.as_ref().map(|current| &current.prompt);
        if let Some(before) = before.filter(|before| before.says_the_same(prompt)) {
            unchanged += 1;
            report(name, target, "unchanged", before.version, output, || None)?;
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
        let response = client.put_resource(context.request(request)).await?.into_inner();
        warn(&args.directory.join(name), &response.warnings);
        let resource = response.resource.unwrap_or_default();
        let version = prompt_of(resource.value.as_ref()).map_or(0, |prompt| prompt.version);
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
    Ok(())
}

/// The prompts of a directory, with what is current for each. Says of every file that is none why.
async fn pushed(directory: &Path, label: &str, context: &Context) -> Result<Vec<Pushed>> {
    if !directory.is_dir() {
        return Err(Failure::usage(format!(
            "{} is not a directory",
            directory.display()
        )));
    }
    let mut files = Vec::new();
    let mut wrong = Vec::new();
    for name in names_in(directory).map_err(|error| named(directory, &error))? {
        let file = PromptFile::parse(&read(directory, &name)?);
        match file.and_then(|file| Ok((file.target(&name)?, file.prompt()?))) {
            Ok((target, prompt)) => files.push((name, target, prompt)),
            Err(error) => wrong.push(format!("{}: {error}", directory.join(name).display())),
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::usage(wrong.join("\n")));
    }
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
    Ok(with_current.collect())
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
