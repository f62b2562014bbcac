//! A directory of prompts' files: each is replaced as a whole, and a mirror touches only what it wrote.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use super::names::is_file_name;

/// What a mirror writes down about itself: the names of its files, one a line.
const MANIFEST: &str = ".emend-mirror";
/// The end of the name of a file that is being written.
const TEMPORARY: &str = ".emend-new";

/// What a mirror changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mirrored {
    /// The names of files that it wrote.
    pub written: Vec<String>,
    /// The names of files that it removed.
    pub removed: Vec<String>,
    /// The names of files that are in its way: others wrote them.
    pub foreign: Vec<String>,
}

/// Replaces a file of a directory as a whole: it is written beside its place, synced, and renamed. Whoever reads it meanwhile,
/// or after a crash, finds either the old or the new one. No two may write to one directory at a time. Blocks.
pub fn replace(directory: &Path, name: &str, contents: &str) -> io::Result<()> {
    let temporary = directory.join(temporary_name(name));
    let mut file = File::create(&temporary)?;
    file.write_all(contents.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    // The rename is durable only once the directory is synced.
    File::open(directory)?.sync_all()
}

/// The names of a directory's files that may be prompts', sorted; none if there is no directory. Blocks.
pub fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = all_names(directory)?
        .into_iter()
        .filter(|name| is_file_name(name))
        .collect();
    names.sort_unstable();
    Ok(names)
}

