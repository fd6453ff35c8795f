//! `namewire report`: a bundle for a bug report.
//!
//! It gathers what `namewire doctor` gathers, over a longer watch, scrubs it ([`scrubber`]), and packs it
//! ([`archive`]). A page says what is in it before anything is written ([`page`]).
//!
//! Limits: [`BYTES_MAX`] for the file. [`STEPS`] are tried in turn: what does not fit is left out and counted.

mod archive;
mod contents;
mod page;
mod pseudonyms;
mod scrubber;

use crate::{
    diagnosis::Diagnosis,
    doctor::seconds,
    facts::Facts,
    gather::{Wanted, gather, unix_ms},
};
use archive::{Document, pack};
use contents::{Limits, documents, teach};
use namewire_printing::{output::write_out, quantity};
use namewire_tools::{ExitCode, Failure, Global};
use scrubber::Scrubber;
use serde::Serialize;
use serde_json::json;
use std::{
    fs::OpenOptions,
    io::{self, BufRead, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
    time::{Duration, UNIX_EPOCH},
};

/// Most bytes of a bundle.
const BYTES_MAX: usize = 5_000_000;

/// How much goes into a bundle: the first that fits.
const STEPS: [Limits; 4] = [
    Limits { entries: 10_000, line_bytes: 2000 },
    Limits { entries: 3000, line_bytes: 1000 },
    Limits { entries: 500, line_bytes: 500 },
    Limits { entries: 50, line_bytes: 200 },
];

/// `namewire report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  namewire report\n  namewire report bug.tar.gz --seconds 60 --yes")]
pub struct Args {
    /// File to write [default: namewire-report-DATE.tar.gz]
    file: Option<PathBuf>,
    /// Time between the two looks at the counters
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Leave names, addresses, users and paths as they are
    #[arg(long)]
    with_names: bool,
    /// Do not ask before the file is written
    #[arg(short, long)]
    yes: bool,
    /// Send no Interests to neighbours
    #[arg(long)]
    no_probe: bool,
}

#[derive(Serialize)]
struct Written {
    file: PathBuf,
    bytes: usize,
    documents: usize,
    left_out: Option<String>,
}

/// Makes the bundle.
///
/// # Errors
/// If the file exists or cannot be written, or if the user does not want it. A router that does not answer is no error:
/// the bundle says so.
pub async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let page = page::page(args.with_names, args.seconds);
    say(global, &page)?;
    if !args.yes && io::stdin().is_terminal() && io::stdout().is_terminal() && !agrees()? {
        return Err(Failure::new(ExitCode::Failed, "nothing was written"));
    }
    let signer = global.named_signer()?;
    let failed = |error: &dyn std::fmt::Display| Failure::new(ExitCode::Failed, error.to_string());
    let mut scrubber = Scrubber::new(args.with_names).map_err(|error| failed(&error))?;
    let now_ms = unix_ms();
    let path = args.file.unwrap_or_else(|| format!("{}.tar.gz", folder(now_ms)).into());
    // Before the long look: a place that cannot be written should be told now.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(|error| failed(&format!("{}: {error}", path.display())))?;

    let transport = global.transport()?;
    let wanted = Wanted { transport, signer, source: None, watch: args.seconds, probe: !args.no_probe };
    let (facts, _client) = gather(wanted).await;
    teach(&mut scrubber, &facts);
    let (packed, documents) = bundle(&facts, &scrubber, &page, now_ms, BYTES_MAX).map_err(|error| failed(&error))?;
    file.write_all(&packed)
        .and_then(|()| file.sync_all())
        .map_err(|error| failed(&format!("{}: {error}", path.display())))?;
    let left_out = page::left_out(&documents);
    let written = Written { file: path, bytes: packed.len(), documents: documents.len(), left_out };
    global.output().print(&written, || text(&written))?;
    Ok(())
}

/// The page goes where JSON does not.
fn say(global: &Global, page: &str) -> Result<(), Failure> {
    match global.output().json {
        true => io::stderr().write_all(page.as_bytes())?,
        false => write_out(format!("{page}\n").as_bytes())?,
    }
    Ok(())
}

