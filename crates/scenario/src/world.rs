//! World: the network that a scenario describes, with its applications.
//!
//! Nodes have the order of [`Scenario::node_names`]. All times of the scenario count from [`World::origin_ns`].

use crate::check::name_of;
use crate::file::{Air, ConsumerKind, Link, LinkSettings, Node, NodeSettings, Producer, Routing, Scenario};
use crate::routes::Routes;
use crate::sync_member::{Publications, SyncMember, SyncOptions};
use crate::wishes::{self, Hours};
use anyhow::{Context as _, ensure};
use namewire_configuration::units::Span;
use namewire_designs::policies::catalogue::PolicyChoice;
use namewire_engine::{EngineConfig, FaceId, Schedule, Strategy, StrategyTable};
use namewire_packet::NameBuf;
use namewire_sim::{
    AirOptions, AirRange, AppId, Fetcher, FetcherOptions, LinkId, LinkOptions, Network, NodeId, NodeOptions, Requester,
    Track,
};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Data that a node's store holds unless the scenario says otherwise. The router's default would be 85 GB for a
/// thousand full stores.
const STORE_PACKETS: u64 = 1_000;
/// Packets that a router takes at once.
const BATCH_PACKETS: usize = 8;
/// How long an announcement of a producer lasts.
const ANNOUNCED_MS: u64 = 366 * 24 * 3600 * 1000;

/// Strategies that are not Namewire's own, by the names that scenarios give them.
#[derive(Clone, Default)]
pub struct OwnStrategies(Vec<(String, Arc<dyn Strategy>)>);

impl OwnStrategies {
    /// A scenario may say `strategy = NAME` from now on.
    pub fn with(mut self, name: &str, strategy: impl Strategy + 'static) -> Self {
        self.0.push((name.to_owned(), Arc::new(strategy)));
        self
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Strategy>> {
        self.0.iter().find(|own| own.0 == name).map(|own| Arc::clone(&own.1))
    }
}

/// The network and what is known of its parts.
pub(crate) struct World {
    pub(crate) net: Network,
    pub(crate) origin_ns: u64,
    pub(crate) nodes: Vec<PlacedNode>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) airs: Vec<PlacedAir>,
    pub(crate) consumers: Vec<PlacedConsumer>,
    pub(crate) groups: Vec<PlacedGroup>,
    pub(crate) producers: Vec<AppId>,
    pub(crate) routes: Routes,
    places: HashMap<String, usize>,
    wire_by_ends: HashMap<(usize, usize), usize>,
}

pub(crate) struct PlacedNode {
    pub(crate) name: String,
    pub(crate) id: NodeId,
}

/// A link, with the places of its ends.
pub(crate) struct Wire {
    pub(crate) ends: [usize; 2],
    pub(crate) faces: [FaceId; 2],
    pub(crate) link: LinkId,
    pub(crate) delay_ns: u64,
    pub(crate) is_up: bool,
}

pub(crate) struct PlacedAir {
    pub(crate) name: String,
    pub(crate) link: LinkId,
    /// Place and face of each member.
    pub(crate) members: Vec<(usize, FaceId)>,
}

/// A consumer at one node.
pub(crate) struct PlacedConsumer {
    pub(crate) group: String,
    pub(crate) kind: ConsumerKind,
    pub(crate) app: AppId,
    /// Seconds between its start and its stop.
    pub(crate) active_s: f64,
}

/// A sync group.
pub(crate) struct PlacedGroup {
    pub(crate) prefix: String,
    pub(crate) members: Vec<(usize, AppId)>,
}

impl World {
    /// # Errors
    /// If a file of the scenario is malformed, or a strategy or policy is unknown.
    pub(crate) fn build(scenario: &Scenario, seed: u64, own: &OwnStrategies) -> anyhow::Result<Self> {
        let net = Network::new(seed, 0);
        let mut world = World {
            origin_ns: net.now_ns(),
            net,
            nodes: Vec::new(),
            wires: Vec::new(),
            airs: Vec::new(),
            consumers: Vec::new(),
            groups: Vec::new(),
            producers: Vec::new(),
            routes: Routes::new(scenario.routing, scenario.next_hops),
            places: HashMap::new(),
            wire_by_ends: HashMap::new(),
        };
        world.net.set_event_limit(u64::MAX);
        world.add_nodes(scenario)?;
        world.add_wires(scenario);
        world.add_airs(scenario)?;
        world.set_strategies(scenario, own)?;
        for producer in &scenario.producer {
            world.add_producer(producer)?;
        }
        for sync in &scenario.sync {
            world.add_group(sync)?;
        }
        world.add_static_routes(scenario)?;
        world.add_consumers(scenario, seed)?;
        Ok(world)
    }

