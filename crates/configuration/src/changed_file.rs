//! Changing a file that commands write: nobody reads half of it, and two changes at once are both kept.
//!
//! A change is a new file, which only its user can read, that takes the place of the old one. A process that changes
//! the file locks its folder.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Replaces what the file at `path` says by the text that `change` returns, which may read the file first. Nothing is
/// written if `change` refuses. The folder is made if it does not exist.
///
/// # Errors
/// That of `change`; or what `failed` makes of an error of the system.
pub fn change<E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    change: impl FnOnce() -> Result<String, E>,
) -> Result<(), E> {
    // A link stays one: the file that it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    fs::create_dir_all(&folder).map_err(&failed)?;
    let lock = fs::File::open(&folder).map_err(&failed)?;
    lock.lock().map_err(&failed)?;
    let text = change()?;
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&target)?;
        Ok(())
    };
    write().map_err(failed)
}
