//! TagNet between routers of several workers, over UDP, with applications on Unix sockets.

use crate::application::{Application, PATIENCE, eventually, start, start_with};
use namewire_configuration::settings::{TagNeighbours, TagTable};
use namewire_engine::Schedule;
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FacePersistency, TagRoute, TagTree},
    tag::{Place, TagList, TagPacket, TagPacketBuilder, TagPacketKind, TreeEpoch},
};
use namewire_router::RouterHandle;
use namewire_tagnet::{
    Descriptor, TagSet,
    advertisements::AdvertisementLimits,
    descriptor::MAX_WEIGHT,
    forwarder::Serves,
    routing::{TagRouting, TagRoutingConfig},
    tree_protocol::TreeTimes,
};
use std::{
    collections::BTreeMap,
    net::UdpSocket,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Time in which a packet that must not come would come.
const SILENCE: Duration = Duration::from_millis(200);

fn tag_router(number: u32) -> (RouterHandle, tempfile::TempDir) {
    start_with(4, |configuration| {
        let tagnet = &mut configuration.settings.tagnet;
        (tagnet.trees, tagnet.router_number, tagnet.per_face) = (vec![1], Some(number), 50);
    })
}

fn link(from: &RouterHandle, to: &RouterHandle) -> FaceId {
    let uri = Some(format!("udp4://{}", to.udp()[0]));
    let mut operator = Application::connect(from);
    let created = operator.command("/faces/create", ControlParameters { uri, ..Default::default() });
    let face_id = created.body.and_then(|body| body.face_id);
    if created.code == 409 {
        // The other end's hello came first, and made a face on demand.
        let face_persistency = Some(FacePersistency::Persistent.code());
        operator.succeed("/faces/update", ControlParameters { face_id, face_persistency, ..Default::default() });
    }
    face_id.unwrap()
}

fn tags(text: &str) -> TagSet {
    text.parse().unwrap()
}

fn parameters(set: &str, serves: u64) -> ControlParameters {
    let tags = TagList::new(tags(set).tags().iter().map(String::as_str)).unwrap();
    ControlParameters { tags: Some(tags), flags: Some(serves), ..Default::default() }
}

fn by_tags(kind: TagPacketKind, set: &TagSet) -> TagPacketBuilder<'_> {
    let tree = TreeEpoch { tree: 0, epoch: 0 };
    TagPacketBuilder::by_descriptor(kind, tree, set.descriptor().to_bytes(), set.tags().iter().map(String::as_str))
        .nonce(fastrand::u32(..))
}

/// What an application heard: kind, tree, where to reply, payload.
#[derive(Debug)]
struct Heard {
    kind: TagPacketKind,
    nonce: u32,
    tree: TreeEpoch,
    endpoint: u32,
    label: Vec<u8>,
    payload: Vec<u8>,
}

impl Heard {
    fn place(&self) -> Place<'_> {
        Place { endpoint: self.endpoint, label: &self.label }
    }
}

fn hear(application: &mut Application, patience: Duration) -> Option<Heard> {
    let packet = application.receive_within(patience)?;
    let packet = TagPacket::parse(&packet.bytes).expect("a tag packet");
    let place = packet.reply_to.expect("a place for replies");
    Some(Heard {
        kind: packet.kind,
        nonce: packet.nonce,
        tree: packet.tree,
        endpoint: place.endpoint,
        label: place.label.to_vec(),
        payload: packet.payload.to_vec(),
    })
}

/// Waits until all routers are in one tree, with labels of one epoch.
fn wait_for_tree(routers: &[&RouterHandle]) {
    eventually("all routers are in one tree", || {
        let trees: Vec<TagTree> =
            routers.iter().flat_map(|router| Application::connect(router).dataset::<TagTree>("/tags/trees")).collect();
        let first = &trees[0];
        let whole = trees.iter().map(|tree| tree.routers_below).max() == Some(routers.len() as u64);
        whole && trees.iter().all(|tree| (tree.root, tree.epoch) == (first.root, first.epoch) && !tree.label.is_empty())
    });
}

fn knows(router: &RouterHandle, set: &str) -> bool {
    let descriptor = tags(set).descriptor().to_bytes();
    Application::connect(router).dataset::<TagRoute>("/tags/list").iter().any(|route| route.descriptor == descriptor)
}

