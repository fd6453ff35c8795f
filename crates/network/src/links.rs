//! Links: which faces of two routers are the two ends of one link?
//!
//! Two faces belong together if each has the other's local FaceUri as its remote one. If no face matches so, a face
//! still leads to a router if that router has a face with this local address: then the link is *one-sided*, because the
//! other router has no face for it, or not yet.
//!
//! An address on loopback is one of its machine, so such faces match only between routers whose machines have the same
//! name. Addresses of private networks may occur at several places; a face that fits several routers belongs to none.
//!
//! Not found: links through address translation, Ethernet and shared memory (their local FaceUri is no address), and
//! links with several peers.
//!
//! Cost: two hash maps of all faces.

use crate::summary::{FaceSummary, Summary};
use namewire_packet::nfd::FaceUri;
use std::collections::HashMap;

/// A face of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// Which router.
    pub router: usize,
    /// Its face.
    pub face: u64,
}

/// A link between two routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The end that is known.
    pub near: End,
    /// The other router.
    pub far_router: usize,
    /// Its face. `None`: the link is one-sided.
    pub far_face: Option<u64>,
}

/// All links between some routers.
#[derive(Clone, Debug, Default)]
pub struct Links {
    links: Vec<Link>,
    /// From each end to the other router.
    others: HashMap<End, usize>,
}

/// An address with the machine that it is one of, if it is one of a machine alone.
type Place<'a> = (&'a str, Option<&'a str>);

