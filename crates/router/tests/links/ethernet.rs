//! Ethernet faces of real routers.

use super::hosts::{Host, Segment};
use crate::application::{Application, eventually, name};
use namewire_configuration::{Configuration, Settings, units::Span};
use namewire_packet::nfd::{ChannelStatus, ControlParameters, FacePersistency, FaceScope, LinkType};
use namewire_router::Router;
use std::time::Duration;

const GROUP: &str = "ether://[01:00:5e:00:17:aa]";

fn station(host: usize) -> String {
    format!("ether://[02:00:00:00:00:0{}]", host + 1)
}

fn create(
    host: &Host,
    remote: &str,
    local: Option<&str>,
    mtu: Option<u64>,
) -> Result<ControlParameters, (u64, String)> {
    let uri = Some(remote.to_owned());
    let parameters = ControlParameters { uri, local_uri: local.map(str::to_owned), mtu, ..Default::default() };
    let response = host.application().command("/faces/create", parameters);
    if response.code == 200 { Ok(response.body.unwrap()) } else { Err((response.code, response.text)) }
}

/// Serves Data of 8000 bytes and checks that all of it arrives.
fn exchange(consumer: &mut Application, mut producer: Application, prefix: &str, count: usize) {
    let content: Vec<u8> = (0..8000).map(|i| (i / 7) as u8).collect();
    let served = content.clone();
    let serving = std::thread::spawn(move || producer.serve(count, &served));
    for index in 0..count {
        let reply = consumer.express(&format!("{prefix}/{index}")).expect("Data");
        assert_eq!(reply.data().content(), content);
        assert!(reply.data().verify_digest_sha256());
    }
    serving.join().unwrap();
}

#[test]
fn a_station_becomes_a_face_and_large_data_comes_in_fragments() {
    for segment in Segment::with_each_port(2) {
        let near = segment.start(0, |_| ());
        let far = segment.start(1, |config| config.settings.faces.ethernet.listen = true);
        let created = create(&near, &station(1), Some("dev://eth0"), None).unwrap();
        assert_eq!(created.local_uri.as_deref(), Some("dev://eth0"));
        assert_eq!((created.mtu, created.face_persistency), (Some(1500), Some(0)));
        near.add_route("/far", created.face_id.unwrap());
        let mut producer = far.application();
        producer.register("/far");
        exchange(&mut near.application(), producer, "/far", 50);
        let on_demand = far.face(&station(0));
        assert_eq!(on_demand.local_uri, "dev://eth0");
        assert_eq!(on_demand.face_scope, FaceScope::NonLocal);
        assert_eq!(on_demand.face_persistency, FacePersistency::OnDemand);
        assert_eq!(on_demand.link_type, LinkType::PointToPoint);
        eventually("all is counted", || {
            let counters = far.face(&station(0)).counters;
            (counters.packets.in_interests, counters.packets.out_data) == (50, 50)
        });
        let left_ms = on_demand.expiration_period_ms.expect("it closes when idle");
        assert!((1..=600_000).contains(&left_ms), "{left_ms} ms left of 600 s");
        assert_eq!(near.face(&station(1)).expiration_period_ms, None, "persistent");
        for host in [&near, &far] {
            let channels: Vec<ChannelStatus> = host.application().dataset("/faces/channels");
            assert!(channels.iter().any(|channel| channel.local_uri == "dev://eth0"));
        }
    }
}

#[test]
fn commands_are_refused_with_a_reason() {
    for segment in Segment::with_each_port(2) {
        let host = segment.start(0, |_| ());
        let code = |remote: &str, local: Option<&str>| create(&host, remote, local, None).unwrap_err().0;
        assert_eq!(code(&station(1), None), 406, "which interface?");
        assert_eq!(code(GROUP, Some("dev://eth0")), 406, "a group is configured");
        assert_eq!(code(&station(1), Some("dev://eth9")), 504);
        assert_eq!(code(&station(1), Some("dev://lo")), 504, "no Ethernet");
        let small = create(&host, &station(1), Some("dev://eth0"), Some(600)).unwrap();
        assert_eq!(small.mtu, Some(600));
        assert_eq!(code(&station(1), Some("dev://eth0")), 409);
        let larger = ControlParameters { face_id: small.face_id, mtu: Some(8800), ..Default::default() };
        let updated = host.application().succeed("/faces/update", larger);
        assert_eq!(updated.mtu, Some(1500), "no more than the interface takes");
        assert_eq!(host.face(&station(1)).mtu, Some(1500));
    }
}

