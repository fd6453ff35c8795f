//! UDP faces and their paths: narrow links in the middle, and neighbours that have moved.
//!
//! Processes of the real binary in network namespaces ([`network`]). No test depends on how long something takes.

mod network;

use crate::router_process::{Router, eventually};
use network::{Network, Served};
use std::fs;

const TO_A: &str = "udp4://10.93.1.1:6363";
const TO_C: &str = "udp4://10.93.3.2:6363";
const TO_C_MOVED: &str = "udp4://10.93.3.3:6363";

/// What `face list` shows of the path of the face that leads there, if that is less than the face's MTU.
fn path_mtu_of(router: &Router, remote: &str) -> Option<u64> {
    let faces: serde_json::Value = serde_json::from_str(&router.ask(&["face", "list", "--json"])).unwrap();
    faces.as_array().unwrap().iter().find(|face| face["remote_uri"] == remote)?["path_mtu_bytes"].as_u64()
}

/// The file goes from c to a, which a router of IP in the middle tells that its link is narrow.
fn file_through_a_narrow_link(is_face_made_by_command: bool) {
    let Some(network) = Network::new() else { return };
    let directory = network.directory.path();
    let (a, c) = (network.start('a', &[]), network.start('c', &[]));
    a.ask(&["face", "create", TO_C, "--persistency", "permanent"]);
    a.ask(&["route", "add", "/file", TO_C]);
    if is_face_made_by_command {
        c.ask(&["face", "create", TO_A]);
        assert_eq!(path_mtu_of(&c, TO_A), Some(1500 - 28), "the interface's");
    }
    let file = Served::by(&c, directory);
    file.must_arrive_at(&a, directory);
    eventually("the face is as narrow as the path", || {
        file.must_arrive_at(&a, directory);
        path_mtu_of(&c, TO_A) == Some(1200 - 28)
    });
    assert_eq!(path_mtu_of(&a, TO_C), Some(1500 - 28), "it has sent nothing large");
    let before = network.ip_fragments();
    file.must_arrive_at(&a, directory);
    assert_eq!(network.ip_fragments(), before, "NDNLPv2 fragments, IP does not");
    assert!(c.ask(&["status"]).contains("path-mtu.lowered"), "{}", c.ask(&["status"]));
    network.set_middle_mtu(1500);
    network.ip('c', "route flush cache");
    eventually("the face is as wide as the path", || {
        file.must_arrive_at(&a, directory);
        path_mtu_of(&c, TO_A) == Some(1500 - 28)
    });
    let before = network.ip_fragments();
    file.must_arrive_at(&a, directory);
    assert_eq!(network.ip_fragments(), before);
    assert!(c.ask(&["status"]).contains("path-mtu.raised"), "{}", c.ask(&["status"]));
}

#[test]
fn a_face_made_by_command_follows_its_path() {
    file_through_a_narrow_link(true);
}

#[test]
fn an_on_demand_face_of_a_router_follows_its_path() {
    file_through_a_narrow_link(false);
}

/// The story: on a path that drops large datagrams without a report, no large Data ever arrived.
#[test]
fn a_face_with_reliability_leaves_a_black_hole() {
    let Some(network) = Network::new() else { return };
    let directory = network.directory.path();
    // Router s sends what router r's end of the cable drops.
    network.set_middle_mtu(1500);
    network.ip('r', "link set rs mtu 1400");
    let start = |host: char, remote: &str| {
        let path = directory.join(format!("{host}.toml"));
        fs::write(&path, format!("[[face]]\nuri = \"{remote}\"\nreliability = true\n")).unwrap();
        // The kernel would take a run through the cable as one packet, whatever its size.
        network.start(host, &["--set", "faces.udp.offload=false", "--config", path.to_str().unwrap()])
    };
    let (a, c) = (start('a', TO_C), start('c', TO_A));
    a.ask(&["route", "add", "/file", TO_C]);
    let file = Served::by(&c, directory);
    file.must_arrive_at(&a, directory);
    assert_eq!(path_mtu_of(&c, TO_A), Some(1280 - 48));
    assert!(c.ask(&["status"]).contains("path-mtu.black-holes"), "{}", c.ask(&["status"]));
}

/// The story: a permanent face to a host name kept its first address for ever, also when the host had moved.
fn neighbour_that_moves(persistency: &str) {
    let Some(network) = Network::new() else { return };
    let directory = network.directory.path();
    network.ip('c', "addr add 10.93.3.3/24 dev sc");
    network.name_peer("10.93.3.2");
    let uri = "udp://peer.test:6363";
    let declared = format!(
        "[[face]]\nuri = \"{uri}\"\npersistency = \"{persistency}\"\n[[route]]\nprefix = \"/file\"\nface = \"{uri}\"\n"
    );
    let path = directory.join("a.toml");
    fs::write(&path, declared).unwrap();
    let a = network.start('a', &["--config", path.to_str().unwrap()]);
    assert!(a.face(TO_C).is_some(), "{}", a.ask(&["face", "list"]));
    let c = network.start('c', &["--listen-udp", "10.93.3.2:6363"]);
    let file = Served::by(&c, directory);
    file.must_arrive_at(&a, directory);
    drop((file, c));
    network.name_peer("10.93.3.3");
    let c = network.start('c', &["--listen-udp", "10.93.3.3:6363"]);
    let file = Served::by(&c, directory);
    eventually("the face leads to the new address", || {
        a.tool(&["peek", "/file/v=1", "--lifetime", "100"]);
        a.face(TO_C_MOVED).is_some() && a.face(TO_C).is_none()
    });
    file.must_arrive_at(&a, directory);
}

#[test]
fn a_permanent_face_follows_its_host_name() {
    neighbour_that_moves("permanent");
}

#[test]
fn a_persistent_face_follows_its_host_name() {
    neighbour_that_moves("persistent");
}
