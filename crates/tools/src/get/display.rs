//! What `namewire get` shows: what it waits for, how far it is, and a summary.
//!
//! A terminal gets a bar. With `--json`, a line of JSON goes to standard error each second, and the summary at the end
//! to standard output, unless that carries the content.

use crate::{Failure, Global, quantity};
use indicatif::{ProgressBar, ProgressStyle};
use namewire_client::{FetchProgress, FoundObject};
use namewire_files::part::Held;
use namewire_packet::NameBuf;
use serde::Serialize;
use std::{
    cell::Cell,
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

const TICK: Duration = Duration::from_millis(100);
/// Time between two lines of JSON.
const LINE_EVERY: Duration = Duration::from_secs(1);
/// After this time without a segment, the bar says so.
const STALL: Duration = Duration::from_secs(2);

/// The last line of `--json`.
#[derive(Serialize)]
struct Summary {
    versioned_name: String,
    is_from_cache: bool,
    size_bytes: u64,
    resumed_bytes: u64,
    segments: u64,
    elapsed_ms: f64,
    goodput_bits_per_second: f64,
    retransmissions: u64,
    losses: u64,
    timeouts: u64,
    nacks: u64,
    congestion_marks: u64,
    window_decreases: u64,
    window_final: usize,
    unverified_segments: u64,
    /// Received more than once, in this run or in the one that it goes on from.
    repeated_segments: u64,
    repeated_bytes: u64,
    srtt_ms: Option<f64>,
}

/// A line of `--json` while the fetch runs.
#[derive(Serialize)]
struct Line<'a> {
    versioned_name: &'a str,
    bytes: u64,
    segments: u64,
    segments_total: Option<u64>,
    repeated_segments: u64,
    repeated_bytes: u64,
    elapsed_ms: f64,
    goodput_bits_per_second: f64,
}

pub(super) struct Display {
    bar: ProgressBar,
    json: bool,
    quiet: bool,
    has_file: bool,
    /// Segments and bytes that were there already.
    resumed: Cell<(u64, u64)>,
    /// Those that were there and come again.
    resumed_again: Cell<(u64, u64)>,
    /// Segments at the last arrival, and when it was.
    last: Cell<(u64, Instant)>,
    last_line: Cell<Option<Instant>>,
}

impl Display {
    /// Shows that the newest version of `name` is asked for.
    pub(super) fn new(global: &Global, quiet: bool, has_file: bool, name: &NameBuf) -> Self {
        let is_shown = !quiet && !global.json && io::stderr().is_terminal();
        let bar = if is_shown { ProgressBar::no_length() } else { ProgressBar::hidden() };
        let has_version = name.as_name().last().is_some_and(|last| last.version().is_some());
        let what = if has_version { "asking for" } else { "asking for the newest version of" };
        bar.set_style(style("{spinner} {msg} … {elapsed}"));
        bar.set_message(format!("{what} {name}"));
        bar.enable_steady_tick(TICK);
        Display {
            bar,
            json: global.json,
            quiet,
            has_file,
            resumed: Cell::default(),
            resumed_again: Cell::default(),
            last: Cell::new((0, Instant::now())),
            last_line: Cell::default(),
        }
    }

    /// The version is known.
    pub(super) fn found(&self, found: &FoundObject) {
        if found.is_from_cache() {
            self.say(&format!("no producer answers; {} is what caches still hold", found.versioned_name()));
        }
        self.bar.set_message(format!("asking for {}", found.versioned_name()));
    }

    /// An unfinished copy has so much.
    pub(super) fn resumes(&self, held: &Held, words: &str) {
        self.resumed.set((held.segments - 1, held.bytes_before_last()));
        self.resumed_again.set(held.again());
        self.say(words);
    }

    /// The copy is of no use: what it has comes again.
    pub(super) fn starts_again(&self) {
        let ((segments, bytes), again) = (self.resumed.take(), self.resumed_again.get());
        self.resumed_again.set((again.0 + segments, again.1 + bytes));
        self.say("the content under this name has changed; starting again");
    }

    /// Tells something besides the progress.
    pub(super) fn say(&self, words: &str) {
        if !self.quiet {
            self.bar.suspend(|| eprintln!("namewire: {words}"));
        }
    }