/// The story: the packet socket was opened for a face made by command, and never listened. AF_XDP does not open an
/// interface that is down.
#[test]
fn an_interface_that_comes_up_later_is_listened_to() {
    let Some(segment) = Segment::new(2) else { return };
    segment.ip(1, "link set eth0 down");
    let near = segment.start(0, |_| ());
    let far = segment.start(1, |config| config.settings.faces.ethernet.listen = true);
    create(&far, &station(8), Some("dev://eth0"), None).unwrap();
    segment.ip(1, "link set eth0 up");
    let created = create(&near, &station(1), Some("dev://eth0"), None).unwrap();
    near.add_route("/far", created.face_id.unwrap());
    let mut consumer = near.application();
    eventually("the station has become a face", || {
        let interest = consumer.interest(name("/far/x")).lifetime_ms(100).build();
        consumer.send(&interest);
        far.has_face(&station(0))
    });
}

#[test]
fn three_routers_speak_to_a_group_in_fragments() {
    for segment in Segment::with_each_port(3) {
        let listening = |config: &mut Configuration| config.settings.faces.ethernet.multicast = true;
        let hosts: Vec<Host> = (0..3).map(|host| segment.start(host, listening)).collect();
        let face = hosts[0].face(GROUP);
        assert_eq!(face.local_uri, "dev://eth0");
        assert_eq!((face.link_type, face.face_persistency), (LinkType::MultiAccess, FacePersistency::Permanent));
        assert_eq!(face.mtu, Some(1500));
        let mut threads = Vec::new();
        // Two producers answer at the same time. Their fragments must not be mixed.
        for (host, prefix) in [(1, "/one"), (2, "/two")] {
            hosts[host].face(GROUP);
            hosts[0].add_route(prefix, face.face_id);
            let mut producer = hosts[host].application();
            producer.register(prefix);
            let mut consumer = hosts[0].application();
            threads.push(std::thread::spawn(move || exchange(&mut consumer, producer, prefix, 50)));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        eventually("all is counted", || {
            let counters = hosts[0].face(GROUP).counters;
            (counters.packets.out_interests, counters.packets.in_data) == (100, 100)
        });
        assert_eq!(hosts[0].face(GROUP).counters.packets.in_interests, 0, "what it sent did not come back");
        // A router that neither listens nor knows a station takes nothing from it.
        create(&hosts[0], &station(1), Some("dev://eth0"), None)
            .map(|face| {
                hosts[0].add_route("/unheard", face.face_id.unwrap());
            })
            .unwrap();
        let mut consumer = hosts[0].application();
        let interest = consumer.interest(name("/unheard/x")).lifetime_ms(300).build();
        consumer.send(&interest);
        eventually("it is counted", || hosts[1].application().drops("link.foreign-remote") > 0);
        assert!(!hosts[1].has_face(&station(0)));
    }
}

/// A tag of VLAN 0 (IEEE 802.1Q) says only how urgent a frame is. Here it is written into the frame, as a switch does.
#[test]
fn a_station_may_send_with_a_priority_tag() {
    for segment in Segment::with_each_port(2) {
        let far = segment.start(1, |config| config.settings.faces.ethernet.listen = true);
        let mut producer = far.application();
        producer.register("/far");
        let serving = std::thread::spawn(move || producer.serve(1, &[7; 100]));
        let interest = far.application().interest(name("/far/x")).build();
        let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 9];
        let frame = |tci: [u8; 2]| [&addresses[..], &[0x81, 0], &tci, &[0x86, 0x24], &interest, &[0; 46]].concat();
        let cable = segment.socket_at_cable(1);
        eventually("the station has a face", || {
            cable.send(&frame([0x60, 0])).unwrap();
            far.has_face("ether://[02:00:00:00:00:09]")
        });
        serving.join().unwrap();
        eventually("it has its Data", || far.face("ether://[02:00:00:00:00:09]").counters.packets.out_data == 1);
    }
}

