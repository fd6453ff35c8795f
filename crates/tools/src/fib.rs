//! `namewire fib`: the prefixes by which the forwarder forwards Interests, and their next hops.
//!
//! `namewire route list` shows the registered routes; the FIB is computed from them.

use crate::{
    Failure, Global,
    columns::{self, Column},
    terminal,
};
use namewire_packet::{
    NameBuf,
    nfd::{FaceStatus, FibEntry, NextHopRecord},
};
use serde::Serialize;
use std::collections::HashMap;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all prefixes with their next hops
    List,
}

#[derive(Serialize)]
struct Entry {
    prefix: NameBuf,
    next_hops: Vec<NextHop>,
}

#[derive(Serialize)]
struct NextHop {
    #[serde(flatten)]
    hop: NextHopRecord,
    remote_uri: Option<String>,
}

/// A prefix and one of its next hops; the prefix may have none.
struct Line<'a> {
    prefix: &'a NameBuf,
    hop: Option<&'a NextHop>,
}

impl Line<'_> {
    fn of_hop(&self, text: fn(&NextHop) -> String) -> String {
        self.hop.map_or_else(|| "-".to_owned(), text)
    }
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    let Command::List = command;
    let client = global.connect().await?;
    let entries: Vec<FibEntry> = client.list().await?;
    let faces: Vec<FaceStatus> = client.list().await?;
    let remotes: HashMap<_, _> = faces.into_iter().map(|face| (face.face_id, face.uri)).collect();
    let next_hop = |hop: NextHopRecord| NextHop { hop, remote_uri: remotes.get(&hop.face_id).cloned() };
    let entry =
        |FibEntry { name, next_hops }| Entry { prefix: name, next_hops: next_hops.into_iter().map(next_hop).collect() };
    let mut entries: Vec<Entry> = entries.into_iter().map(entry).collect();
    entries.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    global.output().print(&entries, || text(&entries))?;
    Ok(())
}

fn text(entries: &[Entry]) -> String {
    let columns: [Column<Line<'_>>; 4] = [
        Column::text("PREFIX", 0, |line| line.prefix.to_string()),
        Column::text("NEXTHOP", 0, |line| line.of_hop(|of| of.hop.face_id.to_string())),
        Column::text("COST", 0, |line| line.of_hop(|of| of.hop.cost.to_string())),
        Column::text("REMOTE", 1, |line| line.of_hop(|of| of.remote_uri.clone().unwrap_or_else(|| "-".to_owned()))),
    ];
    let mut lines = Vec::new();
    for entry in entries {
        let prefix = &entry.prefix;
        lines.extend(entry.next_hops.iter().map(|hop| Line { prefix, hop: Some(hop) }));
        if entry.next_hops.is_empty() {
            lines.push(Line { prefix, hop: None });
        }
    }
    columns::text(&columns::fit(&columns, &lines, terminal::width()), |_| false, "no prefixes")
}
