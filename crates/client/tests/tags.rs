//! TagNet's users, through a router of one tree that speaks real packets over Unix sockets.

use namewire_client::{
    Client, CloseReason, ControlError,
    tag::{
        PullOptions, REPLY_BYTES_MAX, TAG_PACKET_BYTES_MAX, TagClient, TagError, TagPlace, TagPlaceError, TagReceiver,
        TagReceiverInUse, TagReplies, TagReply, TagServes, TagSet,
    },
};
use namewire_packet::{
    DataBuilder, FaceId, Interest,
    nfd::{ControlParameters, ControlResponse},
    tag::{
        DESCRIPTOR_BYTES, MAX_LABEL_BYTES, Place, TagAddress, TagPacket, TagPacketBuilder, TagPacketKind, TreeEpoch,
    },
    tlv,
};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::UnixStream,
    sync::mpsc,
    time::timeout,
};

const TREE: TreeEpoch = TreeEpoch { tree: 1, epoch: 70_000 };
const LABEL: &[u8] = &[0x80, 3];
const FIRST_ENDPOINT: usize = 300;
/// Longer than any test runs.
const LONG: Duration = Duration::from_secs(600);

/// One router with applications. Pulls and pushes go to those whose tags are among the packet's, in the order in which
/// they advertised.
#[derive(Clone, Default)]
struct Router(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    applications: Vec<mpsc::UnboundedSender<Vec<u8>>>,
    advertised: Vec<(usize, TagSet, TagServes, Option<u64>)>,
    joined: Vec<usize>,
    /// Packets that went nowhere.
    dropped: u64,
}

impl Router {
    fn attach(&self) -> TagClient {
        let (ours, theirs) = UnixStream::pair().unwrap();
        self.serve(ours);
        TagClient::new(&Client::from_stream(theirs, true))
    }

    fn serve<S: AsyncRead + AsyncWrite + Send + 'static>(&self, stream: S) {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let (sender, mut receiver) = mpsc::unbounded_channel::<Vec<u8>>();
        let application = {
            let mut state = self.0.lock().unwrap();
            state.applications.push(sender);
            state.applications.len() - 1
        };
        tokio::spawn(async move {
            while let Some(packet) = receiver.recv().await {
                if writer.write_all(&packet).await.is_err() {
                    break;
                }
            }
        });
        let router = self.clone();
        tokio::spawn(async move {
            let mut buffer = Vec::new();
            while reader.read_buf(&mut buffer).await.is_ok_and(|count| count > 0) {
                while let Ok(Some(size)) = tlv::element_size(&buffer)
                    && size <= buffer.len()
                {
                    let packet: Vec<u8> = buffer.drain(..size).collect();
                    router.0.lock().unwrap().receive(application, &packet);
                }
            }
        });
    }

    /// Sends bytes to an application as they are.
    fn send(&self, application: usize, packet: &[u8]) {
        self.0.lock().unwrap().applications[application].send(packet.to_vec()).unwrap();
    }

    fn look<T>(&self, at: impl FnOnce(&State) -> T) -> T {
        at(&self.0.lock().unwrap())
    }
}

impl State {
    fn receive(&mut self, from: usize, wire: &[u8]) {
        if let Ok(command) = Interest::parse(wire) {
            let response = self.command(from, &command);
            let data = DataBuilder::new(command.name()).content(&response.to_wire()).sign_digest();
            return self.applications[from].send(data).unwrap();
        }
        let packet = TagPacket::parse(wire).expect("clients send commands and tag packets");
        assert_eq!(packet.reply_to, None, "the router says where replies go");
        match packet.address {
            TagAddress::Locator(place) => {
                assert_eq!((packet.tree, place.label), (TREE, LABEL), "a place keeps its tree");
                let to = place.endpoint as usize - FIRST_ENDPOINT;
                let builder = TagPacketBuilder::by_locator(packet.kind, TREE, place);
                self.forward(from, to, builder, &packet);
            }
            TagAddress::Descriptor { filter, tags } => {
                let set = TagSet::new(tags.iter()).unwrap();
                assert_eq!((packet.tree, filter), (TreeEpoch { tree: 0, epoch: 0 }, &set.descriptor().to_bytes()));
                let targets = self.targets(from, &packet, &set);
                self.dropped += u64::from(targets.is_empty());
                for to in targets {
                    let builder = TagPacketBuilder::by_descriptor(packet.kind, TREE, *filter, tags.iter());
                    self.forward(from, to, builder, &packet);
                }
            }
        }
    }