impl Links {
    /// The links between these routers; `None` for one that says nothing of itself.
    pub fn between(routers: &[Option<&Summary>]) -> Self {
        let known: Vec<(usize, &Summary)> =
            routers.iter().enumerate().filter_map(|(index, summary)| Some((index, (*summary)?))).collect();
        let mut by_both: HashMap<(Place<'_>, &str), Vec<End>> = HashMap::new();
        let mut by_local: HashMap<Place<'_>, Vec<usize>> = HashMap::new();
        for &(router, summary) in &known {
            for face in faces(summary) {
                let local = place(&face.local, summary);
                by_both.entry((local, &face.remote)).or_default().push(End { router, face: face.id });
                let routers = by_local.entry(local).or_default();
                if routers.last() != Some(&router) {
                    routers.push(router);
                }
            }
        }
        let mut links = Links::default();
        for &(router, summary) in &known {
            for face in faces(summary) {
                let near = End { router, face: face.id };
                if links.others.contains_key(&near) {
                    continue;
                }
                let (local, remote) = (place(&face.local, summary), place(&face.remote, summary));
                if by_local.get(&local).is_some_and(|routers| routers.len() > 1) {
                    continue; // an address of a private network, at several places
                }
                let matching = by_both.get(&(remote, &face.local)).map(Vec::as_slice).unwrap_or_default();
                let mut matching = matching.iter().filter(|far| far.router != router);
                if let (Some(far), None) = (matching.next(), matching.next()) {
                    links.add(Link { near, far_router: far.router, far_face: Some(far.face) });
                    continue;
                }
                let mut at = by_local.get(&remote).into_iter().flatten().filter(|other| **other != router);
                if let (Some(&far_router), None) = (at.next(), at.next()) {
                    links.add(Link { near, far_router, far_face: None });
                }
            }
        }
        links
    }

    fn add(&mut self, link: Link) {
        self.others.insert(link.near, link.far_router);
        if let Some(face) = link.far_face {
            self.others.insert(End { router: link.far_router, face }, link.near.router);
        }
        self.links.push(link);
    }

    /// Each once.
    pub fn all(&self) -> &[Link] {
        &self.links
    }

    /// The router at the other end.
    pub fn other(&self, end: End) -> Option<usize> {
        self.others.get(&end).copied()
    }
}

/// Faces that may be one end of a link.
fn faces(summary: &Summary) -> impl Iterator<Item = &FaceSummary> {
    summary.faces.iter().filter(|face| !face.has_several_peers && is_address(&face.local) && is_address(&face.remote))
}

fn is_address(uri: &str) -> bool {
    let is_specific = |ip: std::net::IpAddr| !ip.is_unspecified();
    ip_of(uri).is_some_and(is_specific)
}

fn place<'a>(uri: &'a str, summary: &'a Summary) -> Place<'a> {
    let is_of_machine = ip_of(uri).is_some_and(|ip| ip.is_loopback());
    (uri, is_of_machine.then_some(&*summary.host))
}

fn ip_of(uri: &str) -> Option<std::net::IpAddr> {
    match uri.parse().ok()? {
        FaceUri::Udp4(address) | FaceUri::Tcp4(address) => Some((*address.ip()).into()),
        FaceUri::Udp6(endpoint) | FaceUri::Tcp6(endpoint) => Some(endpoint.address.into()),
        FaceUri::WebSocket(address) | FaceUri::WebSocketClient(address) => Some(address.ip()),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn face(id: u64, local: &str, remote: &str) -> FaceSummary {
        FaceSummary { id, local: local.into(), remote: remote.into(), state: "up".into(), ..FaceSummary::default() }
    }

    pub(crate) fn router(host: &str, faces: Vec<FaceSummary>) -> Summary {
        Summary { host: host.into(), faces, ..Summary::default() }
    }

    fn found(routers: &[Summary]) -> Vec<String> {
        let links = Links::between(&routers.iter().map(Some).collect::<Vec<_>>());
        let text = |link: &Link| {
            let far = link.far_face.map_or("?".to_owned(), |face| face.to_string());
            let other = links.other(link.near);
            assert_eq!(other, Some(link.far_router));
            format!("{}.{}-{}.{far}", link.near.router, link.near.face, link.far_router)
        };
        links.all().iter().map(text).collect()
    }

    #[test]
    fn two_faces_that_name_each_other_are_one_link() {
        let (a, b) = ("udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363");
        let routers = [
            router("a", vec![face(7, a, b), face(8, "tcp4://192.0.2.1:40000", "tcp4://192.0.2.2:6363")]),
            router("b", vec![face(9, b, a), face(10, "tcp4://192.0.2.2:6363", "tcp4://192.0.2.1:40000")]),
        ];
        assert_eq!(found(&routers), ["0.7-1.9", "0.8-1.10"]);
    }

    #[test]
    fn a_face_without_a_partner_still_leads_to_the_router_of_that_address() {
        let routers = [
            router("a", vec![face(7, "udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363")]),
            router("b", vec![face(9, "udp4://192.0.2.2:6363", "udp4://192.0.2.3:6363")]),
        ];
        assert_eq!(found(&routers), ["0.7-1.?"]);
    }

    #[test]
    fn what_fits_several_routers_is_guessed_for_none() {
        let (a, b) = ("udp4://10.0.0.1:6363", "udp4://10.0.0.2:6363");
        let there = || vec![face(1, b, a)];
        assert!(found(&[router("a", vec![face(1, a, b)]), router("b", there()), router("c", there())]).is_empty());
    }

    #[test]
    fn loopback_is_within_one_machine() {
        let (a, b) = ("udp4://127.0.0.1:1", "udp4://127.0.0.1:2");
        let of =
            |one: &str, other: &str| found(&[router(one, vec![face(1, a, b)]), router(other, vec![face(2, b, a)])]);
        assert_eq!(of("host", "host"), ["0.1-1.2"]);
        assert!(of("host", "elsewhere").is_empty());
    }

    #[test]
    fn groups_and_other_ends_are_no_links() {
        let group =
            FaceSummary { has_several_peers: true, ..face(1, "udp4://192.0.2.1:1", "udp4://224.0.23.170:56363") };
        let routers = [
            router("a", vec![group.clone(), face(2, "dev://eth0", "ether://[02:00:00:00:00:01]"), face(3, "", "x")]),
            router("b", vec![group, face(2, "dev://eth0", "ether://[02:00:00:00:00:02]")]),
        ];
        assert!(found(&routers).is_empty());
        assert!(Links::between(&[None, Some(&routers[0])]).all().is_empty());
    }
}