    fn add_nodes(&mut self, scenario: &Scenario) -> anyhow::Result<()> {
        let described: HashMap<&str, &Node> = scenario.node.iter().map(|node| (node.name.as_str(), node)).collect();
        for name in scenario.node_names() {
            let node = described.get(name).copied();
            let options = node_options(node, &scenario.node_defaults).with_context(|| format!("node {name}"))?;
            let id = self.net.add_node(options);
            let still = node.and_then(|node| Some(Track::still(node.x?, node.y?)));
            if let Some(track) = scenario.tracks.get(name).cloned().or(still) {
                self.net.place(id, track.from_ns(self.origin_ns));
            }
            self.places.insert(name.to_owned(), self.nodes.len());
            self.nodes.push(PlacedNode { name: name.to_owned(), id });
        }
        Ok(())
    }

    fn add_wires(&mut self, scenario: &Scenario) {
        for link in &scenario.link {
            let ends = [&link.a, &link.b].map(|name| self.places[name.as_str()]);
            let options = link_options(link, &scenario.link_defaults);
            let wire = self.net.connect(self.nodes[ends[0]].id, self.nodes[ends[1]].id, options);
            let is_up = link.up != Some(false);
            if !is_up {
                self.net.set_link_up(wire.link, false);
            }
            self.wire_by_ends.insert((ends[0].min(ends[1]), ends[0].max(ends[1])), self.wires.len());
            let faces = [wire.face_a, wire.face_b];
            self.wires.push(Wire { ends, faces, link: wire.link, delay_ns: options.delay_ns, is_up });
        }
    }

