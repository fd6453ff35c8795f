//! A routing daemon like NLSR: it follows the router's face events and gives every neighbour a route (drop-in.md §12,
//! management.md §6.4).

use crate::application::{Application, PATIENCE, eventually, name, start};
use namewire_packet::{
    FaceId, NameBuf,
    nfd::{ControlParameters, FaceEventKind, FaceEventNotification, FaceScope, RibEntry, origin},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};
use std::{collections::BTreeMap, net::UdpSocket};

/// Follows `faces/events` as ndn-cxx's notification subscriber does: it takes the latest notification first, and then
/// each next one by its number.
struct FaceMonitor {
    connection: Application,
    next: Option<NameBuf>,
}

impl FaceMonitor {
    fn ask(&mut self) {
        let interest = match &self.next {
            None => {
                let interest = self.connection.interest(name("/localhost/nfd/faces/events"));
                interest.can_be_prefix(true).must_be_fresh(true)
            }
            Some(next) => self.connection.interest(next.clone()),
        };
        self.connection.send(&interest.lifetime_ms(60_000).build());
    }

    fn take(&mut self) -> FaceEventNotification {
        let packet = self.connection.receive_within(PATIENCE).expect("a face event");
        let data = packet.data();
        let number = data.name().last().and_then(|last| last.as_nni()).expect("a sequence number");
        let mut next = data.name().parent().to_buf();
        next.push_typed_nni(SEQUENCE_NUM_COMPONENT, number + 1);
        self.next = Some(next);
        FaceEventNotification::decode(data.content()).expect("a FaceEventNotification")
    }
}

fn neighbour(remote: &str) -> NameBuf {
    let mut prefix = name("/neighbour");
    prefix.push_generic(remote.as_bytes());
    prefix
}

#[test]
fn a_routing_daemon_follows_faces_and_keeps_a_route_to_each_neighbour() {
    const NEIGHBOURS: usize = 40;
    let (router, _directory) = start(2);
    let mut operator = Application::connect(&router);
    let mut daemon = Application::connect(&router);
    let mut monitor = FaceMonitor { connection: Application::connect(&router), next: None };
    operator.faces();
    daemon.faces();
    monitor.ask();

    // All at once: events come closer together than the second for which the latest stays fresh.
    let sockets: Vec<UdpSocket> = (0..NEIGHBOURS).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    let remotes: Vec<String> =
        sockets.iter().map(|socket| format!("udp4://{}", socket.local_addr().unwrap())).collect();
    let mut made = BTreeMap::new();
    for remote in &remotes {
        let parameters = ControlParameters { uri: Some(remote.clone()), ..Default::default() };
        made.insert(remote.clone(), operator.succeed("/faces/create", parameters).face_id.unwrap());
    }

    let mut known: BTreeMap<String, FaceId> = BTreeMap::new();
    while known.len() < NEIGHBOURS {
        let event = monitor.take();
        monitor.ask();
        if event.kind != FaceEventKind::Created || event.face_scope != FaceScope::NonLocal {
            continue; // applications come and go
        }
        let parameters = ControlParameters {
            name: Some(neighbour(&event.uri)),
            face_id: Some(event.face_id),
            origin: Some(origin::NLSR),
            cost: Some(25),
            ..Default::default()
        };
        let body = daemon.succeed("/rib/register", parameters);
        assert_eq!((body.origin, body.cost), (Some(origin::NLSR), Some(25)));
        assert!(known.insert(event.uri.clone(), event.face_id).is_none(), "{} twice", event.uri);
    }
    assert_eq!(known, made, "every face has had its event, with its own number");
    let routes: Vec<RibEntry> = daemon.dataset("/rib/list");
    for remote in &remotes {
        let prefix = neighbour(remote);
        let entry = routes.iter().find(|entry| entry.name == prefix).expect("a route");
        let route = &entry.routes[0];
        assert_eq!((route.face_id, route.origin, route.cost), (made[remote], origin::NLSR, 25));
    }

    // A neighbour that goes is reported, and its route goes with it.
    let gone = &remotes[NEIGHBOURS / 2];
    operator.succeed("/faces/destroy", ControlParameters { face_id: Some(made[gone]), ..Default::default() });
    let event = loop {
        let event = monitor.take();
        monitor.ask();
        if event.kind == FaceEventKind::Destroyed {
            break event;
        }
    };
    assert_eq!((&event.uri, event.face_id), (gone, made[gone]));
    eventually("its route is gone", || {
        let routes: Vec<RibEntry> = daemon.dataset("/rib/list");
        let is_neighbour = |entry: &&RibEntry| name("/neighbour").as_name().is_prefix_of(&entry.name.as_name());
        routes.iter().filter(is_neighbour).count() == NEIGHBOURS - 1
    });
}
