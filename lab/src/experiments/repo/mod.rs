//! How many Data does a repository store and serve in a second, and what limits it: the store, or the parts in front of
//! it?
//!
//! Source: Yuan15 §6.2, Figs. 6.4 to 6.7: repo-ng behind NFD, over SQLite and over Redis, with and without repo-ng's
//! index of names. There the daemon, the repository's interface and the client were the limits, never the store.
//!
//! | case | what is asked | how |
//! | --- | --- | --- |
//! | store alone | the store, in this process | `store_alone.rs`: one call for each batch |
//! | whole stack | client → router → repository → store | `clients.rs`, `stack.rs`: Unix sockets, separate processes |
//! | bulk insertion | client → repository → store | one TCP connection |
//! | 3 routers and repositories | the same, three times, over one Redis server | as the paper's Fig. 6.6 |
//! | redis-benchmark | a Redis server | `redis.rs`: the same number of requests in flight |
//! | ndn-python-repo | client → the same router → ndn-python-repo | `python_repo.rs` |
//!
//! Each repetition has fresh stores, and repetitions are interleaved. Every Data that comes back is compared byte by
//! byte. The router's Content Store is off, and the repository's counters must show every read and every write. SQLite
//! and the embedded store wait for the disk at each commit; Redis keeps what it has in memory.
//!
//! Limits: clients, router, repository and Redis share the processors, which the paper's did not.

mod clients;
mod outcome;
mod packets;
mod python_repo;
mod redis;
mod stack;
mod store_alone;
mod stores;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use namewire_repo::store::index::Index;

use self::clients::{Counted, WINDOW};
use self::packets::ObjectPackets;
use self::redis::{BenchmarkPlan, RedisPrograms, RedisServer};
use self::stack::Stack;
use self::store_alone::WRITE_BATCH;
use self::stores::{SUBJECTS, Subject};
use crate::experiment::{Context, Outcome};
use crate::router_process::find_program;
use crate::sample_table::SampleTable;
use serde::Deserialize;

pub(super) const FILE: &str = include_str!("experiment.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    /// Data in the store.
    data: Vec<usize>,
    /// Data in ndn-python-repo.
    python_data: usize,
    repetitions: u64,
}

/// Cases of the record.
const ALONE: &str = "store alone";
const STACK: &str = "whole stack, 1 client";
const STACK_TWO: &str = "whole stack, 2 clients";
const BULK_STACK: &str = "bulk insertion, 1 client";
const THREE: &str = "3 routers and repositories, 1 server";
const UNPIPELINED: &str = "Redis alone, 50 connections, no pipelining";
const UNPIPELINED_TCP: &str = "Redis alone, 50 connections, no pipelining, TCP";
/// Subjects beside the stores.
const HOSTED: &str = "embedded, inside the router";
const BENCHMARK: &str = "redis-benchmark";
const PYTHON: &str = "ndn-python-repo";
/// Metrics.
const READS: &str = "reads";
const WRITES: &str = "writes";

struct Run<'a> {
    context: &'a Context,
    program: PathBuf,
    redis: Option<RedisPrograms>,
    python: Option<PathBuf>,
    table: SampleTable,
    /// Data in the store, now.
    data: usize,
    /// What a case is called in addition to its name: nothing for the first size.
    suffix: String,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let size: Size = context.size(FILE)?;
    let mut run = Run {
        context,
        program: find_program(&context.program)?,
        redis: RedisPrograms::find(),
        python: python_repo::find(),
        table: SampleTable::default(),
        data: 0,
        suffix: String::new(),
    };
    let mut steps: Vec<Step> = SUBJECTS.map(Step::Alone).to_vec();
    steps.push(Step::Benchmark);
    steps.extend([1, 2].iter().flat_map(|&clients| SUBJECTS.map(|subject| Step::Stack(subject, clients))));
    steps.extend([Step::Hosted, Step::Bulk(Subject::Embedded), Step::Bulk(Subject::Redis(Index::None)), Step::Three]);
    context.plan_steps((steps.len() * size.data.len() + 1) * size.repetitions as usize);
    for repetition in 0..size.repetitions {
        for (place, &data) in size.data.iter().enumerate() {
            run.data = data;
            run.suffix = if place == 0 { String::new() } else { format!(", {data} Data") };
            steps.iter().try_for_each(|step| run.measure(*step, &size, repetition))?;
        }
        run.suffix.clear();
        run.measure(Step::Python, &size, repetition)?;
    }
    run.data = size.data[0];
    let again = run.measure_again(&size)?;
    let mut outcome = outcome::outcome(&run);
    if again > 0 {
        outcome.notes.push(format!(
            "Headlines that spread too far were measured again, up to {again} times: other work may have disturbed them."
        ));
    }
    Ok(outcome)
}

/// How often unsteady headlines are measured again.
const AGAIN_MAX: u32 = 3;

