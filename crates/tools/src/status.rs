//! `namewire status`: the forwarder in a few numbers.

use crate::{
    Failure, Global,
    cs::{self, NOT_TOLD},
    output::{fields, table},
    quantity,
};
use namewire_node_model::counters::is_event;
use namewire_packet::nfd::{
    CsUsage, DropCounter, FibUsage, ForwarderStatus, Part, PoolHolding, ProcessPrivileges, TagTree, WorkerLoad,
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Status {
    transport: String,
    #[serde(flatten)]
    general: ForwarderStatus,
    uptime_ms: u64,
    /// `None`, as all that follows: the forwarder does not tell (other forwarders than Namewire, and older ones).
    store: Option<CsUsage>,
    fib: Option<FibUsage>,
    /// Trees of TagNet; none while it is off.
    tag_trees: Vec<TagTreeStatus>,
    /// What its process may do.
    privileges: Option<ProcessPrivileges>,
    /// Packets dropped, by reason; reasons that never occurred are left out.
    drops: Option<BTreeMap<String, u64>>,
    /// What happened in normal work, by name.
    events: Option<BTreeMap<String, u64>>,
}

/// One tree of TagNet in short; `namewire tag locator` tells more.
#[derive(Serialize)]
struct TagTreeStatus {
    tree: u64,
    has_label: bool,
    is_root: bool,
    children: usize,
    descriptors: u64,
}

impl TagTreeStatus {
    fn of(tree: &TagTree) -> Self {
        TagTreeStatus {
            tree: tree.tree,
            has_label: !tree.label.is_empty(),
            is_root: tree.parent.is_none(),
            children: tree.children.len(),
            descriptors: tree.descriptors,
        }
    }

    fn text(&self) -> String {
        let place = match (self.has_label, self.is_root) {
            (false, _) => "no label yet",
            (true, true) => "root",
            (true, false) => "with a parent",
        };
        let (tree, children, descriptors) = (self.tree, self.children, self.descriptors);
        format!("tree {tree}: {place}, {children} children, {descriptors} descriptors")
    }
}

fn privileges_text(privileges: &ProcessPrivileges) -> String {
    let capabilities = match &privileges.capabilities[..] {
        "" => "no capability",
        some => some,
    };
    let gain = if privileges.no_new_privileges { "can gain none" } else { "can gain some by programs" };
    format!("user {}, {capabilities}, {gain}", privileges.user)
}

fn fib_text(fib: &FibUsage) -> String {
    let role = if fib.is_lossy { ", core role (lossy)" } else { "" };
    let (bytes, capacity) = (quantity::bytes(fib.bytes), fib.capacity_entries);
    format!("{}{role}, {bytes}, at most {capacity} entries", fib.design)
}

pub(crate) async fn execute(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let state = client.state(&[Part::Drops, Part::CsUsage, Part::FibUsage, Part::Privileges]).await?;
    let trees: Vec<TagTree> = match state.is_of_namewire() {
        true => client.list().await.unwrap_or_default(),
        false => Vec::new(),
    };
    let (events, drops) = state.is_of_namewire().then(|| told_apart(state.drops)).unzip();
    let general = state.general.unwrap_or_default();
    let status = Status {
        tag_trees: trees.iter().map(TagTreeStatus::of).collect(),
        fib: state.fib_usage,
        privileges: state.privileges,
        store: state.cs_usage,
        drops,
        events,
        transport: client.transport().map(|uri| uri.to_string()).unwrap_or_default(),
        uptime_ms: general.current_timestamp_ms.saturating_sub(general.start_timestamp_ms),
        general,
    };
    global.output().print(&status, || text(&status))?;
    Ok(())
}

/// `namewire status --holders`.
pub(crate) async fn execute_holders(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let holdings: Vec<PoolHolding> = client.list().await?;
    global.output().print(&holdings, || holders_text(&holdings))?;
    Ok(())
}

/// `namewire status --workers`.
pub(crate) async fn execute_workers(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let state = client.state(&[Part::Workers]).await?;
    let general = state.general.unwrap_or_default();
    let uptime_ms = general.current_timestamp_ms.saturating_sub(general.start_timestamp_ms);
    global.output().print(&state.workers, || workers_text(&state.workers, uptime_ms))?;
    Ok(())
}

fn workers_text(workers: &[WorkerLoad], uptime_ms: u64) -> String {
    let share = |ns: u64| format!("{:.1} %", ns as f64 / 10_000.0 / uptime_ms.max(1) as f64);
    let heading = [
        "WORKER",
        "BUSY",
        "LOOKING",
        "WINDOW",
        "INTERESTS IN",
        "DATA IN",
        "CROSSED",
        "PIT",
        "CS",
        "CS BYTES",
        "CS HITS",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(workers.iter().map(|of| {
        vec![
            if of.is_io_thread { format!("{} (I/O)", of.number) } else { of.number.to_string() },
            share(of.busy_ns),
            share(of.polled_ns),
            format!("{} µs", of.poll_window_ns / 1_000),
            of.packets.in_interests.to_string(),
            of.packets.in_data.to_string(),
            of.crossed.to_string(),
            of.pit_entries.to_string(),
            of.cs_entries.to_string(),
            quantity::bytes(of.cs_bytes),
            of.cs_hits.to_string(),
        ]
    }));
    table(&rows, NOT_TOLD)
}

fn holders_text(holdings: &[PoolHolding]) -> String {
    let line = |of: &PoolHolding| {
        let refused = if of.refused > 0 { format!(", refused {}", of.refused) } else { String::new() };
        match &of.holder {
            None => format!("{}: {} of {}{refused}", of.pool, of.held, of.capacity),
            Some(holder) => format!("  {holder}: {}{refused}", of.held),
        }
    };
    holdings.iter().map(|of| line(of) + "\n").collect()
}

/// Events and drops, by name.
fn told_apart(counters: Vec<DropCounter>) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    counters.into_iter().map(|counter| (counter.reason, counter.count)).partition(|(name, _)| is_event(name))
}

fn text(s: &Status) -> String {
    let (uptime, of) = (quantity::ms(s.uptime_ms), &s.general);
    let counts = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join("  ")
    };
    let drops = match &s.drops {
        None => NOT_TOLD.to_owned(),
        Some(drops) if drops.is_empty() => "none".to_owned(),
        Some(drops) => counts(drops),
    };
    let mut lines = vec![
        ("Forwarder", format!("version {}, up {uptime}, at {}", of.nfd_version, s.transport)),
        (
            "Interests",
            format!(
                "in {}  out {}  satisfied {}  unsatisfied {}",
                of.packets.in_interests, of.packets.out_interests, of.n_satisfied_interests, of.n_unsatisfied_interests
            ),
        ),
        ("Data", format!("in {}  out {}", of.packets.in_data, of.packets.out_data)),
        ("Nacks", format!("in {}  out {}", of.packets.in_nacks, of.packets.out_nacks)),
        ("Entries", format!("FIB {}  PIT {}  Content Store {}", of.n_fib_entries, of.n_pit_entries, of.n_cs_entries)),
        ("FIB", s.fib.as_ref().map_or_else(|| NOT_TOLD.to_owned(), fib_text)),
        ("Store", s.store.as_ref().map_or_else(|| NOT_TOLD.to_owned(), cs::usage_text)),
        ("Drops", drops),
    ];
    lines.extend(s.events.iter().filter(|events| !events.is_empty()).map(|events| ("Events", counts(events))));
    lines.extend(s.privileges.iter().map(|privileges| ("Process", privileges_text(privileges))));
    lines.extend(s.store.iter().flat_map(cs::counts));
    lines.extend(s.tag_trees.iter().map(|tree| ("TagNet", tree.text())));
    fields(&lines)
}
