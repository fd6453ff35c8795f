//! `namewire status`: the forwarder in a few numbers.

use crate::{
    Failure, Global,
    cs::{NOT_TOLD, Usage, is_namewire, own_usage},
    output::fields,
    quantity,
};
use namewire_node_model::counters::is_event;
use namewire_packet::nfd::{
    DropCounter, FibUsage, ForwarderStatus, PacketCounts, PoolHolding, ProcessPrivileges, TagTree,
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Status {
    transport: String,
    version: String,
    start_time_ms: u64,
    uptime_ms: u64,
    fib_entries: u64,
    pit_entries: u64,
    cs_entries: u64,
    /// `None`: the forwarder does not tell (other forwarders than Namewire).
    store: Option<Usage>,
    /// `None`: the forwarder does not tell (other forwarders than Namewire).
    fib: Option<FibUsage>,
    /// Trees of TagNet; none while it is off.
    tag_trees: Vec<TagTreeStatus>,
    name_tree_entries: u64,
    measurements_entries: u64,
    #[serde(flatten)]
    packets: PacketCounts,
    satisfied_interests: u64,
    unsatisfied_interests: u64,
    /// What its process may do. `None`: the forwarder does not tell (other forwarders than Namewire, and older ones).
    privileges: Option<PrivilegesStatus>,
    /// Packets dropped, by reason; reasons that never occurred are left out. `None`: the
    /// forwarder does not tell (other forwarders than Namewire).
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

#[derive(Serialize)]
struct PrivilegesStatus {
    user: u64,
    capabilities: Vec<String>,
    no_new_privileges: bool,
}

impl PrivilegesStatus {
    fn of(privileges: &ProcessPrivileges) -> Self {
        PrivilegesStatus {
            user: privileges.user,
            capabilities: privileges.capabilities.split_whitespace().map(str::to_owned).collect(),
            no_new_privileges: privileges.no_new_privileges,
        }
    }

    fn text(&self) -> String {
        let capabilities = match &self.capabilities[..] {
            [] => "no capability".to_owned(),
            some => some.join(" "),
        };
        let gain = if self.no_new_privileges { "can gain none" } else { "can gain some by programs" };
        format!("user {}, {capabilities}, {gain}", self.user)
    }
}

fn fib_text(fib: &FibUsage) -> String {
    let role = if fib.is_lossy { ", core role (lossy)" } else { "" };
    let (bytes, capacity) = (quantity::bytes(fib.bytes), fib.capacity_entries);
    format!("{}{role}, {bytes}, at most {capacity} entries", fib.design)
}

pub(crate) async fn execute(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let general: ForwarderStatus = client.forwarder_status().await?;
    let drops: Option<Vec<DropCounter>> = client.status_list("status", "drops").await.ok();
    let store = Usage::fetch(&client, &general.nfd_version).await;
    let fib = own_usage(&client, &general.nfd_version, "fib").await;
    let privileges: Option<Vec<ProcessPrivileges>> = match is_namewire(&general.nfd_version) {
        true => client.status_list("status", "privileges").await.ok(),
        false => None,
    };
    let trees: Vec<TagTree> = match is_namewire(&general.nfd_version) {
        true => client.status_list("tags", "trees").await.unwrap_or_default(),
        false => Vec::new(),
    };
    let (events, drops) = drops.map(told_apart).unzip();
    let status = Status {
        tag_trees: trees.iter().map(TagTreeStatus::of).collect(),
        fib,
        privileges: privileges.and_then(|entries| entries.first().map(PrivilegesStatus::of)),
        store,
        drops,
        events,
        transport: client.transport().map(|uri| uri.to_string()).unwrap_or_default(),
        version: general.nfd_version,
        start_time_ms: general.start_timestamp_ms,
        uptime_ms: general.current_timestamp_ms.saturating_sub(general.start_timestamp_ms),
        fib_entries: general.n_fib_entries,
        pit_entries: general.n_pit_entries,
        cs_entries: general.n_cs_entries,
        name_tree_entries: general.n_name_tree_entries,
        measurements_entries: general.n_measurements_entries,
        packets: general.packets,
        satisfied_interests: general.n_satisfied_interests,
        unsatisfied_interests: general.n_unsatisfied_interests,
    };
    global.output().print(&status, || text(&status))?;
    Ok(())
}

/// `namewire status --holders`.
pub(crate) async fn execute_holders(global: &Global) -> Result<(), Failure> {
    let client = global.connect().await?;
    let holdings: Vec<PoolHolding> = client.status_list("status", "holders").await?;
    global.output().print(&holdings, || holders_text(&holdings))?;
    Ok(())
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
    let uptime = quantity::ms(s.uptime_ms);
    let counts = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join("  ")
    };
    let drops = match &s.drops {
        None => NOT_TOLD.to_owned(),
        Some(drops) if drops.is_empty() => "none".to_owned(),
        Some(drops) => counts(drops),
    };
    let mut lines = vec![
        ("Forwarder", format!("version {}, up {uptime}, at {}", s.version, s.transport)),
        (
            "Interests",
            format!(
                "in {}  out {}  satisfied {}  unsatisfied {}",
                s.packets.in_interests, s.packets.out_interests, s.satisfied_interests, s.unsatisfied_interests
            ),
        ),
        ("Data", format!("in {}  out {}", s.packets.in_data, s.packets.out_data)),
        ("Nacks", format!("in {}  out {}", s.packets.in_nacks, s.packets.out_nacks)),
        ("Entries", format!("FIB {}  PIT {}  Content Store {}", s.fib_entries, s.pit_entries, s.cs_entries)),
        ("FIB", s.fib.as_ref().map_or_else(|| NOT_TOLD.to_owned(), fib_text)),
        ("Store", s.store.as_ref().map_or_else(|| NOT_TOLD.to_owned(), Usage::text)),
        ("Drops", drops),
    ];
    lines.extend(s.events.iter().filter(|events| !events.is_empty()).map(|events| ("Events", counts(events))));
    lines.extend(s.privileges.iter().map(|privileges| ("Process", privileges.text())));
    lines.extend(s.store.iter().flat_map(Usage::counts));
    lines.extend(s.tag_trees.iter().map(|tree| ("TagNet", tree.text())));
    fields(&lines)
}
