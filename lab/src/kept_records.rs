//! The records that documents quote: which are older than the code that they measured, and how they are renewed.
//!
//! Question answered: may a reader still trust this number? A record names the commit it was made from. It is stale if
//! a source of its experiment ([`crate::experiment::Experiment::sources`]) has changed since. Changed comments of Rust
//! files do not count; the lab cannot decide which other changes matter. A record of a modified tree is stale, too,
//! because that tree cannot be restored.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use crate::experiments;
use crate::machine::git;
use crate::record::Record;

/// The folder of kept records, and the repository around it.
pub struct KeptRecords {
    dir: PathBuf,
    repository: PathBuf,
}

/// Whether a record is as new as the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Age {
    Fresh,
    /// Commits that changed its sources since; `None` if its commit is not in the repository, or its tree was modified.
    Stale(Option<usize>),
}

impl KeptRecords {
    /// # Errors
    /// If `dir` is not in a git repository.
    pub fn open(dir: &Path) -> anyhow::Result<Self> {
        let top = git(dir, &["rev-parse", "--show-toplevel"])
            .with_context(|| format!("{} is not in a git repository: no age can be told", dir.display()))?;
        Ok(Self { dir: dir.to_owned(), repository: PathBuf::from(top) })
    }

    /// The age of `record`.
    ///
    /// # Errors
    /// If it is of no experiment of this program.
    pub fn age(&self, record: &Record) -> anyhow::Result<Age> {
        let experiment = experiments::find(&record.experiment)
            .with_context(|| format!("no experiment is called '{}'", record.experiment))?;
        let range = format!("{}..HEAD", record.commit);
        let mut arguments = vec!["rev-list", "--count", &range, "--"];
        arguments.extend(experiment.sources);
        let changes = git(&self.repository, &arguments).and_then(|count| count.parse().ok());
        Ok(match changes {
            Some(0) => Age::Fresh,
            Some(_) if self.has_same_code(&record.commit, experiment.sources) => Age::Fresh,
            changes => Age::Stale(changes),
        })
    }

    /// Whether these sources differ from those of `commit` in comments alone.
    fn has_same_code(&self, commit: &str, sources: &[&str]) -> bool {
        let range = format!("{commit}..HEAD");
        let changed =
            git(&self.repository, &[&["diff", "--name-only", "--no-renames", &range, "--"], sources].concat());
        changed.is_some_and(|files| {
            files.lines().all(|file| {
                let text = |of: &str| git(&self.repository, &["show", &format!("{of}:{file}")]);
                let (before, now) = (text(commit), text("HEAD"));
                file.ends_with(".rs") && before.zip(now).is_some_and(|(before, now)| code(&before).eq(code(&now)))
            })
        })
    }

    /// Runs the experiment of `record` again as its command says, with `program`; files come from `inputs` by their
    /// names. The new record replaces the old one.
    ///
    /// # Errors
    /// If a file is missing, or the experiment fails.
    pub fn renew(&self, record: &Record, program: &Path, inputs: Option<&Path>) -> anyhow::Result<()> {
        let arguments = arguments_again(&record.command, inputs)?;
        let status = Command::new(program).args(arguments).arg("--out").arg(&self.dir).status()?;
        ensure!(status.success(), "{} failed", record.command);
        Ok(())
    }
}

/// The lines of a Rust file that are neither empty nor comments.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
}

/// The arguments of a record's command, with files found in `inputs`.
fn arguments_again(command: &str, inputs: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    let mut arguments = Vec::new();
    let mut is_file = false;
    for word in command.split_whitespace().skip(1) {
        if is_file {
            let Some(inputs) = inputs else { bail!("it needs {word}: say --inputs, the folder with it") };
            let file = inputs.join(word);
            ensure!(file.exists(), "it needs {word}, which is not in {}", inputs.display());
            arguments.push(file);
        } else {
            arguments.push(PathBuf::from(word));
        }
        is_file = ["--names", "--trace", "--graph", "--tags", "--baseline"].contains(&word);
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn every_source_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for Experiment { id, sources, .. } in experiments::TABLE.iter() {
            assert!(!sources.is_empty(), "{id}");
            for source in *sources {
                assert!(root.join(source).exists(), "{id}: {source}");
            }
        }
    }

    #[test]
    fn a_command_runs_again_with_files_of_another_folder() -> anyhow::Result<()> {
        let inputs = tempfile::tempdir()?;
        std::fs::write(inputs.path().join("names.txt"), "")?;
        let command = "namewire-lab run fib-all --scale quick --names names.txt";
        let arguments = arguments_again(command, Some(inputs.path()))?;
        let expected = ["run", "fib-all", "--scale", "quick", "--names"].map(PathBuf::from);
        assert_eq!(arguments[..5], expected);
        assert_eq!(arguments[5], inputs.path().join("names.txt"));
        assert!(arguments_again(command, None).is_err_and(|error| error.to_string().contains("--inputs")));
        assert!(arguments_again("namewire-lab run fib-all --names other.txt", Some(inputs.path())).is_err());
        Ok(())
    }

    /// A repository with one commit for the record, then one that changes a source.
    #[test]
    fn a_change_of_a_source_makes_a_record_stale() -> anyhow::Result<()> {
        let repository = tempfile::tempdir()?;
        let at = |arguments: &[&str]| git(repository.path(), arguments).context("git failed");
        let commit = |file: &str, text: &str| -> anyhow::Result<String> {
            let path = repository.path().join(file);
            std::fs::create_dir_all(path.parent().context("a folder")?)?;
            std::fs::write(path, text)?;
            at(&["add", "."])?;
            at(&["-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "-q", "-m", "change"])?;
            at(&["rev-parse", "--short=12", "HEAD"])
        };
        at(&["init", "-q"])?;
        let source = "lab/src/experiments/dram_model.rs";
        let mut record: Record = serde_json::from_str(include_str!("../record/dram-model.json"))?;
        record.commit = commit(source, "one")?;
        let kept = KeptRecords::open(repository.path())?;
        commit("README.md", "another file")?;
        assert_eq!(kept.age(&record)?, Age::Fresh);
        commit(source, "// a comment\none")?;
        assert_eq!(kept.age(&record)?, Age::Fresh, "a comment does not matter");
        commit(source, "// a comment\ntwo")?;
        assert_eq!(kept.age(&record)?, Age::Stale(Some(2)));
        record.commit.push_str("-modified");
        assert_eq!(kept.age(&record)?, Age::Stale(None));
        Ok(())
    }
}
