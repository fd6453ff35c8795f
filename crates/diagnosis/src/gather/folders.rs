//! Folders in which the router writes, and their disks.

use crate::facts::{Facts, FolderFacts, ProcessFacts};
use rustix::fs::{Access, access, statvfs};
use std::{
    ffi::OsString,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Looks at those that the settings name.
pub(super) fn look(facts: &Facts) -> Vec<FolderFacts> {
    let settings = &facts.settings;
    let process = facts.process.as_ref();
    let state = settings.text("state.file").map(|path| of_file(Path::new(&path), process));
    let repo = settings.text("repo.folder").filter(|_| settings.is_on("repo.enabled"));
    let repo = repo.map(|path| of_folder("repository", Path::new(&path), process));
    state.into_iter().chain(repo).collect()
}

/// The state file is replaced as a whole, so the router writes its folder.
fn of_file(path: &Path, process: Option<&ProcessFacts>) -> FolderFacts {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut aside = OsString::from(path);
    aside.push(".ignored");
    FolderFacts {
        path: path.display().to_string(),
        was_put_aside: PathBuf::from(aside).exists(),
        ..of_folder("state file", folder, process)
    }
}

fn of_folder(purpose: &'static str, folder: &Path, process: Option<&ProcessFacts>) -> FolderFacts {
    let mut facts = FolderFacts { purpose, path: folder.display().to_string(), ..FolderFacts::default() };
    match fs::metadata(folder) {
        Ok(metadata) => facts.is_writable = is_writable(folder, &metadata, process),
        Err(error) => facts.error = Some(error.to_string()),
    }
    if let Ok(disk) = statvfs(folder) {
        facts.free_bytes = Some(disk.f_bavail.saturating_mul(disk.f_frsize));
        facts.disk_bytes = Some(disk.f_blocks.saturating_mul(disk.f_frsize));
    }
    facts
}

/// Whether the router's user may write there: by asking the kernel if that is this user, else by owner and mode.
fn is_writable(folder: &Path, metadata: &Metadata, process: Option<&ProcessFacts>) -> Option<bool> {
    let own = rustix::process::geteuid().as_raw();
    let Some(process) = process else {
        return Some(access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok());
    };
    let uid = process.uid?;
    if uid == own {
        return Some(access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok());
    }
    let bits = match () {
        () if uid == 0 => return Some(true),
        () if metadata.uid() == uid => metadata.mode() >> 6,
        () if process.gids.contains(&metadata.gid()) => metadata.mode() >> 3,
        () => metadata.mode(),
    };
    Some(bits & 0o3 == 0o3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_another_user_may_write_follows_owner_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let other = ProcessFacts { uid: Some(4_000_000), ..ProcessFacts::default() };
        for (mode, expected) in [(0o755, false), (0o757, true)] {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let facts = of_folder("repository", folder.path(), Some(&other));
            assert_eq!(facts.is_writable, Some(expected), "{mode:o}");
            assert!(facts.free_bytes.is_some() && facts.error.is_none());
        }
        let absent = of_file(&folder.path().join("none/state.toml"), None);
        assert!(absent.error.is_some() && absent.path.ends_with("none/state.toml"));
    }

    #[test]
    fn a_file_that_was_put_aside_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.toml");
        assert!(!of_file(&state, None).was_put_aside);
        fs::write(folder.path().join("state.toml.ignored"), "?").unwrap();
        assert!(of_file(&state, None).was_put_aside);
    }
}
