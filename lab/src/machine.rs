//! The machine and the state of the source on which a record was taken.

use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::clock::Clock;

/// The machine, as far as the system describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model as the kernel names it.
    pub processor: String,
    /// Processors this process may run on.
    pub cpus: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Calibrated TSC rate; `None`: not available.
    pub tsc_mhz: Option<f64>,
    /// Smallest step of the monotonic clock.
    pub clock_step_ns: u64,
}

impl Machine {
    /// Describes this machine; fields that cannot be read say "not available".
    pub fn describe(clock: &Clock) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let field = |text: &str, key: &str| {
            text.lines()
                .find(|line| line.starts_with(key))
                .and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
        };
        let memory_kib = field(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "not available".to_owned()),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_mib: memory_kib.unwrap_or(0) / 1024,
            kernel: format!("{} {}", read("/proc/sys/kernel/ostype").trim(), read("/proc/sys/kernel/osrelease").trim()),
            tsc_mhz: clock.tsc_hz().map(|hz| (hz / 1e5).round() / 10.0),
            clock_step_ns: clock.step_ns(),
        }
    }
}

/// The largest resident set of this process so far; `None` if the kernel does not say.
pub fn memory_peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

/// The commit that this program was built from; of a program that does not know it (`build.rs`), that of the working
/// directory. `-modified` if files of the working directory differ from their commit; "unknown" outside a repository.
pub fn source_commit() -> String {
    source_commit_of(Path::new("."), option_env!("NAMEWIRE_LAB_COMMIT"))
}

/// Records, and the table that is made of them, are no sources: one record may be renewed after another.
fn source_commit_of(dir: &Path, built_from: Option<&str>) -> String {
    let here = || git(dir, &["rev-parse", "--short=12", "HEAD"]);
    let Some(commit) = built_from.map(str::to_owned).or_else(here) else { return "unknown".to_owned() };
    let sources = [":(top)", ":(top,exclude)lab/record", ":(top,exclude)lab/README.md"];
    match git(dir, &[&["status", "--porcelain", "--untracked-files=no", "--"], &sources[..]].concat()) {
        // A program that knows its commit may run anywhere.
        None if built_from.is_some() => commit,
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit}-modified"),
    }
}

/// What git prints in `dir`; `None` if it fails.
pub(crate) fn git(dir: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(dir).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_record_leaves_the_tree_as_its_commit_has_it() -> anyhow::Result<()> {
        let repository = tempfile::tempdir()?;
        let write = |file: &str, text: &str| {
            let path = repository.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap_or(repository.path()))?;
            std::fs::write(path, text)
        };
        let files = ["lab/record/one.json", "lab/README.md", "lab/src/main.rs"];
        files.iter().try_for_each(|file| write(file, "old"))?;
        let author = ["-c", "user.name=test", "-c", "user.email=test@example.org"];
        assert_eq!(source_commit_of(repository.path(), None), "unknown");
        for arguments in [&["init", "-q"][..], &["add", "."], &[&author[..], &["commit", "-q", "-m", "files"]].concat()]
        {
            assert!(git(repository.path(), arguments).is_some(), "{arguments:?}");
        }
        let commit = source_commit_of(repository.path(), None);
        files[..2].iter().try_for_each(|file| write(file, "new"))?;
        assert_eq!(source_commit_of(&repository.path().join("lab"), None), commit);
        let built_from = Some("0123456789ab");
        assert_eq!(source_commit_of(repository.path(), built_from), "0123456789ab");
        write(files[2], "new")?;
        assert_eq!(source_commit_of(repository.path(), built_from), "0123456789ab-modified");
        assert_eq!(source_commit_of(repository.path(), None), format!("{commit}-modified"));
        Ok(())
    }
}