    fn add_airs(&mut self, scenario: &Scenario) -> anyhow::Result<()> {
        for air in &scenario.air {
            let link = self.net.add_air(air_options(air));
            let has_place = |name: &&str| {
                let node = scenario.node.iter().find(|node| node.name == **name);
                scenario.tracks.contains_key(*name) || node.is_some_and(|node| node.x.is_some() && node.y.is_some())
            };
            let placed: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).filter(has_place).collect();
            let members = if air.nodes.is_empty() { placed } else { air.nodes.iter().map(String::as_str).collect() };
            ensure!(members.len() >= 2, "medium {} has fewer than two nodes", air.name);
            let members: Vec<usize> = members.into_iter().map(|name| self.places[name]).collect();
            let joined = members.into_iter().map(|place| (place, self.net.join_air(link, self.nodes[place].id)));
            self.airs.push(PlacedAir { name: air.name.clone(), link, members: joined.collect() });
        }
        Ok(())
    }

    fn set_strategies(&mut self, scenario: &Scenario, own: &OwnStrategies) -> anyhow::Result<()> {
        let everywhere = match (&scenario.strategy, scenario.routing) {
            (Some(strategy), _) => Some(strategy.as_str()),
            (None, Routing::SelfLearning) => Some("self-learning"),
            (None, Routing::Flood) => Some("multicast"),
            (None, _) => None,
        };
        for place in 0..self.nodes.len() {
            let of_all = everywhere.map(|strategy| ("/", strategy));
            let name = self.nodes[place].name.clone();
            let of_node = scenario.node.iter().filter(|node| node.name == name).flat_map(|node| &node.strategy);
            let of_file = scenario.node_defaults.strategy.iter().chain(of_node);
            let choices =
                of_all.into_iter().chain(of_file.map(|(prefix, strategy)| (prefix.as_str(), strategy.as_str())));
            for (prefix, strategy) in choices {
                self.set_strategy(place, prefix, strategy, own)?;
            }
        }
        Ok(())
    }

    fn set_strategy(&mut self, place: usize, prefix: &str, strategy: &str, own: &OwnStrategies) -> anyhow::Result<()> {
        let node = self.nodes[place].id;
        name_of(prefix)?;
        if let Some(own) = own.find(strategy) {
            self.net.set_own_strategy(node, prefix, &format!("/own/strategy/{strategy}"), own);
            return Ok(());
        }
        let full =
            if strategy.starts_with('/') { strategy.to_owned() } else { format!("/localhost/nfd/strategy/{strategy}") };
        StrategyTable::default().resolve(&name_of(&full)?).with_context(|| format!("strategy {strategy}"))?;
        self.net.set_strategy(node, prefix, strategy);
        Ok(())
    }

    fn add_producer(&mut self, producer: &Producer) -> anyhow::Result<()> {
        let place = self.place(&producer.node)?;
        let application = namewire_sim::Producer::of_content(producer.content.0 as usize, millis(producer.freshness));
        let attached = self.net.attach(self.nodes[place].id, application.processing_ns(nanos(producer.processing)));
        self.offer(place, &producer.prefix, attached.face);
        self.producers.push(attached.app);
        Ok(())
    }

    /// The application at a face answers for a prefix.
    fn offer(&mut self, place: usize, prefix: &str, face: FaceId) {
        let node = self.nodes[place].id;
        if self.routes.are_learned() {
            self.net.announce(node, prefix, face, ANNOUNCED_MS);
        } else {
            self.net.add_route(node, prefix, face, 0);
        }
        let World { net, nodes, wires, airs, routes, .. } = self;
        routes.add_destination(prefix, place, net, nodes, wires, airs);
    }

    fn add_group(&mut self, sync: &crate::file::Sync) -> anyhow::Result<()> {
        let publications = Publications::shared();
        let options = SyncOptions {
            interval_ns: nanos(sync.interval),
            start_ns: self.origin_ns + nanos(sync.start),
            stop_ns: sync.stop.map_or(u64::MAX, |stop| self.origin_ns + nanos(stop)),
            content_bytes: sync.content.0 as usize,
            period_ms: millis(sync.period),
        };
        let mut members = Vec::new();
        for node in &sync.nodes {
            let place = self.place(node)?;
            let member = SyncMember::new(&name_of(&sync.prefix)?, node, options, Rc::clone(&publications));
            let [for_all, for_own] = member.prefixes().map(|prefix| prefix.to_string());
            let attached = self.net.attach(self.nodes[place].id, member);
            self.offer(place, &for_own, attached.face);
            self.offer(place, &for_all, attached.face);
            // Every member must hear every sync Interest.
            self.nodes.iter().for_each(|node| self.net.set_strategy(node.id, &for_all, "multicast"));
            members.push((place, attached.app));
        }
        self.groups.push(PlacedGroup { prefix: sync.prefix.clone(), members });
        Ok(())
    }

    fn add_static_routes(&mut self, scenario: &Scenario) -> anyhow::Result<()> {
        for route in &scenario.route {
            let place = self.place(&route.node)?;
            let face = match self.airs.iter().find(|air| air.name == route.to) {
                Some(air) => air.members.iter().find(|member| member.0 == place).map(|member| member.1),
                None => {
                    let to = self.place(&route.to)?;
                    self.wire_between(place, to).map(|wire| self.wires[wire].face_of(place))
                }
            };
            let face = face.with_context(|| format!("{} has no link to {}", route.node, route.to))?;
            self.net.add_route(self.nodes[place].id, &route.prefix, face, route.cost);
        }
        Ok(())
    }

    fn add_consumers(&mut self, scenario: &Scenario, seed: u64) -> anyhow::Result<()> {
        let end_ns = self.origin_ns + nanos(scenario.duration);
        for consumer in &scenario.consumer {
            let group = consumer.name.clone().unwrap_or_else(|| {
                let about = consumer.prefix.clone().or_else(|| {
                    let file = consumer.file.as_ref()?.file_name()?;
                    Some(file.to_string_lossy().into_owned())
                });
                format!("{} {}", consumer.kind.word(), about.unwrap_or_default())
            });
            let everywhere = consumer.nodes == ["*"];
            let names: Vec<String> = match everywhere {
                true => self.nodes.iter().map(|node| node.name.clone()).collect(),
                false => consumer.node.iter().chain(&consumer.nodes).cloned().collect(),
            };
            for node in names {
                let place = self.place(&node)?;
                let own = self.consumers.len();
                let start_ns = self.origin_ns + nanos(consumer.start);
                let stop_ns = consumer.stop.map_or(end_ns, |stop| (self.origin_ns + nanos(stop)).min(end_ns));
                let app = if consumer.kind == ConsumerKind::File {
                    let prefix = name_of(consumer.prefix.as_deref().context("a file has a prefix")?)?;
                    self.attach_fetcher(place, start_ns, fetcher_options(consumer, prefix))
                } else {
                    let rng = fastrand::Rng::with_seed(seed ^ (own as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    let plan = wishes::plan(consumer, own, &Hours { start_ns, stop_ns }, rng)?;
                    self.net.attach(self.nodes[place].id, Requester::new(plan.options, plan.wishes)).app
                };
                self.consumers.push(PlacedConsumer {
                    group: group.clone(),
                    kind: consumer.kind,
                    app,
                    active_s: stop_ns.saturating_sub(start_ns) as f64 / 1e9,
                });
            }
        }
        Ok(())
    }

    /// A fetch that begins at a time.
    fn attach_fetcher(&mut self, place: usize, start_ns: u64, options: FetcherOptions) -> AppId {
        self.net.attach(self.nodes[place].id, Fetcher::new(options).starting_at(start_ns)).app
    }

    /// # Errors
    /// If there is no such node.
    pub(crate) fn place(&self, name: &str) -> anyhow::Result<usize> {
        self.places.get(name).copied().with_context(|| format!("no node is called {name:?}"))
    }

    /// The number of the link between two places.
    pub(crate) fn wire_between(&self, one: usize, other: usize) -> Option<usize> {
        self.wire_by_ends.get(&(one.min(other), one.max(other))).copied()
    }
}

impl Wire {
    /// The face of one end.
    pub(crate) fn face_of(&self, place: usize) -> FaceId {
        self.faces[usize::from(self.ends[0] != place)]
    }
}

impl ConsumerKind {
    /// As in the file.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ConsumerKind::Names => "names",
            ConsumerKind::Ping => "ping",
            ConsumerKind::Stream => "stream",
            ConsumerKind::File => "file",
            ConsumerKind::Zipf => "zipf",
            ConsumerKind::Requests => "requests",
        }
    }
}

