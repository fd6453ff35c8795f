//! Applications that share memory with the router (memif).

use crate::application::{Application, eventually, name, start_with};
use namewire_packet::nfd::{FacePersistency, FaceScope, FaceStatus};
use namewire_router::RouterHandle;
use std::{path::PathBuf, thread::spawn};

/// A router with a listener for shared memory, and its path.
fn start(workers: usize) -> (RouterHandle, PathBuf, [tempfile::TempDir; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memif.sock");
    let (router, directory) = start_with(workers, |config| config.settings.faces.memif.path = Some(path.clone()));
    (router, path, [folder, directory])
}

fn memory_faces(operator: &mut Application) -> Vec<FaceStatus> {
    operator.faces().into_iter().filter(|face| face.local_uri.starts_with("memif://")).collect()
}

#[test]
fn applications_exchange_packets_of_all_sizes_through_memory() {
    for workers in [1, 2] {
        let (router, path, _directories) = start(workers);
        let mut producer = Application::connect_memory(&path);
        producer.register("/memory");
        let sizes = [0, 1, 100, 1_500, 4_000, 8_000];
        let rounds = 300;
        let serving = spawn(move || {
            for _ in 0..rounds {
                sizes.iter().for_each(|&size| producer.serve(1, &vec![7; size]));
            }
            producer
        });
        let mut consumer = Application::connect_memory(&path);
        for round in 0..rounds {
            for size in sizes {
                let reply = consumer.express(&format!("/memory/{round}/{size}")).expect("Data");
                assert_eq!(reply.data().content(), vec![7; size]);
            }
        }
        let _producer = serving.join().unwrap();
        let mut operator = Application::connect(&router);
        let faces = memory_faces(&mut operator);
        let sent: u64 = (rounds * sizes.len()) as u64;
        assert_eq!(faces.len(), 2);
        for face in &faces {
            assert_eq!((face.face_scope, face.face_persistency), (FaceScope::Local, FacePersistency::OnDemand));
            assert!(face.uri.starts_with("fd://"), "{}", face.uri);
            assert_eq!(face.local_uri, format!("memif://{}", path.display()));
            assert_eq!(
                face.counters.packets.in_interests + face.counters.packets.out_interests,
                sent + u64::from(face == &faces[0])
            );
        }
    }
}

#[test]
fn a_cache_hit_and_a_unix_producer_work_as_for_any_application() {
    let (router, path, _directories) = start(1);
    let mut producer = Application::connect(&router);
    producer.register("/unix");
    let serving = spawn(move || producer.serve(1, b"hello"));
    let mut consumer = Application::connect_memory(&path);
    for _ in 0..3 {
        assert_eq!(consumer.express("/unix/x").expect("Data").data().content(), b"hello");
    }
    serving.join().unwrap();
}

#[test]
fn the_face_ends_with_its_application_and_the_route_with_it() {
    let (router, path, _directories) = start(1);
    let mut operator = Application::connect(&router);
    for _ in 0..3 {
        let mut producer = Application::connect_memory(&path);
        producer.register("/memory");
        assert_eq!(memory_faces(&mut operator).len(), 1);
        drop(producer);
        eventually("the face is gone", || memory_faces(&mut operator).is_empty());
        let interest = operator.interest(name("/memory/x")).build();
        operator.send(&interest);
        let reply = operator.receive().expect("a Nack");
        assert!(reply.headers.nack.is_some());
    }
}

#[test]
fn frames_that_are_not_ndn_are_counted_and_harm_nobody() {
    let (router, path, _directories) = start(1);
    let mut operator = Application::connect(&router);
    let mut rude = Application::connect_memory(&path);
    let header = |kind: u16| [&[0; 12][..], &kind.to_be_bytes()].concat();
    let vlan = [header(0x8100), vec![0, 5, 0x86, 0x24], vec![5, 5, 7, 3, 8, 1, b'a']].concat();
    rude.send_frame(&[header(0x0800), vec![0x45; 46]].concat());
    rude.send_frame(&vlan);
    rude.send_frame(&[1; 13]);
    rude.send_frame(&[header(0x8624), vec![6, 200, 1]].concat());
    rude.send_frame(&header(0x8624));
    rude.send_frame(&[header(0x8624), vec![5; 9_000]].concat());
    eventually("all are counted", || {
        operator.drops("link.foreign-frame") == 2
            && operator.drops("link.malformed-frame") == 1
            && operator.drops("link.truncated-element") == 2
    });
    assert_eq!(memory_faces(&mut operator).len(), 1, "its face goes on");
    let mut producer = Application::connect(&router);
    producer.register("/unix");
    let serving = spawn(move || producer.serve(1, b"hello"));
    assert_eq!(rude.express("/unix/x").expect("Data").data().content(), b"hello");
    serving.join().unwrap();
}

#[test]
fn an_application_with_short_buffers_gets_no_face() {
    let (router, path, _directories) = start(1);
    let mut operator = Application::connect(&router);
    let options = namewire_memif::ClientOptions { buffer_bytes: 64, ..Default::default() };
    let patience = std::time::Duration::from_secs(30);
    let port = namewire_memif::connect(&path, &options, patience).expect("the handshake itself is right");
    eventually("it is refused", || operator.drops("router.accept-failed") == 1);
    assert_eq!(memory_faces(&mut operator).len(), 0);
    drop(port);
}

#[test]
fn what_an_application_sends_before_it_leaves_arrives() {
    let (router, path, _directories) = start(1);
    let mut producer = Application::connect(&router);
    producer.register("/last");
    for round in 0..20 {
        let mut leaver = Application::connect_memory(&path);
        let interest = leaver.interest(name(&format!("/last/{round}"))).lifetime_ms(4_000).build();
        leaver.send(&interest);
        drop(leaver);
        let received = producer.receive().expect("the Interest of an application that has left");
        assert_eq!(received.interest().name().to_string(), format!("/last/{round}"));
    }
}

#[test]
fn the_router_replaces_a_stale_socket_and_removes_its_own() {
    let (router, path, _directories) = start(1);
    let _application = Application::connect_memory(&path);
    router.stop();
    assert!(!path.exists());
    std::os::unix::net::UnixListener::bind(&path).map(drop).unwrap();
    let (_router, _directory) = start_with(1, |config| config.settings.faces.memif.path = Some(path.clone()));
    let mut application = Application::connect_memory(&path);
    application.register("/memory");
}
