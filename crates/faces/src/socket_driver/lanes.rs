//! Lanes: the part that this worker has in UDP faces whose packets any worker may send and receive (decision 0019).
//!
//! A lane is a socket that is bound and not connected. Each pair of this lane and a lane of the neighbour is a *lane
//! link*: a face of the driver with its own number, numbers of frames, reassembly and reliability. What it receives
//! counts as received by the face that it is a part of ([`Face::part_of`]). Only the driver knows the number of a lane
//! link, and whoever sends through it.
//!
//! The socket hands on what comes from the neighbour's lanes, and refuses the rest ([`LinkDrop::ForeignRemote`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use namewire_links::LinkOptions;
use namewire_packet::FaceId;

use super::SocketDriver;
use super::face::{Channel, Face};
use super::lane_table::Lane;
use crate::datagram_port::DatagramPort;
use crate::datagram_socket::Peers;
use crate::remote::Remote;
use crate::{AddFaceError, FaceCounters, FaceInfo, LinkPolicy, udp};

impl SocketDriver {
    /// Opens this worker's lane of a face, at any free port of `local`. Returns the port.
    ///
    /// # Errors
    /// [`AddFaceError::Exists`] if the face has a lane here; [`AddFaceError::Io`] if the socket cannot be bound or
    /// watched.
    pub fn open_lane(&mut self, face: FaceId, local: SocketAddr) -> Result<u16, AddFaceError> {
        if self.lanes.contains_key(&face) {
            return Err(AddFaceError::Exists(face));
        }
        let socket = udp::bind_lane(local)?;
        let local = socket.local_addr()?;
        let socket = self.watch_datagrams(DatagramPort::Socket(socket.into()), Peers::Lane { local })?;
        self.lanes.insert(face, Lane { socket, links: Vec::new() });
        Ok(local.port())
    }

    /// Links this worker's lane of a face to lanes of the neighbour, in place of those that it was linked to. `info` is
    /// the face's. Returns the links' numbers and counters, in the order of `remotes`.
    ///
    /// # Errors
    /// [`AddFaceError::FaceLimit`] if the worker has no room; [`AddFaceError::Io`] if the face has no lane here. Then
    /// the lane has no links.
    pub fn link_lane(
        &mut self,
        now_ns: u64,
        face: FaceId,
        info: &FaceInfo,
        policy: LinkPolicy,
        remotes: &[SocketAddr],
    ) -> Result<Vec<(FaceId, Arc<FaceCounters>)>, AddFaceError> {
        self.now_ns = now_ns;
        self.unlink_lane(face);
        let socket = self.lanes.get(&face).map(|lane| lane.socket);
        let socket = socket.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let mut linked = Vec::with_capacity(remotes.len());
        for &remote in remotes {
            let id = self.config.face_ids.allocate();
            if let Err(error) = self.check_room(id, info) {
                self.unlink_lane(face);
                return Err(error);
            }
            let remote = Remote::Udp(remote);
            let channel = Channel::Datagram { socket, destination: Some(remote.into()) };
            let options = LinkOptions { policy, ..self.datagram_options(&remote, info.mtu) };
            let holder = self.config.holders.enter(&info.holder());
            let mut link = Face::new(id, holder, channel, options, info.clone(), now_ns);
            link.become_part_of(face);
            self.insert_made(link);
            self.look_at_path(id);
            self.lanes.entry(face).and_modify(|lane| lane.links.push(id));
            linked.push((id, self.counters(id).unwrap_or_default()));
        }
        Ok(linked)
    }

    /// The links of this worker's lane of a face; none if it has no lane.
    pub fn lane_links(&self, face: FaceId) -> &[FaceId] {
        self.lanes.get(&face).map_or(&[], |lane| &lane.links)
    }

    /// Sends an idle packet from this worker's lane to each lane of the neighbour.
    pub fn greet_lanes(&mut self, face: FaceId) {
        for link in self.lane_links(face).to_vec() {
            self.send_probe(link);
        }
    }

