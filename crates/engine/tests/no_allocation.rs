//! After its construction the engine allocates nothing: not for a packet of any kind, a timer, the limits of its
//! tables, or changes of faces and next hops. The test is in a separate file because it counts the allocations of the
//! whole process.

use namewire_engine::{
    CoreConfig, Counters, CsReport, DropReason, EngineConfig, FaceId, Frame, LimitMet, LinkType, PitRole, Schedule,
    UnsolicitedPolicy, View, batch::measured::MeasuredOrder, dispatch::Visits,
};
use namewire_packet::{Interest, NackReason, lp::PitToken};
use namewire_tables::{
    CsPolicy, NameHashes, PrefixLookup,
    fingerprint_pit::{FaceList, FingerprintPitConfig},
};
use namewire_testbed::{
    counting_allocator::{CountingAllocator, without_allocation},
    *,
};
use std::collections::VecDeque;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// An Interest that was forwarded, and may be answered.
struct Pending {
    from: FaceId,
    name: String,
    nonce: u32,
    token: Option<PitToken>,
}

/// One of two workers, with tables so small that every limit is met, and its neighbours.
struct World {
    node: Forwarder,
    rng: fastrand::Rng,
    pending: VecDeque<Pending>,
    handed_over: usize,
    route_requests: usize,
}

const FACES: [FaceId; 8] = [A, B, C, D, L, M, X, H];

/// More components than hashes are kept inline.
const LONG_DELEGATION: &str = "/none/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r/s/t/u/v/w/x/y/z";