#[test]
fn a_pull_finds_the_concert_and_follow_ups_go_by_locator() {
    let ((left, _l), (middle, _m), (right, _r)) = (tag_router(1), tag_router(2), tag_router(3));
    for (a, b) in [(&left, &middle), (&middle, &right)] {
        link(a, b);
        link(b, a);
    }
    wait_for_tree(&[&left, &middle, &right]);
    let mut server = Application::connect(&left);
    server.succeed("/tags/advertise", parameters("concert, classical", 1));
    eventually("the advertisement has arrived", || knows(&right, "classical, concert"));

    let mut player = Application::connect(&right);
    let wanted = tags("classical, Beethoven, ninth, concert, 360bps");
    let mut asked = None;
    eventually("the workers know, and the pull arrives", || {
        player.send(&by_tags(TagPacketKind::Pull, &wanted).payload(b"GET").build());
        asked = hear(&mut server, SILENCE);
        asked.is_some()
    });
    let asked = asked.expect("the pull");
    assert_eq!((asked.kind, &asked.payload[..]), (TagPacketKind::Pull, &b"GET"[..]));
    let reply = TagPacketBuilder::by_locator(TagPacketKind::Reply, asked.tree, asked.place()).nonce(asked.nonce);
    server.send(&reply.payload(b"here").build());
    let answer = hear(&mut player, PATIENCE).expect("the reply");
    assert_eq!((answer.kind, answer.nonce, &answer.payload[..]), (TagPacketKind::Reply, asked.nonce, &b"here"[..]));

    for number in 0..100_u32 {
        let follow_up = TagPacketBuilder::by_locator(TagPacketKind::Pull, answer.tree, answer.place());
        player.send(&follow_up.nonce(number).payload(&number.to_be_bytes()).build());
        let is_follow_up = |asked: &Heard| asked.payload.len() == 4;
        let mut asked = std::iter::repeat_with(|| hear(&mut server, PATIENCE).expect("a follow-up"));
        let asked = asked.find(is_follow_up).expect("it repeats for ever");
        // Larger than one datagram of a link.
        let reply = TagPacketBuilder::by_locator(TagPacketKind::Reply, asked.tree, asked.place()).nonce(asked.nonce);
        server.send(&reply.payload(&[asked.payload[3]; 4_000]).build());
        let answer = hear(&mut player, PATIENCE).expect("its reply");
        assert_eq!((answer.nonce, answer.payload), (number, vec![number as u8; 4_000]));
    }

    drop(server);
    eventually("the advertisement is withdrawn", || !knows(&right, "classical, concert"));
    eventually("a pull is dropped by name", || {
        let before = Application::connect(&right).drops("tag.no-match");
        player.send(&by_tags(TagPacketKind::Pull, &wanted).build());
        Application::connect(&right).drops("tag.no-match") > before
    });
}

/// The papers' table and schedules are switches: packets go where they go with the router's own.
#[test]
fn the_papers_forms_forward_as_the_routers_own_do() {
    for schedule in Schedule::ALL {
        let (router, _directory) = start_with(2, |configuration| {
            let settings = &mut configuration.settings;
            (settings.tagnet.trees, settings.tagnet.table.0) = (vec![1], TagTable::Vector);
            settings.engine.schedule.0 = schedule;
        });
        wait_for_tree(&[&router]);
        let [mut server, mut player, mut consumer] = [(); 3].map(|()| Application::connect(&router));
        server.succeed("/tags/advertise", parameters("concert, classical", 1));
        let wanted = tags("classical, Beethoven, concert");
        eventually("the vector has the set, and a pull arrives", || {
            player.send(&by_tags(TagPacketKind::Pull, &wanted).payload(b"GET").build());
            hear(&mut server, SILENCE).is_some_and(|asked| asked.payload == b"GET")
        });
        server.succeed("/tags/withdraw", ControlParameters { flags: None, ..parameters("concert, classical", 1) });
        eventually("the vector has the set no more", || {
            let before = Application::connect(&router).drops("tag.no-match");
            player.send(&by_tags(TagPacketKind::Pull, &wanted).build());
            Application::connect(&router).drops("tag.no-match") > before
        });
        let mut producer = Application::connect(&router);
        producer.register("/ndn");
        for number in 0..20 {
            let interest = consumer.interest(format!("/ndn/{number}").parse::<NameBuf>().unwrap()).lifetime_ms(60_000);
            consumer.send(&interest.build());
            producer.serve(1, b"content");
            assert!(consumer.receive().is_some(), "Interest {number} with {}", schedule.name());
        }
    }
}