/// What is measured at once, with fresh stores.
#[derive(Clone, Copy, Debug)]
enum Step {
    Alone(Subject),
    Benchmark,
    /// With this number of clients.
    Stack(Subject, usize),
    Hosted,
    Bulk(Subject),
    Three,
    Python,
}

impl Step {
    /// Case and subject of its rows.
    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Alone(subject) => (ALONE, subject.label()),
            Self::Benchmark => (ALONE, BENCHMARK),
            Self::Stack(subject, clients) => (if clients == 1 { STACK } else { STACK_TWO }, subject.label()),
            Self::Hosted => (STACK, HOSTED),
            Self::Bulk(subject) => (BULK_STACK, subject.label()),
            Self::Three => (THREE, Subject::Redis(Index::None).label()),
            Self::Python => (STACK, PYTHON),
        }
    }
}

impl Run<'_> {
    fn measure(&mut self, step: Step, size: &Size, repetition: u64) -> anyhow::Result<()> {
        let (case, subject) = step.row();
        let (what, seed) = (format!("{case}: {subject}"), self.context.seed ^ repetition << 32);
        self.context.begin_step(&what)?;
        let measured = match step {
            Step::Alone(subject) => self.alone(subject, seed),
            Step::Benchmark => self.redis_benchmark(),
            Step::Stack(subject, clients) => self.whole_stack(subject, clients, seed),
            Step::Hosted => Stack::start_hosted(&self.program)
                .and_then(|hosted| self.exchange(case, subject, &[hosted], 1, true, seed)),
            Step::Bulk(subject) => self.bulk(subject, seed),
            Step::Three => self.three_stacks(seed),
            Step::Python => self.python_repo(size.python_data, seed),
        };
        measured.context(what)
    }

    /// Measures unsteady headlines again, in place of their repetitions so far; returns how often.
    fn measure_again(&mut self, size: &Size) -> anyhow::Result<u32> {
        for again in 0..AGAIN_MAX {
            let unsteady = outcome::unsteady_steps(self);
            if unsteady.is_empty() {
                return Ok(again);
            }
            for steps in unsteady {
                for (case, subject) in steps.iter().map(|step| step.row()) {
                    self.table.forget(case, subject);
                }
                for repetition in 0..size.repetitions {
                    steps.iter().try_for_each(|step| self.measure(*step, size, repetition))?;
                }
            }
        }
        Ok(AGAIN_MAX)
    }

    /// A store in this process.
    fn alone(&mut self, subject: Subject, seed: u64) -> anyhow::Result<()> {
        let Some(redis) = self.server_for(subject, ALONE)? else { return Ok(()) };
        let folder = stack::store_folder()?;
        let object = ObjectPackets::new(0, self.data, seed);
        let store = subject.open(folder.path(), redis.as_ref())?;
        let took = store_alone::write_all(self.context, &*store, &object)?;
        self.add(ALONE, subject.label(), WRITES, self.data, took);
        if subject.can_read() {
            let took = store_alone::read_all(self.context, &*store, &object, seed)?;
            self.add(ALONE, subject.label(), READS, self.data, took);
        }
        Ok(())
    }

    /// `redis-benchmark` with as many requests in flight as a store alone, and then as in the paper: over a Unix socket
    /// and over TCP.
    fn redis_benchmark(&mut self) -> anyhow::Result<()> {
        let Some(programs) = &self.redis else {
            self.refuse_redis(ALONE, BENCHMARK);
            return Ok(());
        };
        let (server, tcp_server) = (programs.start()?, programs.start_on_tcp()?);
        let pipelined = BenchmarkPlan {
            keys: self.data,
            requests_per_key: 4,
            connections: 1,
            sets_together: WRITE_BATCH,
            gets_together: WINDOW,
        };
        let as_paper =
            BenchmarkPlan { requests_per_key: 1, connections: 50, sets_together: 1, gets_together: 1, ..pipelined };
        let ways =
            [(ALONE, &server, pipelined), (UNPIPELINED, &server, as_paper), (UNPIPELINED_TCP, &tcp_server, as_paper)];
        for (case, server, plan) in ways {
            let rate = programs.benchmark(server, plan)?;
            let case = format!("{case}{}", self.suffix);
            self.table.add(&case, BENCHMARK, WRITES, PER_S, rate.sets_per_s);
            self.table.add(&case, BENCHMARK, READS, PER_S, rate.gets_per_s);
        }
        Ok(())
    }

    /// A repository beside a router, which stores the objects of some clients and then serves them.
    fn whole_stack(&mut self, subject: Subject, clients: usize, seed: u64) -> anyhow::Result<()> {
        let case = if clients == 1 { STACK } else { STACK_TWO };
        let Some(redis) = self.server_for(subject, case)? else { return Ok(()) };
        let stack = Stack::start(&self.program, subject, redis.as_ref())?;
        self.exchange(case, subject.label(), &[stack], clients, subject.can_read(), seed)
    }

    /// Bulk insertion into a repository beside a router.
    fn bulk(&mut self, subject: Subject, seed: u64) -> anyhow::Result<()> {
        let Some(redis) = self.server_for(subject, BULK_STACK)? else { return Ok(()) };
        let object = ObjectPackets::new(0, self.data, seed);
        let stack = Stack::start(&self.program, subject, redis.as_ref())?;
        let took = clients::insert_in_bulk(stack.bulk()?, &object)?;
        let counted = clients::counted(stack.router.socket())?;
        ensure!(counted.writes == self.data as u64, "{counted:?} after {} writes", self.data);
        self.add(BULK_STACK, subject.label(), WRITES, self.data, took);
        Ok(())
    }

    /// Three routers, each with a repository and a client, over one server.
    fn three_stacks(&mut self, seed: u64) -> anyhow::Result<()> {
        let subject = Subject::Redis(Index::None);
        let Some(redis) = self.server_for(subject, THREE)? else { return Ok(()) };
        let stacks = (0..3).map(|_| Stack::start(&self.program, subject, redis.as_ref()));
        let stacks = stacks.collect::<anyhow::Result<Vec<_>>>()?;
        self.exchange(THREE, subject.label(), &stacks, 3, true, seed)
    }

    /// Insertions by command, and then reads; each client has its part of the Data.
    fn exchange(
        &mut self,
        case: &str,
        subject: &str,
        stacks: &[Stack],
        clients: usize,
        can_read: bool,
        seed: u64,
    ) -> anyhow::Result<()> {
        let objects: Vec<_> =
            (0..clients).map(|client| ObjectPackets::new(client, self.data / clients, seed)).collect();
        let sockets: Vec<&Path> = stacks.iter().map(|stack| stack.router.socket()).collect();
        let total = self.data / clients * clients;
        let before = count_all(&sockets)?;
        let took = clients::insert_objects(&sockets, &objects)?;
        let between = count_all(&sockets)?;
        ensure!(between.writes - before.writes >= total as u64, "{before:?}, {total} writes, {between:?}");
        self.add(case, subject, WRITES, total, took);
        if can_read {
            let took = clients::read_objects(&sockets, &objects, seed)?;
            let after = count_all(&sockets)?;
            let seen = (after.reads - between.reads, after.hits - between.hits);
            ensure!(seen == (total as u64, total as u64), "{between:?}, {total} reads, {after:?}");
            self.add(case, subject, READS, total, took);
        }
        Ok(())
    }

    fn python_repo(&mut self, data: usize, seed: u64) -> anyhow::Result<()> {
        let Some(python_repo) = self.python.clone() else {
            for (case, metric) in [(STACK, READS), (BULK_STACK, WRITES)] {
                let reason = "not available: ndn-python-repo is not installed (tools/setup.sh interop)";
                self.table.samples(case, PYTHON, metric, PER_S).refuse(reason.to_owned());
            }
            return Ok(());
        };
        let object = ObjectPackets::new(0, data, seed);
        let times = python_repo::measure(&self.program, &python_repo, &object, seed).context(PYTHON)?;
        self.add(BULK_STACK, PYTHON, WRITES, data, times.bulk);
        self.add(STACK, PYTHON, READS, data, times.reads);
        Ok(())
    }

    /// The server that a subject needs; the outer `None` if it cannot be measured here.
    fn server_for(&mut self, subject: Subject, case: &str) -> anyhow::Result<Option<Option<RedisServer>>> {
        match (subject.needs_redis(), &self.redis) {
            (false, _) => Ok(Some(None)),
            (true, Some(programs)) => Ok(Some(Some(programs.start()?))),
            (true, None) => {
                self.refuse_redis(case, subject.label());
                Ok(None)
            }
        }
    }

    fn refuse_redis(&mut self, case: &str, subject: &str) {
        for metric in [READS, WRITES] {
            let case = format!("{case}{}", self.suffix);
            let reason = "not available: redis-server is not installed (tools/setup.sh redis)";
            self.table.samples(&case, subject, metric, PER_S).refuse(reason.to_owned());
        }
    }

    fn add(&mut self, case: &str, subject: &str, metric: &'static str, count: usize, took: Duration) {
        let resolved = self.context.clock.resolve(took.as_nanos() as u64);
        let per_s = resolved.map(|ns| count as f64 * 1e9 / ns as f64);
        self.table.samples(&format!("{case}{}", self.suffix), subject, metric, PER_S).add_resolved(per_s);
    }
}

/// The unit of all rates.
const PER_S: &str = "per s";

/// What the repositories behind these routers have counted together.
fn count_all(sockets: &[&Path]) -> anyhow::Result<Counted> {
    let mut all = Counted { reads: 0, hits: 0, writes: 0 };
    for socket in sockets {
        let one = clients::counted(socket)?;
        all = Counted { reads: all.reads + one.reads, hits: all.hits + one.hits, writes: all.writes + one.writes };
    }
    Ok(all)
}