/// Makes a directory have these files, by name: writes those that differ, removes those that it once wrote and that are gone, and
/// touches no others. Blocks.
pub fn synchronise(directory: &Path, files: &BTreeMap<String, String>) -> io::Result<Mirrored> {
    fs::create_dir_all(directory)?;
    for name in all_names(directory)? {
        let is_left = name
            .strip_prefix('.')
            .and_then(|name| name.strip_suffix(TEMPORARY))
            .is_some_and(|name| is_file_name(name) || name == MANIFEST);
        if is_left {
            fs::remove_file(directory.join(name))?;
        }
    }
    let own = manifest(directory)?;
    let mut changed = Mirrored::default();
    let mut due = Vec::new();
    let mut next = BTreeSet::new();
    for (name, contents) in files {
        let is_own = own.contains(name);
        match fs::read(directory.join(name)) {
            Ok(held) if held == contents.as_bytes() => {
                if is_own {
                    next.insert(name.clone());
                }
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound && is_own => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => due.push((name, contents)),
            Ok(_) if is_own => due.push((name, contents)),
            Ok(_) | Err(_) => changed.foreign.push(name.clone()),
        }
    }
    next.extend(due.iter().map(|(name, _)| (*name).clone()));
    // Written down before it is written, so that a crash leaves no file that nobody removes.
    let both: BTreeSet<String> = own.union(&next).cloned().collect();
    if both != own {
        write_manifest(directory, &both)?;
    }
    for (name, contents) in due {
        replace(directory, name, contents)?;
        changed.written.push(name.clone());
    }
    for name in own.difference(&next) {
        match fs::remove_file(directory.join(name)) {
            Ok(()) => changed.removed.push(name.clone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    if both != next {
        write_manifest(directory, &next)?;
    }
    Ok(changed)
}

/// The files that were mirrored into a directory and are there now, by name. Blocks.
pub fn mirrored(directory: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for name in manifest(directory)? {
        match fs::read(directory.join(&name)) {
            Ok(bytes) => drop(files.insert(name, String::from_utf8_lossy(&bytes).into_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(files)
}

/// The names of these files that others wrote, with other contents: a mirror does not touch them. Blocks.
pub fn foreign(directory: &Path, files: &BTreeMap<String, String>) -> io::Result<Vec<String>> {
    let own = manifest(directory)?;
    let mut foreign = Vec::new();
    for name in files.keys().filter(|name| !own.contains(*name)) {
        if fs::exists(directory.join(name))? {
            foreign.push(name.clone());
        }
    }
    Ok(foreign)
}

fn temporary_name(name: &str) -> String {
    format!(".{name}{TEMPORARY}")
}

/// The names of a directory's entries that are text; none if there is no directory.
fn all_names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// The names of the mirror's files. A line that is no such name is not believed.
fn manifest(directory: &Path) -> io::Result<BTreeSet<String>> {
    match fs::read_to_string(directory.join(MANIFEST)) {
        Ok(lines) => Ok(lines
            .lines()
            .filter(|name| is_file_name(name))
            .map(str::to_owned)
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

fn write_manifest(directory: &Path, names: &BTreeSet<String>) -> io::Result<()> {
    let lines: Vec<&str> = names.iter().map(String::as_str).collect();
    replace(directory, MANIFEST, &lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::{
        env, iter,
        path::PathBuf,
        process::{Child, Command, Stdio},
        sync::atomic::{AtomicBool, Ordering},
        thread,
        time::Duration,
    };

    use tokio::time::Instant;

    use super::*;

    fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, contents): &(&str, &str)| ((*name).to_owned(), (*contents).to_owned());
        files.iter().map(owned).collect()
    }

    /// All files of a directory but the manifest, with their contents.
    fn held(directory: &Path) -> BTreeMap<String, String> {
        let names = all_names(directory).unwrap().into_iter();
        names
            .filter(|name| name != MANIFEST)
            .map(|name| {
                let contents = fs::read_to_string(directory.join(&name)).unwrap();
                (name, contents)
            })
            .collect()
    }

    #[test]
    fn a_mirror_writes_what_differs_and_removes_what_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("prompts");
        let wanted = files(&[("A.md", "a"), ("B.md", "b")]);
        let changed = synchronise(&directory, &wanted).unwrap();
        assert_eq!(
            (changed.written, held(&directory)),
            (vec!["A.md".into(), "B.md".into()], wanted.clone())
        );
        assert_eq!(synchronise(&directory, &wanted).unwrap(), Mirrored::default());

        fs::write(directory.join("B.md"), "changed by hand").unwrap();
        let wanted = files(&[("B.md", "b"), ("C.md", "c")]);
        let changed = synchronise(&directory, &wanted).unwrap();
        assert_eq!(
            (changed.written, changed.removed),
            (vec!["B.md".into(), "C.md".into()], vec!["A.md".into()])
        );
        assert_eq!(held(&directory), wanted);
        synchronise(&directory, &BTreeMap::new()).unwrap();
        assert_eq!(held(&directory), BTreeMap::new());
    }

    #[test]
    fn what_others_wrote_is_never_touched() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let others = files(&[
            ("README.md", "ours"),
            ("notes.txt", "n"),
            (".x.emend-new", "x"),
            ("same.md", "s"),
        ]);
        for (name, contents) in &others {
            fs::write(directory.join(name), contents).unwrap();
        }
        let wanted = files(&[("README.md", "a target of that name"), ("same.md", "s")]);
        let changed = synchronise(directory, &wanted).unwrap();
        assert_eq!(changed.foreign, ["README.md"]);
        // Not even where a manifest names what is no prompt's file.
        fs::write(directory.join(MANIFEST), "notes.txt\n../secret\n").unwrap();
        synchronise(directory, &BTreeMap::new()).unwrap();
        let left: Vec<_> = held(directory).into_iter().collect();
        assert_eq!(left, others.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_crash_in_the_middle_of_a_write_leaves_the_old_file_whole() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        synchronise(directory, &files(&[("A.md", "old")])).unwrap();
        // Half of the next one, as a crash before the rename leaves it.
        fs::write(directory.join(temporary_name("A.md")), "ne").unwrap();
        assert_eq!(fs::read_to_string(directory.join("A.md")).unwrap(), "old");
        assert_eq!(
            names_in(directory).unwrap(),
            ["A.md"],
            "nobody takes it for a prompt"
        );
        synchronise(directory, &files(&[("A.md", "old")])).unwrap();
        assert_eq!(held(directory), files(&[("A.md", "old")]), "it is cleared away");

        // After the manifest and before the file: what is not there yet is still the mirror's.
        write_manifest(directory, &["A.md", "B.md"].map(str::to_owned).into()).unwrap();
        synchronise(directory, &files(&[("A.md", "old"), ("B.md", "b")])).unwrap();
        // After the removal and before the manifest.
        fs::remove_file(directory.join("B.md")).unwrap();
        assert_eq!(
            synchronise(directory, &files(&[("A.md", "old")])).unwrap(),
            Mirrored::default()
        );
        assert_eq!(manifest(directory).unwrap(), ["A.md".to_owned()].into());
    }

    #[test]
    fn a_reader_sees_whole_files_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("A.md");
        let versions = ["a".repeat(30_000), "b".repeat(20_000)];
        replace(directory.path(), "A.md", &versions[0]).unwrap();
        let done = AtomicBool::new(false);
        let reads = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reads = 0;
                while !done.load(Ordering::Relaxed) || reads == 0 {
                    let read = fs::read_to_string(&path).unwrap();
                    assert!(versions.contains(&read), "{} bytes", read.len());
                    reads += 1;
                }
                reads
            });
            for version in versions.iter().cycle().take(50) {
                replace(directory.path(), "A.md", version).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            reader.join().unwrap()
        });
        assert!(reads > 0);
    }

    /// Where a child process mirrors.
    const DIRECTORY: &str = "EMEND_TEST_MIRROR";
    /// How often it is killed.
    const KILLS: usize = 12;

    /// Two states of a directory, no file of which is alike in both.
    fn states() -> [BTreeMap<String, String>; 2] {
        ["a", "b"].map(|text| {
            let names = ["A.md", "B.md", "C.md"].into_iter();
            names
                .map(|name| (name.to_owned(), text.repeat(100_000)))
                .collect()
        })
    }

    #[test]
    #[ignore = "run as a child of the test that kills it"]
    fn mirrors_until_it_is_killed() {
        let Some(directory) = env::var_os(DIRECTORY).map(PathBuf::from) else {
            return;
        };
        for state in states().iter().cycle() {
            synchronise(&directory, state).unwrap();
        }
    }

    fn mirroring(directory: &Path) -> Child {
        let this = env::current_exe().unwrap();
        Command::new(this)
            .args(["--exact", "--ignored"])
            .arg("prompt_files::directory::tests::mirrors_until_it_is_killed")
            .env(DIRECTORY, directory)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_process_that_is_killed_while_it_mirrors_leaves_whole_files() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let states = states();
        let first = || {
            fs::read(directory.join("B.md"))
                .ok()
                .and_then(|read| read.first().copied())
        };
        synchronise(directory, &states[1]).unwrap();
        let (mut cut, mut kill) = (0, 0);
        let end = Instant::now() + Duration::from_secs(90);
        // Until one of them has been in the middle of a write.
        while kill < KILLS || cut == 0 {
            assert!(
                Instant::now() < end,
                "it was never killed in the middle of a write"
            );
            kill += 1;
            let mut child = mirroring(directory);
            // At another place of its work each time: after it was seen to replace a file so often.
            let until = Instant::now() + Duration::from_secs(30);
            let mut before = first();
            for _ in 0..=kill % KILLS {
                let replaced = iter::repeat_with(first).find(|now| *now != before || Instant::now() > until);
                before = replaced.unwrap();
                assert!(Instant::now() < until, "it replaces no files");
            }
            child.kill().unwrap();
            child.wait().unwrap();
            for name in states[0].keys() {
                let held = fs::read_to_string(directory.join(name)).unwrap();
                assert!(
                    states.iter().any(|state| state[name] == held),
                    "{name} has {} bytes after {kill} kills",
                    held.len()
                );
            }
            cut += usize::from(held(directory).len() > states[0].len());
        }
        synchronise(directory, &states[0]).unwrap();
        assert_eq!(held(directory), states[0]);
    }

    #[test]
    fn a_failed_write_keeps_the_previous_file() {
        let directory = tempfile::tempdir().unwrap();
        replace(directory.path(), "A.md", "old").unwrap();
        // A directory where the temporary file should go.
        fs::create_dir(directory.path().join(temporary_name("A.md"))).unwrap();
        assert!(replace(directory.path(), "A.md", "new").is_err());
        assert_eq!(fs::read_to_string(directory.path().join("A.md")).unwrap(), "old");
    }
}