    /// Closes this worker's lane of a face, and all its links.
    pub fn close_lane(&mut self, face: FaceId) {
        self.unlink_lane(face);
        if let Some(Lane { socket, .. }) = self.lanes.remove(&face) {
            self.close_datagrams(socket);
        }
    }

    /// Listens to LaneHellos on a face, or ignores them.
    pub fn hear_lane_hellos(&mut self, face: FaceId, wanted: bool) {
        self.faces.change(face, |face| face.link.hear_lane_hellos(wanted));
    }

    /// Sends one whole frame through a face with a socket of its own.
    pub fn send_frame(&mut self, now_ns: u64, face: FaceId, frame: &[u8]) {
        self.now_ns = now_ns;
        self.queue_frame(face, frame);
    }

    fn unlink_lane(&mut self, face: FaceId) {
        let links = self.lanes.get_mut(&face).map(|lane| std::mem::take(&mut lane.links));
        for link in links.into_iter().flatten() {
            self.take_face(link);
        }
    }
}

impl Face {
    /// It is a lane link of `whole`: what it receives is that face's.
    fn become_part_of(&mut self, whole: FaceId) {
        self.part_of = whole;
        self.spoke_lp = true; // the neighbour speaks LaneHello
        self.last_received_ns = 0; // nothing: control looks whether the neighbour's lane was heard
    }

    /// True for a lane link.
    pub(super) fn is_part(&self) -> bool {
        self.part_of != self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DriverConfig, FaceEvent, LinkDrop, RxArena};
    use namewire_packet::lp::LpHeaders;
    use namewire_packet::nfd::FacePersistency;
    use std::net::UdpSocket;
    use std::time::Duration;

    const FACE: FaceId = FaceId(300);

    struct End {
        driver: SocketDriver,
        info: FaceInfo,
        port: u16,
    }

    fn end() -> End {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        driver.config.face_ids.skip_to(FaceId(1000));
        let [local, remote] = [0, 9].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let info = driver.add_udp_face(FACE, local, remote, FacePersistency::Permanent, 1400).unwrap();
        let port = driver.open_lane(FACE, local).unwrap();
        End { driver, info, port }
    }

    fn link(end: &mut End, ports: &[u16]) -> Vec<FaceId> {
        let remotes: Vec<SocketAddr> = ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect();
        let linked = end.driver.link_lane(1, FACE, &end.info.clone(), LinkPolicy::default(), &remotes).unwrap();
        linked.into_iter().map(|(id, _)| id).collect()
    }

    /// What a driver receives until it has `count` packets: the face of each, and its bytes.
    fn receive(driver: &mut SocketDriver, count: usize) -> Vec<(FaceId, Vec<u8>)> {
        let (mut arena, mut packets, mut all) = (RxArena::new(), Vec::new(), Vec::new());
        for _ in 0..200 {
            driver.wait(Some(Duration::from_millis(50))).unwrap();
            driver.receive(1, &mut arena, &mut packets, 64);
            all.extend(packets.iter().map(|packet| (packet.face, arena.packet(packet).to_vec())));
            driver.flush();
            if all.len() >= count {
                break;
            }
        }
        all
    }

    fn data(bytes: usize) -> Vec<u8> {
        let mut data = Vec::new();
        namewire_packet::tlv::write_tlv(&mut data, 6, &vec![0; bytes]);
        data
    }