#[test]
fn faces_follow_the_mtu_and_the_end_of_their_interface() {
    for segment in Segment::with_each_port(2) {
        let listening = |config: &mut Configuration| {
            config.settings.faces.ethernet.listen = true;
            config.settings.faces.ethernet.multicast = true;
            config.settings.faces.udp.idle_timeout = Span(Duration::from_millis(700));
        };
        let (near, far) = (segment.start(0, listening), segment.start(1, listening));
        let created = create(&near, &station(1), Some("dev://eth0"), None).unwrap();
        let permanent = Some(FacePersistency::Permanent.code());
        let update = ControlParameters { face_id: created.face_id, face_persistency: permanent, ..Default::default() };
        near.application().succeed("/faces/update", update);
        create(&near, &station(8), Some("dev://eth0"), None).unwrap();
        near.add_route("/far", created.face_id.unwrap());
        let mut producer = far.application();
        producer.register("/far");
        segment.ip(0, "link set eth0 mtu 1000");
        segment.ip(1, "link set eth0 mtu 1000");
        eventually("the MTU is the interface's", || {
            near.face(&station(1)).mtu == Some(1000)
                && [&near, &far].iter().all(|host| host.face(GROUP).mtu == Some(1000))
        });
        exchange(&mut near.application(), producer, "/far", 5);
        assert!(far.has_face(&station(0)));
        eventually("an idle on-demand face closes", || !far.has_face(&station(0)));
        assert!(near.has_face(&station(8)), "a persistent one does not");
        segment.ip(0, "link set eth0 down");
        eventually("the group's face goes", || !near.has_face(GROUP));
        eventually("a persistent one goes as well", || !near.has_face(&station(8)));
        assert!(near.has_face(&station(1)), "a permanent one stays: the cable may come back");
        segment.ip(0, "link set eth0 up");
        near.face(GROUP);
        let mut producer = far.application();
        producer.register("/again");
        near.add_route("/again", created.face_id.unwrap());
        let mut probe = near.application();
        eventually("the bridge has noticed that the cable is back", || {
            let interest = probe.interest(name("/again/probe")).lifetime_ms(100).build();
            probe.send(&interest);
            producer.receive_within(Duration::from_millis(200)).is_some()
        });
        exchange(&mut near.application(), producer, "/again", 5);
        segment.ip(0, "link del eth0");
        eventually("nothing is left of the interface", || !near.has_face(GROUP) && !near.has_face(&station(1)));
    }
}

#[test]
fn without_the_right_to_it_the_router_says_so_and_runs() {
    let Some(segment) = Segment::new(1) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::listening_nowhere();
    (settings.faces.unix.enabled, settings.faces.unix.path) = (true, Some(directory.path().join("nfd.sock")));
    settings.faces.ethernet.listen = true;
    let router = segment.on_host(0, || {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        let mut sets = capabilities(None).unwrap();
        sets.effective.remove(CapabilitySet::NET_RAW);
        set_capabilities(None, sets).unwrap();
        Router::start(&settings.into()).unwrap()
    });
    let [warning] = router.warnings() else { panic!("{:?}", router.warnings()) };
    assert!(warning.contains("dev://eth0") && warning.contains("CAP_NET_RAW"), "{warning}");
    let mut operator = Application::connect(&router);
    assert_eq!(operator.drops("router.link-face-failed"), 1);
    let (uri, local_uri) = (Some(station(1)), Some("dev://eth0".to_owned()));
    let response = operator.command("/faces/create", ControlParameters { uri, local_uri, ..Default::default() });
    assert_eq!(response.code, 504);
    assert!(response.text.contains("CAP_NET_RAW"), "{}", response.text);
}
