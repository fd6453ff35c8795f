//! The cost of routes: time to register, memory, and time of forwarding.
//!
//! Routes go through `rib/register` with [`WINDOW`] commands in flight, to the face of the registering connection. They
//! are synthetic prefixes of 2 to 6 components, 44 bytes on average ([`crate::synthetic_names`]). Memory is the growth
//! of the whole process from before the first command to after the last answer: RIB, FIB and everything else that
//! commands leave behind.

use anyhow::{Context as _, ensure};

use super::{Run, SETTLE, Subject, WINDOW};
use crate::clock::resolve_cpu_account;
use crate::process;
use crate::route_load::RouteLoad;
use crate::router_process::RouterProcess;
use crate::synthetic_names::SyntheticNames;

impl Run<'_> {
    /// Registers `routes` routes at `router` and records their cost as case `case`.
    pub(super) fn register_routes(
        &mut self,
        case: &'static str,
        subject: Subject,
        router: &RouterProcess,
        routes: u64,
    ) -> anyhow::Result<RouteLoad> {
        std::thread::sleep(SETTLE);
        let resident_kib = || process::resident_kib(router.id()).context("the router's memory cannot be read");
        let account_ns = || process::cpu_time_ns(router.id()).context("the router's CPU time cannot be read");
        let (kib_before, cpu_before_ns) = (resident_kib()?, account_ns()?);
        let names = SyntheticNames::new(self.context.seed, routes);
        let cpu = self.cpus.map(|cpus| cpus.1);
        // A thread of its own, because it is pinned to a processor.
        let worker = std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    cpu.map(process::stay_on).transpose()?;
                    let mut load = RouteLoad::connect(router.socket())?;
                    let elapsed = load.register(&names, WINDOW as usize)?;
                    anyhow::Ok((load, elapsed))
                })
                .join()
        });
        let (load, elapsed) = worker.map_err(|_| anyhow::anyhow!("the thread that registers failed"))??;
        std::thread::sleep(SETTLE);
        let grown_kib = resident_kib()?.saturating_sub(kib_before);
        let cpu_ns = account_ns()?.saturating_sub(cpu_before_ns);
        let entries = router.control()?.status()?.n_fib_entries;
        ensure!(entries >= routes, "{routes} routes were answered 200, the FIB has {entries} entries");
        let elapsed_ns = self.context.clock.resolve(elapsed.as_nanos() as u64);
        let (subject, table) = (subject.label(), &mut self.table);
        let per_s = elapsed_ns.map(|ns| routes as f64 * 1e9 / ns as f64);
        table.samples(case, &subject, "registered", "per s").add_resolved(per_s);
        let cpu_us = resolve_cpu_account(cpu_ns).map(|ns| ns as f64 / 1e3 / routes as f64);
        table.samples(case, &subject, "cpu", "µs per route").add_resolved(cpu_us);
        table.samples(case, &subject, "resident", "bytes per route").add(grown_kib as f64 * 1024.0 / routes as f64);
        Ok(load)
    }
}
