//! The paths of UDP faces: a face sends frames that its path takes in one piece ([`crate::path_mtu`]).
//!
//! The MTU that a command or the configuration gave is the ceiling. Below it, the face follows the path, down and up.
//! Then NDNLPv2 cuts large packets, and IP does not. IP loses a whole datagram with each lost piece, and many
//! firewalls and address translators drop its pieces.
//!
//! The driver looks at the path when it makes the face, when the kernel reports that a datagram is too large
//! ([`crate::datagram_socket::Failure::Size`]), and at the end of a turn in which the face was used, if the last look
//! is [`super::path::LOOK_PAUSE_NS`] old. A face that is not used costs nothing. Reports can be forged, so they lead to
//! one look a second at most. After each look, the socket sends one large datagram alone, so that the kernel learns of
//! a narrow path (`datagram_socket.rs`).
//!
//! A path may also drop large datagrams without a report. A face with reliability notices such a black hole
//! ([`namewire_links::reliability::black_hole`]) and sends smaller frames for ten minutes ([`super::path`]).
//!
//! The peer of an on-demand face may be an application that does not know NDNLPv2, so that it would drop fragments.
//! IP goes on fragmenting for such a face until the peer has sent an LpPacket.

use std::net::SocketAddr;

use namewire_packet::{FaceId, nfd::FacePersistency};

use super::SocketDriver;
use super::face::{Channel, Face};
use crate::datagram_socket::Peers;
use crate::path_mtu;
use crate::remote::{Destination, Remote};

impl SocketDriver {
    /// Asks the kernel for the MTU of a face's path, and lets the face follow it.
    #[cold]
    pub(super) fn look_at_path(&mut self, id: FaceId) {
        let now_ns = self.now_ns;
        let Some(face) = self.faces.get_mut(id).filter(|face| face.path.has_looks()) else { return };
        face.path.note_look(now_ns);
        if !follows_path(face) {
            return;
        }
        let Some((local, remote)) = self.faces.get(id).and_then(|face| self.path_of(face)) else { return };
        match path_mtu::look_up(local, remote) {
            Ok(found) => self.take_path_mtu(id, found),
            // Without a route, the path stays as it was known, but for a black hole that is over.
            Err(_) => self.settle_path(id),
        }
    }

    /// The kernel reports that a datagram was too large. Looks at the path at once if the last look is a second old.
    #[cold]
    pub(super) fn path_reported(&mut self, id: FaceId) {
        let now_ns = self.now_ns;
        if self.faces.get_mut(id).is_some_and(|face| face.path.may_look_again(now_ns)) {
            self.look_at_path(id);
        }
    }

    /// The face sends what its path takes.
    fn settle_path(&mut self, id: FaceId) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let before = face.link.options().mtu;
        face.apply_mtu();
        face.link.count_path_change(before);
        face.publish();
    }

    /// Large frames of a reliable face vanish on its path: it sends smaller ones for a while.
    #[cold]
    pub(super) fn avoid_black_hole(&mut self, id: FaceId, vanished_bytes: usize) {
        let now_ns = self.now_ns;
        let Some(face) = self.faces.get_mut(id).filter(|face| follows_path(face)) else { return };
        let before = face.link.options().mtu;
        if face.path.avoid(now_ns, vanished_bytes) {
            face.apply_mtu();
            face.link.count_black_hole();
            face.link.count_path_change(before);
            face.publish();
        }
    }

    /// Lets a face follow its path, which takes datagrams of `found` bytes.
    fn take_path_mtu(&mut self, id: FaceId, found: usize) {
        let Some(face) = self.faces.get_mut(id) else { return };
        let is_first = face.path.take(found);
        face.path.wants_scout = true;
        let before = face.link.options().mtu;
        face.apply_mtu();
        let is_raised = face.link.options().mtu > before;
        if !is_first {
            face.link.count_path_change(before);
        }
        face.publish();
        if let Channel::Datagram { socket, .. } = face.channel
            && let Some(socket) = self.sockets.get_mut(socket)
            && is_raised
        {
            socket.forget_refused_runs();
        }
    }

    /// Both ends of a face's path.
    fn path_of(&self, face: &Face) -> Option<(SocketAddr, SocketAddr)> {
        let Channel::Datagram { socket, destination } = face.channel else { return None };
        match (&self.sockets.get(socket)?.peers, destination) {
            (Peers::One { local, remote, .. }, None) => Some((*local, *remote)),
            (
                Peers::Anyone { local } | Peers::Lane { local },
                Some(Destination { remote: Remote::Udp(remote), from }),
            ) => {
                let local = from.map_or(*local, |from| SocketAddr::new(from, local.port()));
                Some((local, remote))
            }
            _ => None,
        }
    }
}

fn follows_path(face: &Face) -> bool {
    let is_on_demand = face.info.persistency == FacePersistency::OnDemand;
    face.path.has_looks() && (!is_on_demand || face.link.peer_speaks_lp())
}

#[cfg(test)]
mod tests {
    use super::super::path::LOOK_PAUSE_NS;
    use super::*;
    use crate::DriverConfig;
    use crate::datagram_socket::Failure;

    const FACE: FaceId = FaceId(5000);