impl World {
    fn new(
        cs_policy: CsPolicy,
        schedule: Schedule,
        (unsolicited, pit_role): (UnsolicitedPolicy, PitRole),
        seed: u64,
    ) -> Self {
        let mut node = Forwarder::with_workers(
            EngineConfig {
                pit_capacity_entries: 70,
                pit_role,
                face_share_percent: 90, // so that faces and holders come to an end of their share
                record_capacity: 12,
                interest_overflow_bytes: 6_000,
                cs_capacity_bytes: 60_000,
                cs_capacity_packets: 150,
                cs_policy,
                cs_prefix_lookup: match unsolicited {
                    UnsolicitedPolicy::AdmitAll => PrefixLookup::All,
                    _ => PrefixLookup::Own,
                },
                cs_counted_prefixes: vec![uri("/best"), uri("/")],
                dead_nonce_capacity: 100,
                measurement_capacity: 20,
                region_names: vec![uri("/region/here")],
                schedule,
                unsolicited,
                ..EngineConfig::default()
            },
            2,
        );
        node.route("/best", &[B, C, L]);
        node.route_with("/all", &[A, C, X, H], "multicast");
        node.route("/localhop", &[B, M]);
        node.route_with("/asf", &[B, C, D, H], "asf/v=5/probing-interval~1000/max-timeouts~2");
        for n in 0..40 {
            node.route_with(&format!("/asf/{n}"), &[B, C, D, H], "asf/v=5/probing-interval~1000");
        }
        node.route_with("/access", &[B, C, L], "access");
        node.route_with("/random", &[B, C, D], "random");
        node.route_with("/discover", &[], "self-learning");
        node.route_with("/learned", &[B, C], "self-learning");
        node.know_announcement("/learned");
        for face in [B, C, M] {
            node.send_tokens(face);
        }
        Self { node, rng: fastrand::Rng::with_seed(seed), pending: VecDeque::new(), handed_over: 0, route_requests: 0 }
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.usize(..choices.len())]
    }

    /// Few enough names that they repeat; some are too long to be stored inline.
    fn name(&mut self) -> String {
        let root = self.choose(&[
            "/best",
            "/best",
            "/all",
            "/all",
            "/localhop",
            "/localhost",
            "/none",
            "/asf",
            "/access",
            "/random",
            "/discover",
            "/learned",
        ]);
        let tail = if self.rng.u8(..8) == 0 { "/long".repeat(30) } else { String::new() };
        format!("{root}/{}{tail}", self.rng.u32(..400))
    }

    fn interest(&mut self) -> (FaceId, Packet) {
        if self.rng.u8(..15) == 0
            && let Some(Pending { name, nonce, .. }) = self.pending.back()
        {
            let looped = interest(name, *nonce);
            return (self.choose(&FACES), looped);
        }
        let (name, nonce) = (self.name(), self.rng.u32(..));
        let by_digest = self.rng.u8(..20) == 0;
        let name = if by_digest { full_name(&fresh_data(&name, 0)) } else { name };
        let mut packet = if self.rng.u8(..10) == 0 { bare_interest(&name) } else { interest(&name, nonce) };
        packet = packet.lifetime_ms(self.choose(&[0, 10, 100, 4000]));
        let odd = |world: &mut Self, one_in: u8| world.rng.u8(..one_in) == 0;
        packet = if odd(self, 5) { packet.can_be_prefix() } else { packet };
        packet = if odd(self, 5) { packet.must_be_fresh() } else { packet };
        packet = if odd(self, 5) { packet.hop_limit(self.choose(&[0, 1, 200])) } else { packet };
        packet = if odd(self, 9) { packet.hint(&[self.choose(&["/region", "/all", LONG_DELEGATION])]) } else { packet };
        packet = if odd(self, 9) { packet.parameters(&[1; 300]) } else { packet };
        packet = if odd(self, 3) { packet.token(&[7; 9]) } else { packet };
        packet = if odd(self, 20) { packet.next_hop(D) } else { packet };
        packet.headers.non_discovery = odd(self, 4);
        (self.choose(&FACES), packet)
    }

    /// Any packet that may come at any moment. Answers are to Interests that were sent before.
    fn packet(&mut self) -> (FaceId, Packet) {
        let answered = match self.rng.u8(..10) {
            0..=4 => return self.interest(),
            5..=8 => self.pending.pop_front(),
            _ => None,
        };
        let Some(Pending { from, name, nonce, token }) = answered else {
            let unasked = fresh_data(&self.name(), 50);
            let malformed = Packet::raw(vec![5, 200, 7]);
            let packet = if self.rng.bool() { unasked } else { malformed };
            return (self.choose(&FACES), packet);
        };
        let mut packet = match self.rng.u8(..4) {
            0 => nack(self.choose(&[NackReason::Congestion, NackReason::NoRoute, NackReason::Duplicate]), &name, nonce),
            _ if self.rng.u8(..4) == 0 => data(&format!("{name}/below")),
            _ => fresh_data(&name, 50),
        };
        packet.headers.pit_token = token.filter(|_| self.rng.bool());
        if packet.headers.nack.is_none() && name.starts_with("/discover") {
            packet = packet.announcing("/discover");
        }
        packet = if self.rng.u8(..20) == 0 { packet.no_cache() } else { packet };
        (from, packet)
    }

    /// All faces ask for the same few names at once.
    fn crowd(&mut self, place: usize) -> (FaceId, Packet) {
        let packet = interest(&format!("/best/crowd/{}", place % 8), self.rng.u32(..)).must_be_fresh();
        (FACES[place / 8], packet)
    }

    fn batch(&mut self, is_crowd: bool, measured: Option<MeasuredOrder>) {
        let mut scratch = NameHashes::with_full_room();
        let mut received: Vec<(FaceId, Packet, Visits)> = Vec::new();
        for place in 0..64 {
            let (face, packet) = if is_crowd { self.crowd(place) } else { self.packet() };
            let mut visits = Visits::default();
            without_allocation("dispatch", || {
                visits = self.node.dispatcher.route(0, &packet.headers, &packet.wire, &mut scratch);
                visits.take(0);
            });
            received.push((face, packet, visits));
        }
        let mut frames: Vec<Frame<'_>> = received
            .iter_mut()
            .map(|(face, packet, visits)| Frame {
                face: *face,
                headers: packet.headers,
                packet: &mut packet.wire,
                visits: *visits,
            })
            .collect();
        let mut worker = self.node.worker(0);
        without_allocation("a batch", || match measured {
            None => worker.process(&mut frames),
            Some(order) => {
                worker.process_measured(&mut frames, order, || 0);
            }
        });
        self.handed_over += worker.out.hand_over.len();
        self.route_requests += worker.out.route_requests.len();
        for sent in worker.sent(&frames) {
            if let Ok(interest) = Interest::parse(sent.packet())
                && sent.headers.nack.is_none()
            {
                self.pending.push_back(Pending {
                    from: sent.face,
                    name: interest.name().to_string(),
                    nonce: interest.nonce().map_or(0, |nonce| nonce.to_u32()),
                    token: sent.headers.pit_token,
                });
            }
        }
        self.pending.truncate(300);
    }

    /// Time passes, and due timers are served.
    fn wait(&mut self) {
        self.node.now = self.node.now.plus_ms(self.choose(&[0, 0, 1, 5, 30, 300]));
        let Worker { engine, now, view, out } = self.node.worker(0);
        without_allocation("timers", || {
            while engine.next_deadline().is_some_and(|deadline| deadline <= now) {
                engine.run_timers(now, &view, out);
            }
        });
    }

    fn change_faces_and_next_hops(&mut self) {
        let Worker { engine, now, view, out } = self.node.worker(0);
        let gained = [(uri("/all"), C), (uri("/all/of"), C)];
        without_allocation("a new next hop", || {
            engine.new_next_hops(now, &view, &gained, out);
        });
        let (faces, mut lost) = (view.faces, view.faces.clone());
        lost.remove(C);
        lost.remove(D);
        let view = View { faces: &lost, ..view };
        without_allocation("faces down", || {
            engine.faces_down(now, &view, &[D], out);
        });
        without_allocation("faces removed", || {
            engine.faces_removed(now, &view, &[A, C, L], out);
        });
        let view = View { faces, ..view };
        without_allocation("faces up", || {
            engine.faces_up(now, &view, &[C, D], out);
        });
    }

    /// Batches, timers, changes.
    fn live(&mut self, measured: Option<MeasuredOrder>) {
        for round in 0..400 {
            self.batch(round % 10 == 0, measured);
            self.wait();
            if round % 20 == 0 {
                self.change_faces_and_next_hops();
            }
            if round == 200 {
                let engine = &mut self.node.engines[0];
                without_allocation("a smaller store", || engine.configure_cs(20_000, 50, true, true));
                let mut report = CsReport::default();
                engine.cs_report(&mut report);
                without_allocation("a report", || engine.cs_report(&mut report));
            }
        }
    }

    fn counters(&self) -> Counters {
        self.node.engines[0].counters()
    }
}