/// What a node is of which the scenario says nothing.
pub fn default_node() -> NodeOptions {
    node_options(None, &NodeSettings::default()).expect("the defaults are valid")
}

fn node_options(node: Option<&Node>, defaults: &NodeSettings) -> anyhow::Result<NodeOptions> {
    let own =
        |get: fn(&Node) -> Option<String>, default: &Option<String>| node.and_then(get).or_else(|| default.clone());
    let usual = NodeOptions::default();
    let mut engine = EngineConfig { schedule: Schedule::Naive, ..usual.engine };
    engine.cs_capacity_packets =
        node.and_then(|node| node.store_packets).or(defaults.store_packets).unwrap_or(STORE_PACKETS);
    engine.cs_capacity_bytes = engine.cs_capacity_packets.saturating_mul(16 << 10).max(64 << 10);
    if let Some(entries) = node.and_then(|node| node.pit_entries).or(defaults.pit_entries) {
        engine.pit_capacity_entries = entries;
        engine.record_capacity = entries;
    }
    let mut policy = PolicyChoice::default();
    if let Some(eviction) = own(|node| node.policy.clone(), &defaults.policy) {
        policy.eviction = eviction.parse()?;
    }
    if let Some(admission) = own(|node| node.admission.clone(), &defaults.admission) {
        policy.admission = admission.parse()?;
    }
    engine.cs_policy = policy.into();
    let processing = node.and_then(|node| node.processing).or(defaults.processing);
    Ok(NodeOptions {
        workers: node.and_then(|node| node.workers).or(defaults.workers).unwrap_or(1),
        engine,
        batch_packets: BATCH_PACKETS,
        processing_ns: processing.map_or(0, nanos),
        ..usual
    })
}

fn link_options(link: &Link, defaults: &LinkSettings) -> LinkOptions {
    LinkOptions {
        delay_ns: nanos(link.delay.unwrap_or(defaults.delay)),
        jitter_ns: nanos(link.jitter.unwrap_or(defaults.jitter)),
        loss: link.loss.unwrap_or(defaults.loss),
        bandwidth_bits_per_s: link.bandwidth.or(defaults.bandwidth).map(|rate| rate.0),
        queue_bytes: link.queue.unwrap_or(defaults.queue).0,
        mtu: link.mtu.unwrap_or(defaults.mtu),
        reliability: link.reliability.unwrap_or(defaults.reliability),
        ..LinkOptions::default()
    }
}

fn air_options(air: &Air) -> AirOptions {
    let usual = AirOptions::default();
    AirOptions {
        range: air.range.map(|range_m| AirRange { sure_m: air.sure.unwrap_or(range_m / 2.0), range_m }),
        loss: air.loss,
        bandwidth_bits_per_s: air.bandwidth.map_or(usual.bandwidth_bits_per_s, |rate| rate.0),
        queue_bytes: air.queue.map_or(usual.queue_bytes, |queue| queue.0),
        mtu: air.mtu.unwrap_or(usual.mtu),
        ..usual
    }
}

fn fetcher_options(consumer: &crate::file::Consumer, prefix: NameBuf) -> FetcherOptions {
    FetcherOptions {
        prefix,
        segments: consumer.names.unwrap_or(1_000),
        window_max: consumer.window.unwrap_or(512) as f64,
        interval_ns: consumer.interval.map_or(0, nanos),
        lifetime_ms: consumer.lifetime.map_or(4_000, millis),
        slow_start: true,
    }
}

pub(crate) fn nanos(span: Span) -> u64 {
    u64::try_from(span.0.as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn millis(span: Span) -> u64 {
    u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX)
}
