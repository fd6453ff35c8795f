//! Agenda: what changes in the network, in the order of time.

use crate::changes::{Change, Changes};
use crate::file::{Event, RandomFailures, Scenario};
use crate::generate::constellation::ChangeRow;
use crate::generate::failures::Failures;
use crate::world::{World, nanos};
use anyhow::Context as _;
use std::collections::VecDeque;

/// Changes that are still to come. Times are nanoseconds of the scenario.
pub(crate) struct Agenda {
    /// Of the scenario itself, by time.
    events: VecDeque<(u64, Step)>,
    file: Option<Changes>,
    next_of_file: Option<Change>,
    /// When routes follow the changes so far.
    recompute_at_ns: Option<u64>,
    routing_delay_ns: u64,
    changes: u64,
    recomputations: u64,
}

#[derive(Clone)]
enum Step {
    Link(Change),
    Node { place: usize, restart: bool, pause_ns: Option<u64> },
}

impl Agenda {
    /// # Errors
    /// If the file of changes is malformed.
    pub(crate) fn new(scenario: &Scenario, seed: u64, world: &World) -> anyhow::Result<Self> {
        let mut events = Vec::new();
        for event in &scenario.event {
            events.push((nanos(event.at), step(event, world)?));
        }
        for failure in failures(scenario, seed)? {
            events.push((failure.at_ns, Step::Link(failure)));
        }
        events.sort_by_key(|event| event.0);
        let mut file = scenario.changes_file.as_deref().map(Changes::open).transpose()?;
        let next_of_file = file.as_mut().map(Changes::next_change).transpose()?.flatten();
        Ok(Agenda {
            events: events.into(),
            file,
            next_of_file,
            recompute_at_ns: None,
            routing_delay_ns: nanos(scenario.routing_delay),
            changes: 0,
            recomputations: 0,
        })
    }

    /// When something changes next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let event_ns = self.events.front().map(|event| event.0);
        let of_file_ns = self.next_of_file.as_ref().map(|change| change.at_ns);
        [event_ns, of_file_ns, self.recompute_at_ns].into_iter().flatten().min()
    }

    /// Makes the changes up to a time, which has come.
    ///
    /// # Errors
    /// If the file of changes is malformed or names what is not there.
    pub(crate) fn apply(&mut self, now_ns: u64, world: &mut World) -> anyhow::Result<()> {
        while let Some((_, step)) = self.events.pop_front_if(|event| event.0 <= now_ns) {
            match step {
                Step::Link(change) => self.change_link(now_ns, &change, world)?,
                Step::Node { place, restart, pause_ns } => {
                    let node = world.nodes[place].id;
                    pause_ns.into_iter().for_each(|pause_ns| world.net.stand_still(node, pause_ns));
                    if restart {
                        world.net.restart(node);
                    }
                }
            }
        }
        while let Some(change) = self.next_of_file.take_if(|change| change.at_ns <= now_ns) {
            self.change_link(now_ns, &change, world)?;
            self.next_of_file = self.file.as_mut().map(Changes::next_change).transpose()?.flatten();
        }
        if self.recompute_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.recompute_at_ns = None;
            self.recomputations += 1;
            let World { net, nodes, wires, routes, .. } = world;
            routes.recompute(net, nodes, wires);
        }
        Ok(())
    }

    fn change_link(&mut self, now_ns: u64, change: &Change, world: &mut World) -> anyhow::Result<()> {
        let number = wire_of(change, world)?;
        let wire = &mut world.wires[number];
        let link = wire.link;
        wire.is_up = change.up.unwrap_or(wire.is_up);
        wire.delay_ns = change.delay_ns.unwrap_or(wire.delay_ns);
        change.up.into_iter().for_each(|up| world.net.set_link_up(link, up));
        change.loss.into_iter().for_each(|loss| world.net.set_loss(link, loss));
        change.delay_ns.into_iter().for_each(|delay_ns| world.net.set_delay(link, delay_ns));
        change.bandwidth.into_iter().for_each(|bandwidth| world.net.set_bandwidth(link, Some(bandwidth.0)));
        self.changes += 1;
        if world.routes.follow_links() && (change.up.is_some() || change.delay_ns.is_some()) {
            // Changes while routes are being computed wait for these.
            self.recompute_at_ns.get_or_insert(now_ns + self.routing_delay_ns);
        }
        Ok(())
    }

    /// Reads the changes to their end.
    ///
    /// # Errors
    /// If the file of changes is malformed or names what is not there.
    pub(crate) fn check(mut self, world: &World) -> anyhow::Result<()> {
        while let Some(change) = self.next_of_file.take() {
            wire_of(&change, world)?;
            self.next_of_file = self.file.as_mut().map(Changes::next_change).transpose()?.flatten();
        }
        Ok(())
    }

    /// Changes of links so far, and computations of routes.
    pub(crate) fn tally(&self) -> (u64, u64) {
        (self.changes, self.recomputations)
    }
}

/// The link of a change.
fn wire_of(change: &Change, world: &World) -> anyhow::Result<usize> {
    let (a, b) = (world.place(&change.a)?, world.place(&change.b)?);
    world.wire_between(a, b).with_context(|| format!("{} and {} have no link", change.a, change.b))
}

/// The random failures of a scenario.
fn failures(scenario: &Scenario, seed: u64) -> anyhow::Result<Vec<Change>> {
    let Some(RandomFailures { mean_up, mean_down, start }) = scenario.failures else { return Ok(Vec::new()) };
    let [mean_up_s, mean_down_s, start_s, duration_s] =
        [mean_up, mean_down, start, scenario.duration].map(|span| span.0.as_secs_f64());
    let rows = Failures { mean_up_s, mean_down_s, start_s, duration_s, seed }.of(&scenario.link)?;
    let change = |row: ChangeRow| Change {
        at_ns: (row.time * 1e9) as u64,
        a: row.a,
        b: row.b,
        up: Some(row.up == "up"),
        ..Change::default()
    };
    Ok(rows.into_iter().map(change).collect())
}

fn step(event: &Event, world: &World) -> anyhow::Result<Step> {
    if let Some(node) = &event.node {
        let place = world.place(node)?;
        return Ok(Step::Node { place, restart: event.restart, pause_ns: event.pause.map(nanos) });
    }
    let (a, b) = (event.a.clone().context("a link has ends")?, event.b.clone().context("a link has ends")?);
    Ok(Step::Link(Change {
        at_ns: nanos(event.at),
        a,
        b,
        up: event.up,
        delay_ns: event.delay.map(nanos),
        loss: event.loss,
        bandwidth: event.bandwidth,
    }))
}