#[test]
fn a_push_reaches_all_who_asked_and_nobody_else() {
    let ((left, _l), (right, _r)) = (tag_router(1), tag_router(2));
    link(&left, &right);
    link(&right, &left);
    wait_for_tree(&[&left, &right]);
    let mut subscribers: Vec<Application> = [&left, &left, &right, &right].map(Application::connect).into();
    for (subscriber, set) in subscribers.iter_mut().zip(["news", "news, sport", "news", "news, politics"]) {
        subscriber.succeed("/tags/advertise", parameters(set, 2));
    }
    let mut sender = Application::connect(&left);
    let about = tags("news, sport, tennis");
    sender.send(&by_tags(TagPacketKind::Push, &about).payload(b"result").build());
    eventually("who has not joined may not push", || Application::connect(&left).drops("tag.push-not-allowed") == 1);
    sender.succeed("/tags/join", ControlParameters::default());
    let mut heard = [false; 3];
    eventually("the workers of both routers know who asked", || {
        sender.send(&by_tags(TagPacketKind::Push, &about).payload(b"result").build());
        for (heard, subscriber) in heard.iter_mut().zip(&mut subscribers) {
            if let Some(push) = hear(subscriber, SILENCE) {
                assert_eq!((push.kind, &push.payload[..]), (TagPacketKind::Push, &b"result"[..]));
                *heard = true;
            }
        }
        heard == [true; 3]
    });
    assert!(hear(&mut subscribers[3], SILENCE).is_none(), "it asked for politics");
}

#[test]
fn a_face_that_advertises_too_much_or_sends_nonsense_is_counted() {
    let (router, _directory) = tag_router(1);
    wait_for_tree(&[&router]);
    let mut application = Application::connect(&router);
    for number in 0..50 {
        application.succeed("/tags/advertise", parameters(&format!("set {number}"), 3));
    }
    assert_eq!(application.command("/tags/advertise", parameters("one more", 3)).code, 507);
    assert_eq!(application.dataset::<TagRoute>("/tags/list").len(), 50);

    let mut other = Application::connect(&router);
    let tree = TreeEpoch { tree: 1, epoch: 0 };
    let all_ones = TagPacketBuilder::by_descriptor(TagPacketKind::Pull, tree, [255; 24], ["a"]);
    other.send(&all_ones.build());
    let forged = Place { endpoint: 9_999, label: &[1, 2, 3] };
    other.send(&TagPacketBuilder::by_locator(TagPacketKind::Push, tree, forged).build());
    let mut broken = by_tags(TagPacketKind::Pull, &tags("a")).build();
    broken[4] ^= 1;
    other.send(&broken);
    eventually("all three are counted", || {
        let drops = |reason: &str| Application::connect(&router).drops(reason);
        drops("tag.descriptor-too-heavy") == 1
            && drops("tag.malformed") == 1
            && drops("tag.push-not-allowed") + drops("tag.stale-epoch") == 1
    });
}

#[test]
fn without_trees_every_tag_packet_is_dropped_by_name_and_commands_say_what_to_set() {
    let (router, _directory) = start(1);
    let mut application = Application::connect(&router);
    let refusal = application.command("/tags/advertise", parameters("a", 1));
    assert!(refusal.code == 503 && refusal.text.contains("[tagnet]"), "{refusal:?}");
    application.send(&by_tags(TagPacketKind::Pull, &tags("a")).build());
    eventually("the packet is counted", || Application::connect(&router).drops("tag.unknown-tree") == 1);
    // NDN goes on as before.
    application.register("/still");
}

#[test]
fn a_destination_that_is_no_application_of_tags_gets_nothing() {
    let (router, _directory) = tag_router(1);
    wait_for_tree(&[&router]);
    let mut ndn = Application::connect(&router);
    let face = ndn.register("/ndn");
    let mut sender = Application::connect(&router);
    let tree = &sender.dataset::<TagTree>("/tags/trees")[0];
    let place = Place { endpoint: face.0 as u32, label: &tree.label };
    let tree = TreeEpoch { tree: 1, epoch: tree.epoch as u32 };
    sender.send(&TagPacketBuilder::by_locator(TagPacketKind::Reply, tree, place).build());
    eventually("it is counted", || Application::connect(&router).drops("tag.no-endpoint") == 1);
    assert!(ndn.receive_within(SILENCE).is_none());
}

/// A neighbour in the tree, over UDP, which announces sets of tags.
struct Neighbour {
    socket: UdpSocket,
    routing: TagRouting,
    began: Instant,
}

impl Neighbour {
    const ROUTER: FaceId = FaceId(300);