    fn targets(&self, from: usize, packet: &TagPacket<'_>, tags: &TagSet) -> Vec<usize> {
        let wanted = match packet.kind {
            TagPacketKind::Push if !self.joined.contains(&from) => return Vec::new(),
            TagPacketKind::Push => TagServes::Push,
            _ => TagServes::Pull,
        };
        let fan_out = packet.fan_out.unwrap_or(if wanted == TagServes::Pull { 1 } else { u32::MAX });
        let is_target = |(application, set, serves, _): &&(usize, TagSet, TagServes, Option<u64>)| {
            *application != from && set.is_subset_of(tags) && serves.code() & wanted.code() != 0
        };
        self.advertised.iter().filter(is_target).map(|one| one.0).take(fan_out as usize).collect()
    }

    fn forward(&self, from: usize, to: usize, builder: TagPacketBuilder<'_>, packet: &TagPacket<'_>) {
        let reply_to = Place { endpoint: (FIRST_ENDPOINT + from) as u32, label: LABEL };
        let wire = builder.nonce(packet.nonce).reply_to(reply_to).payload(packet.payload).build();
        assert!(wire.len() <= namewire_packet::MAX_PACKET_BYTES, "the client left room for the place");
        self.applications[to].send(wire).unwrap();
    }

    fn command(&mut self, from: usize, command: &Interest<'_>) -> ControlResponse {
        let name = command.name();
        assert!(name.to_string().starts_with("/localhost/nfd/tags/") && command.signature_info().is_some(), "{name}");
        let parameters = ControlParameters::decode(name.get(4).unwrap().value).unwrap();
        let tags = parameters.tags.iter().flat_map(|tags| tags.iter());
        let set = TagSet::new(tags).unwrap();
        match name.get(3).unwrap().value {
            b"advertise" => {
                let serves = TagServes::from_code(parameters.flags.unwrap()).unwrap();
                self.advertised.push((from, set, serves, parameters.expiration_period_ms));
            }
            b"withdraw" => {
                let before = self.advertised.len();
                self.advertised.retain(|(application, other, ..)| (*application, other) != (from, &set));
                if before == self.advertised.len() {
                    return ControlResponse::new(404, "not advertised");
                }
            }
            b"join" => self.joined.push(from),
            other => panic!("unknown verb {other:?}"),
        }
        ControlResponse::ok(ControlParameters { face_id: Some(FaceId((FIRST_ENDPOINT + from) as u64)), ..parameters })
    }
}

fn set(tags: &str) -> TagSet {
    tags.parse().unwrap()
}

fn options(replies_max: u32) -> PullOptions {
    PullOptions { replies_max, timeout: LONG }
}

/// An application that answers each pull with `name`, a colon, and the payload of the pull.
async fn serve(router: &Router, name: &'static str, tags: &str) -> TagClient {
    let client = router.attach();
    let mut receiver = client.receive().unwrap();
    client.advertise(&set(tags), TagServes::Both, None).await.unwrap();
    tokio::spawn(async move {
        while let Some(incoming) = receiver.next().await {
            if !incoming.is_push() {
                incoming.reply(&[name.as_bytes(), b":", incoming.payload()].concat()).await.unwrap();
            }
        }
    });
    client
}

async fn all(mut replies: TagReplies) -> Vec<TagReply> {
    let mut found = Vec::new();
    while let Some(reply) = replies.next().await.unwrap() {
        found.push(reply);
    }
    found
}

fn payloads(replies: &[TagReply]) -> Vec<&[u8]> {
    replies.iter().map(TagReply::payload).collect()
}

