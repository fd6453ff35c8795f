//! TagNet: heavy tag packets together with NDN traffic, and forged hellos.
//!
//! *Heavy tags*: a neighbour of the tree announces sets of tags, and then sends pulls whose search visits a large part
//! of the table ([`crate::attack`]). The row is the 99th percentile of an honest remote application's round trips.
//!
//! *Forged hellos*: a router next to the root receives hellos of that root with other sequence numbers. The row is the
//! time from the end of the forger until the router has its place again: the true root, and a label of its epoch.

use super::Run;
use crate::{
    attack::FORGED_ROOT,
    experiment::Scale,
    load::LoadReport,
    namespaces::Peer,
    process::BoundProcess,
    router_process::{RouterProcess, run_load},
};
use anyhow::Context as _;
use namewire_packet::nfd::{TagTree, decode_dataset};
use std::{
    net::SocketAddr,
    process::Stdio,
    time::{Duration, Instant},
};

/// Steps of the experiment for each number of workers.
pub(super) const STEPS: usize = 2;
/// Heavy packets per second.
const HEAVY_RATE: u64 = 1_200;
/// Forged hellos per second.
const FORGED_RATE: u64 = 20;
const FORGED_S: u64 = 4;
/// Longest wait for a place in the tree.
const PLACE_LIMIT: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Announced sets of tags, and the time in which they are announced.
const fn announced(scale: Scale) -> (u64, Duration) {
    match scale {
        Scale::Smoke => (500, Duration::from_secs(4)),
        Scale::Quick | Scale::Full => (60_000, Duration::from_secs(20)),
    }
}