fn run(cs_policy: CsPolicy, schedule: Schedule, unsolicited: UnsolicitedPolicy, measured: Option<MeasuredOrder>) {
    let mut world = World::new(cs_policy, schedule, (unsolicited, PitRole::Edge), 5);
    assert_eq!(world.node.faces.get(X).map(|face| face.link_type), Some(LinkType::MultiAccess));
    world.live(measured);
    // Every kind of end occurred, and every limit.
    let counters = world.counters();
    let met = [
        ("hits", counters.cs_hits),
        ("satisfied", counters.satisfied),
        ("expired", counters.unsatisfied),
        ("aggregated", counters.aggregated),
        ("Nacks in", counters.in_nacks),
        ("Nacks out", counters.out_nacks),
        ("handed over", world.handed_over as u64),
        ("route requests", world.route_requests as u64),
        ("measurements evicted", counters.met(LimitMet::MeasurementEvicted)),
        ("names kept for the store", world.node.engines[0].cs_len() as u64),
    ];
    for (what, times) in met {
        assert!(times > 10, "{what}: {times}; {counters:?}");
    }
    let mut reasons = vec![
        DropReason::PitShareUsed,
        DropReason::FaceShareUsed,
        DropReason::PitOverflowFull,
        DropReason::InRecordsFull,
        DropReason::DuplicateNonce,
        DropReason::UnmatchedNack,
        DropReason::ScopeViolation,
        DropReason::Malformed,
    ];
    if unsolicited == UnsolicitedPolicy::DropAll {
        reasons.push(DropReason::UnsolicitedData);
    }
    for reason in reasons {
        assert!(counters.dropped(reason) > 0, "{reason:?} was not met; {counters:?}");
    }
}

#[test]
fn the_engine_allocates_nothing_after_the_start() {
    for schedule in Schedule::ALL {
        run(CsPolicy::Lru, schedule, UnsolicitedPolicy::DropAll, None);
    }
    run(CsPolicy::Fifo, Schedule::default(), UnsolicitedPolicy::AdmitAll, None);
    for split in [false, true] {
        let order = Some(MeasuredOrder::StageByStage { split });
        run(CsPolicy::Fifo, Schedule::default(), UnsolicitedPolicy::AdmitAll, order);
    }
}

/// With either list of faces, and with too little room for fingerprints or for face sets.
#[test]
fn the_core_role_allocates_nothing_after_the_start() {
    let lists =
        [(FaceList::Bits, LimitMet::FingerprintsFull), (FaceList::Sets { max_sets: 4 }, LimitMet::FaceSetsFull)];
    for (schedule, (faces, limit)) in Schedule::ALL.into_iter().zip(lists.into_iter().cycle()) {
        let fingerprints = FingerprintPitConfig { overflow_entries: 1, faces, ..FingerprintPitConfig::new(32) };
        let expiry_round_trips = Some(3);
        let core = CoreConfig { fingerprints, names_up_to: 10, expiry_round_trips, ..CoreConfig::new(32) };
        let mut world = World::new(CsPolicy::Lru, schedule, (UnsolicitedPolicy::DropAll, PitRole::Core(core)), 5);
        world.live(None);
        let counters = world.counters();
        let met = [
            ("by fingerprint", counters.by_fingerprint),
            ("collided", counters.fingerprints_collided),
            ("satisfied", counters.fingerprints_satisfied),
            ("marks", counters.collided_marks_out),
            ("no room", counters.met(limit)),
            ("by name", counters.satisfied),
            ("Nacks out", counters.out_nacks),
        ];
        for (what, times) in met {
            assert!(times > 5, "{what}: {times}; {counters:?}");
        }
    }
}