#[tokio::test]
async fn a_pull_finds_the_application_and_a_follow_up_comes_back_to_it() {
    let router = Router::default();
    let _hall = serve(&router, "hall", "classical,concert").await;
    let listener = router.attach();
    let replies = listener.pull(&set("concert,classical,Beethoven"), b"programme", options(1)).await.unwrap();
    let replies = all(replies).await;
    assert_eq!(payloads(&replies), [b"hall:programme"]);
    let place = replies[0].place().expect("its router says");
    assert_eq!((place.tree(), place.endpoint(), place.label()), (TREE, 300, LABEL));
    assert_eq!(place.to_string(), "1.70000/8003#300");
    assert_eq!("1.70000/8003#300".parse(), Ok(place.clone()));
    let second = listener.follow_up(&place, b"tickets", LONG).await.unwrap();
    assert_eq!((second.payload(), second.place()), (&b"hall:tickets"[..], Some(place)));
}

#[test]
fn an_invalid_place_is_refused() {
    for text in
        ["", "1", "0.1/80#1", "1.70000/8003", "1.70000/803#1", "1.70000/+a03#1", "1.70000/#1", "1.x/80#1", "1.2/80#-1"]
    {
        assert_eq!(text.parse::<TagPlace>(), Err(TagPlaceError), "{text}");
    }
    let long = format!("1.2/{}#3", "00".repeat(MAX_LABEL_BYTES + 1));
    assert_eq!(long.parse::<TagPlace>(), Err(TagPlaceError));
}

#[tokio::test]
async fn a_pull_for_k_ends_with_the_kth_reply() {
    let router = Router::default();
    let _servers = [serve(&router, "a", "x").await, serve(&router, "b", "x,y").await, serve(&router, "c", "y").await];
    let client = router.attach();
    let mut found = all(client.pull(&set("x,y,z"), b"?", options(3)).await.unwrap()).await;
    found.sort_by(|a, b| a.payload().cmp(b.payload()));
    assert_eq!(payloads(&found), [b"a:?", b"b:?", b"c:?"]);
    assert_eq!(all(client.pull(&set("x,y,z"), b"?", options(2)).await.unwrap()).await.len(), 2);
    assert_eq!(client.client().counters().dropped_unsolicited_replies, 0);
}

#[tokio::test]
async fn one_reply_too_many_is_counted() {
    let router = Router::default();
    let (server, client) = (router.attach(), router.attach());
    let mut receiver = server.receive().unwrap();
    server.advertise(&set("x"), TagServes::Pull, None).await.unwrap();
    let mut replies = client.pull(&set("x"), b"", options(1)).await.unwrap();
    let pull = receiver.next().await.unwrap();
    pull.reply(b"first").await.unwrap();
    pull.reply(b"second").await.unwrap();
    server.join().await.unwrap(); // the router has both
    client.join().await.unwrap(); // the client has both
    assert_eq!(replies.next().await.unwrap().unwrap().payload(), b"first");
    assert!(replies.next().await.unwrap().is_none());
    assert_eq!(client.client().counters().dropped_unsolicited_replies, 1);
}

#[tokio::test]
async fn pushes_arrive_once_the_sending_application_has_joined() {
    let router = Router::default();
    let (sender, wants, pulls_only) = (router.attach(), router.attach(), router.attach());
    let mut incoming = wants.receive().unwrap();
    let mut none = pulls_only.receive().unwrap();
    wants.advertise(&set("news"), TagServes::Push, Some(Duration::from_secs(5))).await.unwrap();
    pulls_only.advertise(&set("news"), TagServes::Pull, None).await.unwrap();
    let expirations: Vec<Option<u64>> = router.look(|state| state.advertised.iter().map(|one| one.3).collect());
    assert_eq!(expirations, [Some(5_000), None]);

    sender.push(&set("news,weather"), b"too early").await.unwrap();
    // The answer to `join` follows the push on the same connection.
    assert_eq!(sender.join().await.unwrap().face_id, Some(FaceId(300)));
    assert_eq!(router.look(|state| state.dropped), 1);
    sender.push(&set("news,weather"), b"rain").await.unwrap();
    let push = incoming.next().await.unwrap();
    assert!(push.is_push());
    assert_eq!(
        (push.payload(), push.tags(), push.sender().unwrap().endpoint()),
        (&b"rain"[..], Some(set("news,weather")), 300)
    );
    assert_eq!(push.reply(b"thanks").await, Err(TagError::NoReplyWanted));

    wants.withdraw(&set("news")).await.unwrap();
    let again = wants.withdraw(&set("news")).await;
    assert!(matches!(again, Err(ControlError::Refused(response)) if response.code == 404));
    sender.push(&set("news"), b"unwanted").await.unwrap();
    sender.join().await.unwrap();
    assert_eq!(router.look(|state| state.dropped), 2);
    // Each answer to `join` comes after all packets before it.
    for (client, receiver) in [(&wants, &mut incoming), (&pulls_only, &mut none)] {
        client.join().await.unwrap();
        assert!(timeout(Duration::ZERO, receiver.next()).await.is_err(), "nothing waits");
    }
}