impl Run<'_> {
    /// Both attacks.
    pub(super) fn measure_tagnet(&mut self, workers: usize) -> anyhow::Result<()> {
        let subject = if workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
        self.context.begin_step(&format!("heavy tags, {subject}"))?;
        let (before, during) = self.heavy_tags(workers).context("heavy tags")?;
        for (metric, report) in [("NDN RTT p99 before", &before), ("NDN RTT p99", &during)] {
            self.table.add("heavy tags, UDP", &subject, metric, "ms", f64::from(report.latency_ns_p99) / 1e6);
        }
        let goodput = during.satisfied as f64 / during.sent.max(1) as f64;
        self.table.add("heavy tags, UDP", &subject, "remote goodput", "of 1", goodput);
        self.context.begin_step(&format!("forged hellos, {subject}"))?;
        let back_s = self.forged_hellos(workers).context("forged hellos")?;
        self.table.add("forged hellos, UDP", &subject, "back in the tree", "s", back_s);
        Ok(())
    }

    /// An honest load before the attack, and one under it.
    fn heavy_tags(&mut self, workers: usize) -> anyhow::Result<(LoadReport, LoadReport)> {
        let mut router = self.start_tag_router(workers, self.network.listens(), "router_number = 1\n")?;
        let before = self.remote_load(&router.0)?;
        let (sets, lead) = announced(self.context.scale);
        let seconds = lead.as_secs() + u64::from(self.size.honest_s) + 2;
        let arguments = [("--rate", HEAVY_RATE), ("--seconds", seconds), ("--sets", sets)];
        let attack = self.start_tag_attack("heavy-tags", &router.0, &arguments)?;
        std::thread::sleep(lead);
        let during = self.remote_load(&router.0)?;
        let known = trees(&router.0)?.first().map_or(0, |tree| tree.descriptors);
        anyhow::ensure!(known >= sets * 9 / 10, "only {known} of {sets} sets were announced in {lead:?}");
        drop(attack);
        anyhow::ensure!(router.0.is_alive()?, "the router did not survive the attack");
        Ok((before, during))
    }

    /// Seconds from the end of the forger until the router is back in the tree.
    fn forged_hellos(&mut self, workers: usize) -> anyhow::Result<f64> {
        let listens = self.network.listens();
        let root_listens = SocketAddr::new(listens.ip(), listens.port() + 1);
        let root = self.start_tag_router(1, root_listens, &format!("router_number = {FORGED_ROOT}\n"))?;
        let more = format!("router_number = 2\n[[face]]\nuri = \"udp4://{root_listens}\"\n");
        let mut router = self.start_tag_router(workers, listens, &more)?;
        wait_for_place(&router.0, &root.0)?;
        let attack =
            self.start_tag_attack("forged-hellos", &router.0, &[("--rate", FORGED_RATE), ("--seconds", 60)])?;
        std::thread::sleep(Duration::from_secs(FORGED_S));
        drop(attack);
        let ended = Instant::now();
        wait_for_place(&router.0, &root.0)?;
        anyhow::ensure!(router.0.is_alive()?, "the router did not survive the attack");
        Ok(ended.elapsed().as_secs_f64())
    }

    /// A router in tree 1, which hears any neighbour; with its configuration.
    fn start_tag_router(
        &self,
        workers: usize,
        listens: SocketAddr,
        more: &str,
    ) -> anyhow::Result<(RouterProcess, tempfile::NamedTempFile)> {
        let file = tempfile::NamedTempFile::new()?;
        let faces = format!("[faces.udp]\nlisten = [\"{listens}\"]\n[faces.tcp]\nenabled = false\n");
        std::fs::write(file.path(), format!("{faces}[tagnet]\ntrees = [1]\nneighbours = \"any\"\n{more}"))?;
        let mut command = self.network.on_router(&self.program);
        command.args(["run", "--workers", &workers.to_string(), "--config"]).arg(file.path());
        Ok((RouterProcess::start_command(command, listens, None)?, file))
    }

    fn start_tag_attack(
        &self,
        attack: &str,
        router: &RouterProcess,
        numbers: &[(&str, u64)],
    ) -> anyhow::Result<BoundProcess> {
        let mut command = self.network.on_peers(&self.context.program);
        command.args(["attack", attack, "--way", "udp", "--router", &router.udp().to_string()]);
        command.args(["--bind", &Peer::Hostile.address().to_string()]);
        for (option, number) in numbers {
            command.args([*option, &number.to_string()]);
        }
        BoundProcess::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()), None)
    }

    /// What a remote application gets at the honest rate.
    fn remote_load(&mut self, router: &RouterProcess) -> anyhow::Result<LoadReport> {
        self.loads += 1;
        let count = self.size.rate * self.size.honest_s;
        let mut command = self.network.on_peers(&self.context.program);
        command.args(["load", "--transport", "udp"]).arg("--socket").arg(router.socket());
        command.args(["--udp", &router.udp().to_string(), "--bind", &Peer::Honest.address().to_string()]);
        for (option, value) in [
            ("--count", count),
            ("--rate", self.size.rate),
            ("--window", count),
            ("--give-up", count),
            ("--lifetime-ms", 1_000),
            ("--stream", u32::from(2 * self.loads)),
        ] {
            command.args([option, &value.to_string()]);
        }
        run_load(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()), None)
    }
}

fn trees(router: &RouterProcess) -> anyhow::Result<Vec<TagTree>> {
    Ok(decode_dataset(&router.control()?.dataset("tags/trees")?)?)
}

/// Waits until the router has the root, and a label of the root's epoch.
fn wait_for_place(router: &RouterProcess, root: &RouterProcess) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let (of_router, of_root) = (trees(router)?, trees(root)?);
        if let ([own], [theirs]) = (&of_router[..], &of_root[..])
            && own.root == theirs.router
            && own.parent.is_some()
            && own.epoch == theirs.epoch
            && !own.label.is_empty()
        {
            return Ok(());
        }
        anyhow::ensure!(began.elapsed() < PLACE_LIMIT, "the router has no place in the tree: {of_router:?}");
        std::thread::sleep(LOOK_INTERVAL);
    }
}
