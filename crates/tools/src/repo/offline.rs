//! `namewire repo check`, `export`, `import` and `compact`: the store itself.
//!
//! These commands work on an embedded store or Redis even while a repository uses it. SQLite is for one program at a
//! time. From a damaged store, they read all that can be read; then the error names the damaged file.

use super::settings::Place;
use crate::{ExitCode, Failure, Global, name_argument, quantity};
use namewire_configuration::settings::RepoStore;
use namewire_packet::NameBuf;
use namewire_repo::{
    archive, check,
    store::embedded::{EmbeddedOptions, EmbeddedStore},
};
use serde::Serialize;
use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// Bytes gathered before a write to a file.
const WRITE_BUFFER_BYTES: usize = 1 << 20;

#[derive(Serialize)]
struct Checked {
    records: u64,
    size_bytes: u64,
    problem_count: u64,
    problems: Vec<String>,
}

pub(super) fn check(global: &Global, place: &Place) -> Result<(), Failure> {
    let store = place.open()?;
    let total = store.usage().map_or(0, |usage| usage.records);
    let bar = global.output().progress_bar(false, total, "Data");
    let report = check::check(&*store, |records| bar.set_position(records)).map_err(failed)?;
    bar.finish_and_clear();
    let checked = Checked {
        records: report.records,
        size_bytes: report.bytes,
        problem_count: report.problem_count,
        problems: report.problems,
    };
    global.output().print(&checked, || {
        let problems: String = checked.problems.iter().map(|problem| format!("{problem}\n")).collect();
        format!("{problems}{} Data, {}\n", checked.records, quantity::bytes(checked.size_bytes))
    })?;
    match checked.problem_count {
        0 => Ok(()),
        count => Err(Failure::new(ExitCode::Failed, format!("{count} problems"))),
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    place: Place,
    /// File to write; - is standard output
    file: PathBuf,
    /// Only Data below this prefix
    #[arg(long, value_name = "PREFIX", default_value = "/", value_parser = name_argument::parse)]
    prefix: NameBuf,
}

#[derive(Serialize)]
struct Moved {
    packets: u64,
    size_bytes: u64,
}

pub(super) fn export(global: &Global, args: &ExportArgs) -> Result<(), Failure> {
    let store = args.place.open()?;
    let total = if args.prefix.is_empty() { store.usage().map_or(0, |usage| usage.bytes) } else { 0 };
    let bar = global.output().progress_bar(false, total, "bytes");
    let mut size_bytes = 0;
    let mut write = |archive: &mut dyn Write| {
        archive::export(&*store, args.prefix.value(), archive, |bytes| {
            size_bytes = bytes;
            bar.set_position(bytes);
        })
    };
    let to_output = args.file == Path::new("-");
    let packets = if to_output {
        write(&mut BufWriter::with_capacity(WRITE_BUFFER_BYTES, io::stdout().lock())).map_err(failed)?
    } else {
        let cannot =
            |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot write {}: {error}", args.file.display()));
        let mut file = BufWriter::with_capacity(WRITE_BUFFER_BYTES, File::create_new(&args.file).map_err(cannot)?);
        let cut = |error| failed(format!("{error}\n{} has what could be read before", args.file.display()));
        let packets = write(&mut file).map_err(cut)?;
        file.into_inner().map_err(|error| cannot(error.into_error()))?.sync_all().map_err(cannot)?;
        packets
    };
    bar.finish_and_clear();
    if to_output {
        return Ok(());
    }
    let moved = Moved { packets, size_bytes };
    global.output().print(&moved, || format!("exported {packets} Data\n"))?;
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    place: Place,
    /// File to read; - is standard input
    file: PathBuf,
}

pub(super) fn import(global: &Global, args: &ImportArgs) -> Result<(), Failure> {
    let cannot =
        |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot read {}: {error}", args.file.display()));
    let (archive, total): (Box<dyn Read>, u64) = if args.file == Path::new("-") {
        (Box::new(io::stdin().lock()), 0)
    } else {
        let file = File::open(&args.file).map_err(cannot)?;
        let total = file.metadata().map_or(0, |metadata| metadata.len());
        (Box::new(file), total)
    };
    let store = args.place.open()?;
    let bar = global.output().progress_bar(false, total, "bytes");
    let now_ms = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    let mut size_bytes = 0;
    let written = archive::import(&*store, archive, now_ms, |bytes| {
        size_bytes = bytes;
        bar.set_position(bytes);
    });
    bar.finish_and_clear();
    let written = written.map_err(failed)?;
    let moved = Moved { packets: written.added + written.replaced, size_bytes };
    let (added, replaced) = (written.added, written.replaced);
    global.output().print(&moved, || format!("imported {} Data: {added} new, {replaced} replaced\n", moved.packets))?;
    Ok(())
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    place: Place,
    /// New folder for the copy
    copy: PathBuf,
}

pub(super) fn compact(global: &Global, args: &CompactArgs) -> Result<(), Failure> {
    let section = args.place.load()?.settings.repo;
    let (RepoStore::Embedded, Some(folder)) = (section.store.0, &section.folder) else {
        return Err(Failure::usage("only an embedded store can be compacted; name its --folder"));
    };
    let store = EmbeddedStore::open(folder, EmbeddedOptions::default()).map_err(failed)?;
    store.copy_without_free_space(&args.copy).map_err(failed)?;
    let size = |folder: &Path| EmbeddedStore::file_bytes(folder).map_err(failed);
    let sizes = Compacted { before_bytes: size(folder)?, after_bytes: size(&args.copy)? };
    global.output().print(&sizes, || {
        let (before, after) = (quantity::bytes(sizes.before_bytes), quantity::bytes(sizes.after_bytes));
        format!("{}: {before}; {}: {after}\n", folder.display(), args.copy.display())
    })?;
    Ok(())
}

#[derive(Serialize)]
struct Compacted {
    before_bytes: u64,
    after_bytes: u64,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(ExitCode::Failed, error.to_string())
}