    pub(super) fn show(&self, progress: &FetchProgress) {
        let is_new = progress.segments != self.last.get().0;
        if is_new {
            self.last.set((progress.segments, Instant::now()));
        }
        if self.json && !self.quiet {
            self.show_line(progress);
        }
        if self.bar.is_hidden() || progress.segments == 0 {
            return;
        }
        let (segments, bytes) = (self.resumed.get().0 + progress.segments, self.total_bytes(progress));
        if is_new {
            match progress.segments_total {
                Some(total) if self.bar.length() != Some(total) => {
                    self.bar.set_length(total);
                    self.bar.set_style(style("{bar:30} {percent:>3} %  {msg}  {eta} left"));
                }
                Some(_) => {}
                None => self.bar.set_style(style("{spinner} {msg}  {elapsed}")),
            }
            self.bar.set_position(segments);
        }
        let silence = self.last.get().1.elapsed();
        let rate = quantity::bit_rate(progress.bytes, progress.elapsed);
        self.bar.set_message(match silence > STALL {
            true => format!("{}  no answer for {} s", quantity::bytes(bytes), silence.as_secs()),
            false => format!("{}  {rate}  window {}", quantity::bytes(bytes), progress.window),
        });
    }

    fn show_line(&self, progress: &FetchProgress) {
        if self.last_line.get().is_some_and(|last| last.elapsed() < LINE_EVERY) {
            return;
        }
        self.last_line.set(Some(Instant::now()));
        let (repeated_segments, repeated_bytes) = self.repeated(progress);
        let line = Line {
            versioned_name: &progress.versioned_name.to_string(),
            bytes: self.total_bytes(progress),
            segments: self.resumed.get().0 + progress.segments,
            segments_total: progress.segments_total,
            repeated_segments,
            repeated_bytes,
            elapsed_ms: progress.elapsed.as_secs_f64() * 1000.0,
            goodput_bits_per_second: quantity::bits_per_second(progress.bytes, progress.elapsed),
        };
        if let Ok(line) = serde_json::to_string(&line) {
            eprintln!("{line}");
        }
    }

    /// Segments and bytes that were received more than once.
    fn repeated(&self, progress: &FetchProgress) -> (u64, u64) {
        let (segments, bytes) = self.resumed_again.get();
        (segments + progress.repeated_segments, bytes + progress.repeated_bytes)
    }

    fn total_bytes(&self, progress: &FetchProgress) -> u64 {
        self.resumed.get().1 + progress.bytes
    }

    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints what came of the fetch.
    pub(super) fn summarise(&self, progress: &FetchProgress) -> Result<(), Failure> {
        let (held_segments, held_bytes) = self.resumed.get();
        let (repeated_segments, repeated_bytes) = self.repeated(progress);
        let summary = Summary {
            versioned_name: progress.versioned_name.to_string(),
            is_from_cache: progress.is_from_cache,
            size_bytes: held_bytes + progress.bytes,
            resumed_bytes: held_bytes,
            segments: held_segments + progress.segments,
            elapsed_ms: progress.elapsed.as_secs_f64() * 1000.0,
            goodput_bits_per_second: quantity::bits_per_second(progress.bytes, progress.elapsed),
            retransmissions: progress.retransmissions,
            losses: progress.losses,
            timeouts: progress.timeouts,
            nacks: progress.nacks,
            congestion_marks: progress.congestion_marks,
            window_decreases: progress.window_decreases,
            window_final: progress.window,
            unverified_segments: progress.unverified_segments,
            repeated_segments,
            repeated_bytes,
            srtt_ms: progress.srtt.map(|srtt| srtt.as_secs_f64() * 1000.0),
        };
        if self.json {
            // Standard output may be carrying the content.
            if self.has_file {
                crate::Output { json: true }.print(&summary, String::new)?;
            } else {
                eprintln!("{}", serde_json::to_string(&summary).map_err(io::Error::from)?);
            }
        } else if !self.quiet {
            print_summary(&summary, progress);
        }
        Ok(())
    }
}

fn print_summary(summary: &Summary, progress: &FetchProgress) {
    let resumed = match summary.resumed_bytes {
        0 => String::new(),
        bytes => format!(" ({} of it before)", quantity::bytes(bytes)),
    };
    eprintln!(
        "{}: {}{resumed} in {:.3} s, {} goodput, {} segments, {} retransmissions, {} Nacks, {} marks",
        summary.versioned_name,
        quantity::bytes(summary.size_bytes),
        progress.elapsed.as_secs_f64(),
        quantity::bit_rate(progress.bytes, progress.elapsed),
        summary.segments,
        summary.retransmissions,
        summary.nacks,
        summary.congestion_marks
    );
    if summary.repeated_segments > 0 {
        let size = quantity::bytes(summary.repeated_bytes);
        eprintln!("{} segments ({size}) were received more than once", summary.repeated_segments);
    }
    if summary.unverified_segments > 0 {
        eprintln!("{} segments have signatures that were not checked", summary.unverified_segments);
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