    fn new(router: &RouterHandle, sets: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(router.udp()[0]).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let limits = AdvertisementLimits { descriptors: 100_000, reserved: 0, per_face: 100_000 };
        let (times, keys) = (TreeTimes::default(), BTreeMap::new());
        let config = TagRoutingConfig { trees: vec![1], router: u64::MAX - 5, times, limits, keys };
        let mut routing = TagRouting::new(&config, 1, 0).unwrap();
        routing.neighbour_up(Self::ROUTER);
        for number in 0..sets {
            let set = TagSet::new([format!("kind{}", number % 50), format!("own{number}")]).unwrap();
            routing.advertise(FaceId(400), &set, Serves::PULL, None).unwrap();
        }
        Neighbour { socket, routing, began: Instant::now() }
    }

    /// Hears what comes for a millisecond, and answers.
    fn turn(&mut self) {
        let mut datagram = [0; 9_000];
        while let Ok(length) = self.socket.recv(&mut datagram) {
            self.routing.received(Self::ROUTER, &datagram[..length], self.began.elapsed().as_millis() as u64);
        }
        self.routing.run(self.began.elapsed().as_millis() as u64);
        for (_, packet) in self.routing.take_packets() {
            let _ = self.socket.send(&packet);
        }
    }

    fn send_heavy(&self, tags: &TagSet) {
        let Some(table) = self.routing.tree_tables().next() else { return };
        let (tree, filter) = (TreeEpoch { tree: 1, epoch: table.epoch }, tags.descriptor().to_bytes());
        let tags = tags.tags().iter().map(String::as_str);
        let _ = self.socket.send(&TagPacketBuilder::by_descriptor(TagPacketKind::Pull, tree, filter, tags).build());
    }
}

/// Sixteen tags without a common bit.
fn heavy_tags() -> TagSet {
    let (mut tags, mut weight) = (Vec::new(), 0);
    for number in 0.. {
        let tag = format!("heavy{number}");
        let with = Descriptor::of_tags(tags.iter().map(String::as_str).chain([tag.as_str()]));
        if with.weight() == weight + 7 {
            weight += 7;
            tags.push(tag);
        }
        if weight == MAX_WEIGHT {
            break;
        }
    }
    TagSet::new(tags).unwrap()
}

/// The story: 1,200 packets of sixteen tags a second took a worker's time, and NDN packets waited for 156 ms.
#[test]
fn ndn_and_other_tag_packets_are_served_between_the_parts_of_long_searches() {
    const SETS: u32 = 6_000;
    let (router, _directory) = start_with(1, |configuration| {
        let tagnet = &mut configuration.settings.tagnet;
        (tagnet.trees, tagnet.router_number, tagnet.neighbours.0) = (vec![1], Some(1), TagNeighbours::Any);
    });
    let (is_over, is_flooding, tags) = (AtomicBool::new(false), AtomicBool::new(false), heavy_tags());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut neighbour = Neighbour::new(&router, SETS);
            while !is_over.load(Ordering::Relaxed) {
                neighbour.turn();
                if is_flooding.load(Ordering::Relaxed) {
                    (0..20).for_each(|_| neighbour.send_heavy(&tags));
                }
            }
        });
        let mut server = Application::connect(&router);
        server.succeed("/tags/advertise", parameters("concert, classical", 1));
        let known = || Application::connect(&router).dataset::<TagTree>("/tags/trees")[0].descriptors;
        eventually("all sets are known", || known() == u64::from(SETS) + 1);
        is_flooding.store(true, Ordering::Relaxed);
        eventually("searches wait", || Application::connect(&router).drops("tag.searches-parked") > 100);

        let (mut producer, mut consumer) = (Application::connect(&router), Application::connect(&router));
        producer.register("/ndn");
        let mut player = Application::connect(&router);
        let wanted = self::tags("classical, Beethoven, concert");
        for number in 0..50 {
            let interest = consumer.interest(format!("/ndn/{number}").parse::<NameBuf>().unwrap()).lifetime_ms(60_000);
            consumer.send(&interest.build());
            producer.serve(1, b"content");
            assert!(consumer.receive().is_some(), "Interest {number}");
            player.send(&by_tags(TagPacketKind::Pull, &wanted).payload(b"GET").build());
            let asked = hear(&mut server, PATIENCE).expect("the pull");
            let reply = TagPacketBuilder::by_locator(TagPacketKind::Reply, asked.tree, asked.place());
            server.send(&reply.nonce(asked.nonce).build());
            assert_eq!(hear(&mut player, PATIENCE).expect("the reply").nonce, asked.nonce);
        }
        // The heavy ones are searched for too, as far as there is time.
        let searched = || Application::connect(&router).drops("tag.no-match");
        let before = searched();
        eventually("long searches end", || searched() > before + 20);
        is_over.store(true, Ordering::Relaxed);
    });
}
