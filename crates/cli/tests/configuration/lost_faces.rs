//! Faces that close because their links are dead: declared faces are made again, others are not.

use crate::router_process::{PATIENCE, Router, eventually};
use std::{
    fs,
    net::{TcpListener, UdpSocket},
    path::Path,
    time::{Duration, Instant},
};

fn accept(listener: &TcpListener) -> std::net::TcpStream {
    listener.set_nonblocking(true).unwrap();
    let end = Instant::now() + PATIENCE;
    loop {
        match listener.accept() {
            Ok((connection, _)) => return connection,
            Err(error) => assert!(Instant::now() < end, "no connection came: {error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn udp_port_that_was_open() -> String {
    format!("udp4://{}", UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap())
}

/// A declared persistent face that closed was gone until the next SIGHUP.
#[test]
fn a_declared_persistent_face_that_closed_is_made_again_with_its_routes() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (format!("tcp4://{}", listener.local_addr().unwrap()), udp_port_that_was_open());
    let file = directory.path().join("namewire.toml");
    let declared = |uri: &str, prefix: &str| {
        format!(
            "[[face]]\nuri = \"{uri}\"\npersistency = \"persistent\"\n[[route]]\nprefix = \"{prefix}\"\nface = \"{uri}\"\n"
        )
    };
    fs::write(&file, declared(&tcp, "/tcp") + &declared(&udp, "/udp")).unwrap();
    let router = Router::run(directory.path(), &["--config", file.to_str().unwrap()]);
    let first = router.face(&tcp).expect("declared");
    drop(accept(&listener));
    router.wait_for(&[&tcp, "closed", "made again"]);
    let _connection = accept(&listener);
    eventually("there is another face with the route", || {
        router.face(&tcp).is_some_and(|face| face != first) && router.ask(&["route", "list"]).contains("/tcp")
    });
    // The same of a port that is closed, which the first Interest shows.
    let first = router.face(&udp).expect("declared");
    router.tool(&["peek", "/udp/x", "--lifetime", "100"]);
    router.wait_for(&[&udp, "closed", "made again"]);
    eventually("there is another face with the route", || {
        router.face(&udp).is_some_and(|face| face != first) && router.ask(&["route", "list"]).contains("/udp")
    });
}

#[test]
fn a_route_added_by_hand_makes_a_permanent_face_which_keeps_it() {
    let directory = tempfile::tempdir().unwrap();
    let router = Router::run(directory.path(), &[]);
    let remote = udp_port_that_was_open();
    router.ask(&["route", "add", "/far", &remote]);
    router.tool(&["peek", "/far/x", "--lifetime", "100"]);
    eventually("the link is dead", || router.ask(&["status"]).contains("face-closed.refused"));
    let face = router.face(&remote).expect("it is down, not closed");
    assert!(router.ask(&["face", "show", &face.to_string()]).contains("permanent"));
    assert!(router.ask(&["route", "list"]).contains("/far"));
}

#[test]
fn the_state_file_forgets_a_persistent_face_that_closed_and_its_routes() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state.toml");
    let remote = udp_port_that_was_open();
    let has = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.contains(&remote) || text.contains("/far"));
    let arguments = ["--state", state.to_str().unwrap()];
    let mut router = Router::run(directory.path(), &arguments);
    router.ask(&["face", "create", &remote, "--persistency", "persistent"]);
    router.ask(&["route", "add", "/far", &remote]);
    eventually("they are kept", || has(&state));
    router.tool(&["peek", "/far/x", "--lifetime", "100"]);
    eventually("the face has closed", || router.face(&remote).is_none());
    eventually("they are kept no longer", || !has(&state));
    router.terminate();
    let router = Router::run(directory.path(), &arguments);
    assert_eq!(router.face(&remote), None);
}