#[tokio::test]
async fn a_connection_has_one_receiver_at_a_time() {
    let client = Router::default().attach();
    let first = client.receive().unwrap();
    assert_eq!(client.receive().err(), Some(TagReceiverInUse));
    drop(first);
    assert!(client.receive().is_ok());
}

#[tokio::test]
async fn a_packet_leaves_room_for_what_the_router_adds() {
    let router = Router::default();
    let _server = serve(&router, "", "x").await;
    let client = router.attach();
    let tags = TagSet::new((10..25).map(|n| format!("{n}{}", "t".repeat(62))).chain(["x".to_owned()])).unwrap();
    let bytes_of = |payload_bytes: usize| {
        let payload = vec![1; payload_bytes];
        let filter = [0; DESCRIPTOR_BYTES];
        let tags = tags.tags().iter().map(String::as_str);
        TagPacketBuilder::by_descriptor(TagPacketKind::Pull, TREE, filter, tags).payload(&payload).build().len()
    };
    let overhead = bytes_of(4_000) - 4_000;
    let most = TAG_PACKET_BYTES_MAX - overhead;
    let replies = all(client.pull(&tags, &vec![7; most], options(1)).await.unwrap()).await;
    assert_eq!(replies[0].payload().len(), most + 1);
    let refused = client.pull(&tags, &vec![7; most + 1], options(1)).await.err();
    assert_eq!(refused, Some(TagError::TooLarge(TAG_PACKET_BYTES_MAX + 1)));
    assert_eq!(client.push(&tags, &vec![7; most + 1]).await, Err(TagError::TooLarge(TAG_PACKET_BYTES_MAX + 1)));
}

#[tokio::test]
async fn the_largest_reply_fits_also_to_the_longest_label() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let client = TagClient::new(&Client::from_stream(theirs, true));
    let mut receiver = client.receive().unwrap();
    let place = Place { endpoint: u32::MAX, label: &[255; MAX_LABEL_BYTES] };
    let pull = TagPacketBuilder::by_locator(TagPacketKind::Pull, TREE, place).reply_to(place).build();
    ours.write_all(&pull).await.unwrap();
    let incoming = receiver.next().await.unwrap();
    incoming.reply(&[7; REPLY_BYTES_MAX]).await.unwrap();
    let mut wire = vec![0; TAG_PACKET_BYTES_MAX];
    let mut bytes = 0;
    while tlv::element_size(&wire[..bytes]).unwrap().is_none_or(|size| size > bytes) {
        bytes += ours.read(&mut wire[bytes..]).await.unwrap();
    }
    let reply = TagPacket::parse(&wire[..bytes]).unwrap();
    assert_eq!((reply.payload, reply.address), (&[7; REPLY_BYTES_MAX][..], TagAddress::Locator(place)));
}

