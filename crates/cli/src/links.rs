//! `namewire links`: links under the names that scripts type (`names.rs`), beside the program or anywhere.

use crate::names;
use namewire_printing::output::write_out;
use namewire_tools::{ExitCode, Failure};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "What is in the folder under one of these names, and is no link to this program, stays.")]
pub(crate) struct Args {
    /// Folder for the links; it is made if it is missing
    folder: PathBuf,
    /// What the links name [default: `namewire`, if the folder has it; else this program]
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Remove the links to this program
    #[arg(long)]
    remove: bool,
}

pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let folder = &args.folder;
    let cannot = |error: io::Error| Failure::new(ExitCode::Failed, format!("links in {}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(cannot)?;
    let beside = PathBuf::from("namewire");
    let program = match &args.program {
        Some(program) => program.clone(),
        None if folder.join(&beside).exists() => beside,
        None => std::env::current_exe().map_err(cannot)?,
    };
    let (mut changed, mut kept) = (0, 0);
    for name in names::all() {
        let path = folder.join(name);
        match link_of(&path).map_err(cannot)? {
            Place::Link(there) if there == program => {
                if args.remove {
                    fs::remove_file(&path).map_err(cannot)?;
                    changed += 1;
                }
            }
            Place::Free if args.remove => {}
            Place::Free => {
                std::os::unix::fs::symlink(&program, &path).map_err(cannot)?;
                changed += 1;
            }
            Place::Link(_) | Place::Other => {
                eprintln!("namewire: {} belongs to another program, and stays", path.display());
                kept += 1;
            }
        }
    }
    let done = if args.remove { "removed" } else { "made" };
    let rest = if kept > 0 { format!(", {kept} names belong to others") } else { String::new() };
    write_out(format!("{changed} links {done} in {}{rest}\n", folder.display()).as_bytes())?;
    Ok(())
}

/// What has a name already.
enum Place {
    Free,
    Link(PathBuf),
    Other,
}

fn link_of(path: &Path) -> io::Result<Place> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => fs::read_link(path).map(Place::Link),
        Ok(_) => Ok(Place::Other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Place::Free),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_once_and_nothing_of_others_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("nfdc"), b"of NFD").unwrap();
        std::os::unix::fs::symlink("/opt/ndnsec", at("ndnsec")).unwrap();
        let args = |remove| Args { folder: folder.path().to_owned(), program: Some("namewire".into()), remove };
        for _ in 0..2 {
            execute(&args(false)).unwrap();
            assert_eq!(fs::read_link(at("ndnsec-list")).unwrap(), Path::new("namewire"));
            assert_eq!(fs::read(at("nfdc")).unwrap(), b"of NFD");
            assert_eq!(fs::read_link(at("ndnsec")).unwrap(), Path::new("/opt/ndnsec"));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names::all().count());
        }
        execute(&args(true)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "those of others");
    }
}
