//! `namewire fib`: the prefixes that Interests are forwarded by, and their next hops.
//!
//! `namewire route list` shows what was registered; the FIB is what follows from that.

use crate::{
    Failure, Global,
    columns::{self, Column},
    terminal,
};
use namewire_packet::nfd::{FaceStatus, FibEntry};
use serde::Serialize;
use std::collections::HashMap;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all prefixes with their next hops
    List,
}

#[derive(Serialize)]
struct Entry {
    prefix: String,
    next_hops: Vec<NextHop>,
}

#[derive(Serialize)]
struct NextHop {
    face_id: u64,
    cost: u64,
    remote_uri: Option<String>,
}

/// A prefix and one of its next hops; the prefix may have none.
struct Line<'a> {
    prefix: &'a str,
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
    let entries: Vec<FibEntry> = client.status_list("fib", "list").await?;
    let faces: Vec<FaceStatus> = client.status_list("faces", "list").await?;
    let remotes: HashMap<_, _> = faces.into_iter().map(|face| (face.face_id, face.uri)).collect();
    let next_hop = |hop: &namewire_packet::nfd::NextHopRecord| NextHop {
        face_id: hop.face_id.0,
        cost: hop.cost,
        remote_uri: remotes.get(&hop.face_id).cloned(),
    };
    let mut entries: Vec<(_, Entry)> = entries
        .into_iter()
        .map(|entry| {
            let next_hops = entry.next_hops.iter().map(next_hop).collect();
            let prefix = entry.name.to_string();
            (entry.name, Entry { prefix, next_hops })
        })
        .collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let entries: Vec<Entry> = entries.into_iter().map(|(_, entry)| entry).collect();
    global.output().print(&entries, || text(&entries))?;
    Ok(())
}

fn text(entries: &[Entry]) -> String {
    let columns: [Column<Line<'_>>; 4] = [
        Column { heading: "PREFIX", rank: 0, is_number: false, cell: |line| line.prefix.to_owned() },
        Column {
            heading: "NEXTHOP",
            rank: 0,
            is_number: false,
            cell: |line| line.of_hop(|hop| hop.face_id.to_string()),
        },
        Column { heading: "COST", rank: 0, is_number: false, cell: |line| line.of_hop(|hop| hop.cost.to_string()) },
        Column {
            heading: "REMOTE",
            rank: 1,
            is_number: false,
            cell: |line| line.of_hop(|hop| hop.remote_uri.clone().unwrap_or_else(|| "-".to_owned())),
        },
    ];
    let mut lines = Vec::new();
    for entry in entries {
        let prefix = &entry.prefix[..];
        lines.extend(entry.next_hops.iter().map(|hop| Line { prefix, hop: Some(hop) }));
        if entry.next_hops.is_empty() {
            lines.push(Line { prefix, hop: None });
        }
    }
    columns::text(&columns::fit(&columns, &lines, terminal::width()), |_| false, "no prefixes")
}