fn agrees() -> io::Result<bool> {
    write_out(b"Write it? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

fn text(written: &Written) -> String {
    let left_out = written.left_out.as_ref().map(|left_out| format!("{left_out}\n")).unwrap_or_default();
    let Written { file, bytes, documents, .. } = written;
    format!("{left_out}{}: {documents} files, {}\n", file.display(), quantity::bytes(*bytes as u64))
}

/// `namewire-report-2026-11-30-074210`.
fn folder(unix_ms: u64) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(unix_ms)).to_string();
    format!("namewire-report-{}", time.trim_end_matches('Z').replace('T', "-").replace(':', ""))
}

/// The packed bundle of at most `bytes_max`, and what is in it.
fn bundle(
    facts: &Facts,
    scrubber: &Scrubber,
    page: &str,
    now_ms: u64,
    bytes_max: usize,
) -> io::Result<(Vec<u8>, Vec<Document>)> {
    let diagnosis = Diagnosis::of(facts);
    for limits in STEPS {
        let mut files = documents(facts, &diagnosis, scrubber, limits);
        let index: Vec<serde_json::Value> = files
            .iter()
            .map(|file| json!({"file": file.name, "bytes": file.text.len(), "entries": file.entries, "left_out": file.left_out}))
            .collect();
        let readme = match page::left_out(&files) {
            Some(left_out) => format!("{page}\n{left_out}\n"),
            None => page.to_owned(),
        };
        for (name, text) in
            [("index.json", format!("{:#}\n", json!({"version": 1, "files": index}))), ("README.txt", readme)]
        {
            files.push(Document { name, text, entries: 0, left_out: 0 });
        }
        let packed = pack(&folder(now_ms), &files, now_ms / 1000)?;
        if packed.len() <= bytes_max {
            return Ok((packed, files));
        }
    }
    Err(io::Error::other("even the shortest bundle is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::test_facts::{NEIGHBOUR, fib_entry, in_order, rib_entry};
    use namewire_packet::nfd::{LogField, LogRecord};

    #[test]
    fn the_folder_has_the_time() {
        assert_eq!(folder(1_709_164_799_007), "namewire-report-2024-02-28-235959");
    }

    /// A router with more routes and log than fit into a small bundle.
    #[test]
    fn a_bundle_of_a_large_router_fits_and_counts_what_is_left_out() {
        let mut facts = in_order();
        let forwarder = facts.forwarder.as_mut().unwrap();
        let random = |seed: usize| format!("{:x}", (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for number in 0..1500 {
            let prefix = format!("/{}/{}", random(number), random(number + 1_000_000));
            forwarder.fib.push(fib_entry(&prefix, &[NEIGHBOUR]));
            forwarder.rib.push(rib_entry(&prefix, &[(NEIGHBOUR, 0)]));
        }
        let field = LogField { name: "why".into(), value: (0..200).map(random).collect() };
        forwarder.log = vec![LogRecord { message: "x".into(), fields: vec![field], ..LogRecord::default() }; 100];
        let mut scrubber = Scrubber::new(false).unwrap();
        teach(&mut scrubber, &facts);
        let bytes_max = 30_000;
        let (packed, files) = bundle(&facts, &scrubber, "page", 0, bytes_max).unwrap();
        assert!(packed.len() <= bytes_max, "{}", packed.len());
        let fib = files.iter().find(|file| file.name == "fib.json").unwrap();
        assert_eq!((fib.entries, fib.left_out), (500, 1001));
        let readme = files.iter().find(|file| file.name == "README.txt").unwrap();
        assert!(
            readme.text.contains("left out for size: ") && readme.text.contains("fib.json 1001 of 1501"),
            "{}",
            readme.text
        );
        let log = files.iter().find(|file| file.name == "log.txt").unwrap();
        assert!(log.text.lines().all(|line| line.len() <= 510 && line.ends_with("(cut)")));
        assert!(bundle(&facts, &scrubber, "page", 0, 1000).is_err());
    }

    #[test]
    fn nothing_of_the_facts_is_left_in_a_bundle_unless_names_are_wanted() {
        let text_of = |with_names| {
            let facts = in_order();
            let mut scrubber = Scrubber::new(with_names).unwrap();
            teach(&mut scrubber, &facts);
            let files = bundle(&facts, &scrubber, "page", 0, BYTES_MAX).unwrap().1;
            files.into_iter().map(|file| file.text).collect::<String>()
        };
        let (hidden, open) = (text_of(false), text_of(true));
        assert!(open.contains("192.0.2.9"));
        for secret in ["alice", "192.0.2."] {
            assert!(!hidden.contains(secret), "{secret}");
        }
    }
}