    /// Two lanes there and one here: fragments of both arrive, as packets of the face.
    #[test]
    fn what_comes_by_a_lane_is_the_faces_and_each_pair_of_lanes_has_its_numbers() {
        let (mut a, mut b, mut c) = (end(), end(), end());
        let to_b_and_c = link(&mut a, &[b.port, c.port]);
        let (from_b, from_c) = (link(&mut b, &[a.port]), link(&mut c, &[a.port]));
        assert_eq!(a.driver.lane_links(FACE), to_b_and_c);
        let packet = data(5000);
        for (driver, link) in [(&mut b.driver, from_b[0]), (&mut c.driver, from_c[0])] {
            driver.send(1, link, &LpHeaders::default(), &packet).unwrap();
            driver.flush();
        }
        assert_eq!(receive(&mut a.driver, 2), vec![(FACE, packet.clone()); 2]);
        a.driver.send(1, to_b_and_c[1], &LpHeaders::default(), &packet).unwrap();
        a.driver.flush();
        assert_eq!(receive(&mut c.driver, 1), [(FACE, packet)]);
        let counted = |driver: &SocketDriver, link| driver.counters(link).unwrap().snapshot();
        assert_eq!(to_b_and_c.iter().map(|link| counted(&a.driver, *link).in_data).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(counted(&a.driver, FACE).in_data, 0, "the trunk carried nothing");
        assert_eq!(a.driver.events().count(), 0, "nobody else hears of lane links");
    }

    #[test]
    fn only_the_neighbours_lanes_are_heard() {
        let mut a = end();
        let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        link(&mut a, &[neighbour.local_addr().unwrap().port()]);
        for socket in [&stranger, &neighbour] {
            socket.send_to(&data(10), ("127.0.0.1", a.port)).unwrap();
        }
        assert_eq!(receive(&mut a.driver, 1), [(FACE, data(10))]);
        assert_eq!(a.driver.faceless_counters().dropped(LinkDrop::ForeignRemote), 1);
        // New lanes replace the former ones.
        link(&mut a, &[stranger.local_addr().unwrap().port()]);
        for socket in [&neighbour, &stranger] {
            socket.send_to(&data(20), ("127.0.0.1", a.port)).unwrap();
        }
        assert_eq!(receive(&mut a.driver, 1), [(FACE, data(20))]);
        assert_eq!(a.driver.faceless_counters().dropped(LinkDrop::ForeignRemote), 2);
    }

    #[test]
    fn a_face_that_goes_takes_its_lane_along() {
        let mut a = end();
        link(&mut a, &[9, 10]);
        let address = ("127.0.0.1", a.port);
        UdpSocket::bind(address).expect_err("the lane has it");
        assert_eq!(a.driver.face_count(), 3);
        assert!(matches!(a.driver.open_lane(FACE, "127.0.0.1:0".parse().unwrap()), Err(AddFaceError::Exists(FACE))));
        a.driver.remove_face(FACE);
        assert_eq!((a.driver.face_count(), a.driver.lane_links(FACE)), (0, &[][..]));
        UdpSocket::bind(address).expect("its port is free");
    }

    #[test]
    fn a_hello_is_an_event_where_it_is_wanted() {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = "127.0.0.1:0".parse().unwrap();
        let info =
            driver.add_udp_face(FACE, local, peer.local_addr().unwrap(), FacePersistency::Permanent, 1400).unwrap();
        driver.hear_lane_hellos(FACE, true);
        let hello =
            namewire_packet::lane_hello::LaneHello { instance: 1, echo: 0, hears: false, key: [1; 16], ports: vec![7] };
        let ours = info.local.to_string().trim_start_matches("udp4://").to_owned();
        peer.send_to(&hello.to_frame(), ours).unwrap();
        let mut found = None;
        for _ in 0..200 {
            receive(&mut driver, 0);
            found = driver.events().find(|event| matches!(event, FaceEvent::LaneHello { .. }));
            if found.is_some() {
                break;
            }
        }
        assert_eq!(found, Some(FaceEvent::LaneHello { face: FACE, hello: hello.clone() }));
        driver.send_frame(1, FACE, &hello.to_frame());
        driver.flush();
        let mut bytes = [0; 200];
        let count = peer.recv(&mut bytes).unwrap();
        assert_eq!(bytes[..count], hello.to_frame());
    }
}