    /// A driver with a face over loopback, of the persistency and with the MTU as commanded.
    fn driver(persistency: FacePersistency, mtu: usize) -> SocketDriver {
        let mut driver = SocketDriver::new(DriverConfig::default()).unwrap();
        let [local, remote] = [0, 9].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        driver.add_udp_face(FACE, local, remote, persistency, mtu).unwrap();
        driver
    }

    fn mtu_in_use(driver: &SocketDriver) -> usize {
        driver.faces.get(FACE).unwrap().link.options().mtu
    }

    /// The story: each datagram above the path's MTU was sent in pieces by IP, or lost, for as long as the face lived.
    #[test]
    fn a_face_follows_its_path_below_the_mtu_that_was_commanded() {
        let mut driver = driver(FacePersistency::Permanent, 1400);
        assert_eq!(mtu_in_use(&driver), 1400);
        for (path, expected, lowered, raised) in
            [(1472, 1400, 0, 0), (1172, 1172, 1, 0), (1172, 1172, 1, 0), (548, 548, 2, 0), (1472, 1400, 2, 1)]
        {
            driver.take_path_mtu(FACE, path);
            assert_eq!(mtu_in_use(&driver), expected, "{path}");
            let counters = driver.counters(FACE).unwrap();
            let counted = counters.snapshot();
            assert_eq!((counted.path_mtu_lowered, counted.path_mtu_raised), (lowered, raised), "{path}");
            assert_eq!(counters.path_mtu.load(std::sync::atomic::Ordering::Relaxed), path as u64);
            assert_eq!(driver.info(FACE).unwrap().mtu, 1400, "what was commanded stays");
        }
        driver.take_path_mtu(FACE, 1172);
        for (commanded, expected) in [(8800, 1172), (1000, 1000)] {
            driver.set_mtu(FACE, commanded);
            assert_eq!(mtu_in_use(&driver), expected, "{commanded}");
        }
    }

    #[test]
    fn a_black_hole_is_avoided_for_ten_minutes() {
        let mut driver = driver(FacePersistency::Permanent, 1472);
        let minutes = |count: u64| count * 60_000_000_000;
        for (now_ns, vanished, expected, holes) in [
            (minutes(1), Some(1472), 1232, 1),
            (minutes(2), Some(1232), 548, 2),
            (minutes(3), Some(548), 548, 2),
            (minutes(11), None, 548, 2),
            (minutes(12), None, 1472, 2),
        ] {
            driver.run_timers(now_ns);
            if let Some(bytes) = vanished {
                driver.avoid_black_hole(FACE, bytes);
            }
            driver.look_at_path(FACE);
            assert_eq!(mtu_in_use(&driver), expected, "at {now_ns} ns");
            assert_eq!(driver.counters(FACE).unwrap().snapshot().path_mtu_black_holes, holes);
        }
    }

    #[test]
    fn an_error_about_size_and_a_used_face_lead_to_a_look() {
        let mut driver = driver(FacePersistency::Persistent, 8800);
        driver.take_path_mtu(FACE, 1172);
        // Loopback takes more, which the look finds. The first look was at the start.
        let later_ns = 2_000_000_000;
        driver.run_timers(later_ns);
        driver.note_failure(FACE, Failure::Size);
        assert_eq!(mtu_in_use(&driver), 8800);
        driver.take_path_mtu(FACE, 1172);
        for (now_ns, expected) in [(later_ns + LOOK_PAUSE_NS - 1, 1172), (later_ns + LOOK_PAUSE_NS, 8800)] {
            driver.run_timers(now_ns);
            driver.flush();
            assert_eq!(mtu_in_use(&driver), 1172, "the face was not used");
            driver.faces.touch(FACE);
            driver.flush();
            assert_eq!(mtu_in_use(&driver), expected);
        }
    }

    /// The story: who could forge reports had the router make five system calls for each.
    #[test]
    fn reports_lead_to_one_look_a_second() {
        let mut driver = driver(FacePersistency::Persistent, 8800);
        for (now_ms, is_looked_at) in
            [(10_000, true), (10_001, false), (10_999, false), (11_000, true), (11_500, false)]
        {
            driver.run_timers(now_ms * 1_000_000);
            driver.take_path_mtu(FACE, 1172);
            driver.note_failure(FACE, Failure::Size);
            assert_eq!(mtu_in_use(&driver) == 8800, is_looked_at, "at {now_ms} ms");
        }
        driver.run_timers(12_000_000_000);
        driver.faces.touch(FACE);
        driver.flush();
        assert_eq!(mtu_in_use(&driver), 8800, "the last report is not forgotten");
    }

    #[test]
    fn ip_fragments_for_an_on_demand_face_until_its_peer_has_sent_an_lp_packet() {
        let mut driver = driver(FacePersistency::Persistent, 8800);
        driver.faces.change(FACE, |face| face.info.persistency = FacePersistency::OnDemand);
        driver.take_path_mtu(FACE, 1172);
        driver.look_at_path(FACE);
        assert_eq!(mtu_in_use(&driver), 1172, "no look took place");
        driver.faces.change(FACE, |face| _ = face.link.receive(0, &[100, 0]));
        driver.look_at_path(FACE);
        assert_eq!(mtu_in_use(&driver), 8800);
    }
}