/// TagNet16 §2.1: an application sends to a locator that it learned, and chooses the tree of a packet by tags.
#[tokio::test]
async fn a_push_goes_to_a_place_and_a_packet_by_tags_travels_in_the_tree_that_it_names() {
    let router = Router::default();
    let (hall, listener) = (serve(&router, "hall", "concert").await, router.attach());
    let mut incoming = listener.receive().unwrap();
    let replies = all(listener.pull(&set("concert"), b"", options(1)).await.unwrap()).await;
    let hall_place = replies[0].place().unwrap();
    let listener_place: TagPlace = hall_place.to_string().replace("#300", "#301").parse().unwrap();
    hall.join().await.unwrap();
    hall.push_to(&listener_place, b"the tenor is ill").await.unwrap();
    let push = incoming.next().await.unwrap();
    assert_eq!((push.is_push(), push.tags(), push.payload()), (true, None, &b"the tenor is ill"[..]));
    assert_eq!(push.sender(), Some(hall_place));

    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let client = TagClient::new(&Client::from_stream(theirs, true)).in_tree(7);
    client.push(&set("concert"), b"").await.unwrap();
    let mut wire = [0; 200];
    let bytes = ours.read(&mut wire).await.unwrap();
    assert_eq!(TagPacket::parse(&wire[..bytes]).unwrap().tree, TreeEpoch { tree: 7, epoch: 0 });
}

/// Time stands still but for the pull, so the connection is a pipe in memory.
#[tokio::test(start_paused = true)]
async fn late_and_unknown_packets_are_counted() {
    let router = Router::default();
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    router.serve(ours);
    let client = TagClient::new(&Client::from_stream(theirs, true));
    let brief = PullOptions { replies_max: 3, timeout: Duration::from_millis(50) };
    let mut replies = client.pull(&set("x"), b"", brief).await.unwrap();
    assert!(replies.next().await.unwrap().is_none(), "the time is over");
    let place = Place { endpoint: 300, label: LABEL };
    let reply = TagPacketBuilder::by_locator(TagPacketKind::Reply, TREE, place).nonce(5).build();
    let pull = TagPacketBuilder::by_locator(TagPacketKind::Pull, TREE, place).nonce(5).build();
    router.send(0, &reply);
    router.send(0, &pull);
    router.send(0, &[253, 0x9A, 3, 0]); // a pull without elements
    router.send(0, &[253, 0x9A, 8, 0]); // of no known type
    client.join().await.unwrap(); // its answer comes after them
    let counters = client.client().counters();
    assert_eq!((counters.dropped_unsolicited_replies, counters.dropped_unserved_tag_packets), (1, 1));
    assert_eq!(counters.dropped_malformed, 2);

    // A pull to this application's place, without ReplyTo.
    let mut receiver = client.receive().unwrap();
    router.send(0, &pull);
    let incoming = receiver.next().await.unwrap();
    assert_eq!((incoming.tags(), incoming.sender(), incoming.is_push()), (None, None, false));
    assert_eq!(incoming.reply(b"").await, Err(TagError::NoReplyWanted));

    // Nobody answers a follow-up to oneself.
    let own = own_place(&router, &client, &mut receiver).await;
    let answer = client.follow_up(&own, b"", Duration::from_millis(50)).await;
    assert_eq!(answer.err(), Some(TagError::Timeout(Duration::from_millis(50))));
    assert!(receiver.next().await.is_some(), "it came to this application");
}

/// The place of the only application, as a pull from it says.
async fn own_place(router: &Router, client: &TagClient, receiver: &mut TagReceiver) -> TagPlace {
    let own = Place { endpoint: FIRST_ENDPOINT as u32, label: LABEL };
    let pull = TagPacketBuilder::by_locator(TagPacketKind::Pull, TREE, own).reply_to(own).build();
    router.send(0, &pull);
    let place = receiver.next().await.unwrap().sender().unwrap();
    assert_eq!(client.client().pending_interests(), 0);
    place
}

#[tokio::test]
async fn a_lost_connection_ends_pulls_and_receivers() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let client = TagClient::new(&Client::from_stream(theirs, true));
    let mut receiver = client.receive().unwrap();
    let mut replies = client.pull(&set("x"), b"", options(2)).await.unwrap();
    drop(ours);
    assert!(matches!(replies.next().await, Err(TagError::Closed(CloseReason::Remote | CloseReason::Io(_)))));
    assert!(receiver.next().await.is_none());
    assert!(matches!(client.push(&set("x"), b"").await, Err(TagError::Closed(_))));
    assert!(client.receive().unwrap().next().await.is_none(), "it ends at once");
}
