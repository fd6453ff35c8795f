//! Authentication: is this packet from a router that has the tree's key, and is it new?
//!
//! A tree may have a key, which all its routers have. Then each packet between them travels in an envelope, and a
//! router takes no other. Without a key there is no envelope.
//!
//! ```text
//!   Envelope = 39455 LENGTH
//!     byte 0      2           10     18                   50
//!          tree   challenge   echo   HMAC-SHA256          a hello, or announcements
//!          (2)    (8)         (8)    (32)
//! ```
//!
//! The code is over everything else in the envelope (RFC 2104). *Challenge* is a random number of the sender for this
//! link, *echo* the last challenge that it received from the neighbour. A packet whose echo is not our challenge may be
//! a recorded one. The router takes only the challenge from such a packet, and only if the neighbour has not answered
//! for a while. So two routers accept each other's packets from their second hello on. A challenge is replaced after
//! [`CHALLENGE_MS`]; within that time, the numbers of hellos and announcements make recorded ones recognizable.
//!
//! Limits: one neighbour for each face. A router that has the key can claim anything.

use super::RoutingRefusal;
use hmac::{Hmac, KeyInit, Mac};
use namewire_packet::{
    FaceId,
    tag::tag_types,
    tlv::{self, read_element},
};
use sha2::Sha256;
use std::{collections::BTreeMap, fmt};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
const CODE_AT: usize = 18;
const PACKET_AT: usize = CODE_AT + 32;
/// A challenge is used this long, and its echo is good as long again.
const CHALLENGE_MS: u64 = 600_000;

/// The key of a tree.
#[derive(Clone, PartialEq, Eq)]
pub struct TreeKey([u8; KEY_BYTES]);

impl TreeKey {
    /// These bytes, which should be random.
    pub const fn new(bytes: [u8; KEY_BYTES]) -> Self {
        TreeKey(bytes)
    }

    fn code(&self, parts: [&[u8]; 2]) -> Option<Hmac<Sha256>> {
        let mut code = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        parts.iter().for_each(|part| code.update(part));
        Some(code)
    }
}

impl fmt::Debug for TreeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TreeKey(secret)")
    }
}

/// The challenges of a link.
#[derive(Clone, Copy, Debug)]
struct Challenges {
    /// Ours, and the one before it.
    ours: [u64; 2],
    since_ms: u64,
    theirs: u64,
    /// When the neighbour last answered ours.
    answered_ms: Option<u64>,
}

/// The keys of all trees, and where this router is with its neighbours.
#[derive(Debug)]
pub(super) struct Authentication {
    keys: BTreeMap<u16, TreeKey>,
    links: BTreeMap<(FaceId, u16), Challenges>,
    random: fastrand::Rng,
    /// A neighbour that has not answered for this long may have started again.
    silent_ms: u64,
}

impl Authentication {
    pub(super) fn new(keys: BTreeMap<u16, TreeKey>, silent_ms: u64, random: fastrand::Rng) -> Self {
        Authentication { keys, links: BTreeMap::new(), random, silent_ms }
    }

    /// A face is gone or down.
    pub(super) fn face_down(&mut self, face: FaceId) {
        self.links.retain(|(other, _), _| *other != face);
    }

    /// The packet as it is sent in this tree.
    pub(super) fn seal(&mut self, face: FaceId, tree: u16, packet: Vec<u8>, now_ms: u64) -> Vec<u8> {
        if !self.keys.contains_key(&tree) {
            return packet;
        }
        let Challenges { ours, theirs, .. } = *self.challenges(face, tree, now_ms);
        let mut head = [0; CODE_AT];
        head[..2].copy_from_slice(&tree.to_be_bytes());
        head[2..10].copy_from_slice(&ours[0].to_be_bytes());
        head[10..].copy_from_slice(&theirs.to_be_bytes());
        let code = self.keys.get(&tree).and_then(|key| key.code([&head, &packet]));
        let code = code.map(|code| code.finalize().into_bytes());
        let mut out = Vec::with_capacity(PACKET_AT + packet.len() + 6);
        tlv::write_nested(&mut out, tag_types::ENVELOPE, |out| {
            out.extend(head);
            code.iter().for_each(|code| out.extend_from_slice(code));
            out.extend_from_slice(&packet);
        });
        out
    }

    /// The packet that a neighbour sent, and the tree of its envelope if it has one.
    ///
    /// # Errors
    /// If the envelope is malformed, forged, or may be recorded.
    pub(super) fn open<'p>(
        &mut self,
        face: FaceId,
        received: &'p [u8],
        now_ms: u64,
    ) -> Result<(&'p [u8], Option<u16>), RoutingRefusal> {
        let envelope = read_element(received).map_err(|_| RoutingRefusal::Malformed)?;
        if envelope.type_number != tag_types::ENVELOPE {
            return Ok((received, None));
        }
        let value = envelope.value;
        if envelope.wire.len() != received.len() || value.len() < PACKET_AT {
            return Err(RoutingRefusal::Malformed);
        }
        let (head, packet) = (&value[..CODE_AT], &value[PACKET_AT..]);
        let tree = u16::from_be_bytes([head[0], head[1]]);
        let code = self.keys.get(&tree).and_then(|key| key.code([head, packet])).ok_or(RoutingRefusal::NotAuthentic)?;
        code.verify_slice(&value[CODE_AT..PACKET_AT]).map_err(|_| RoutingRefusal::NotAuthentic)?;
        let number = |at: usize| value[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (challenge, echo, silent_ms) = (number(2), number(10), self.silent_ms);
        let link = self.challenges(face, tree, now_ms);
        if link.ours.contains(&echo) && echo != 0 {
            (link.theirs, link.answered_ms) = (challenge, Some(now_ms));
            return Ok((packet, Some(tree)));
        }
        if link.answered_ms.is_none_or(|answered_ms| now_ms >= answered_ms + silent_ms) {
            link.theirs = challenge;
        }
        Err(RoutingRefusal::NotFresh)
    }

    /// Whether a packet of this tree needs an envelope.
    pub(super) fn has_key(&self, tree: u16) -> bool {
        self.keys.contains_key(&tree)
    }

    fn challenges(&mut self, face: FaceId, tree: u16, now_ms: u64) -> &mut Challenges {
        let Authentication { links, random, .. } = self;
        let link = links.entry((face, tree)).or_insert_with(|| Challenges {
            ours: [random.u64(1..), 0],
            since_ms: now_ms,
            theirs: 0,
            answered_ms: None,
        });
        if now_ms >= link.since_ms + CHALLENGE_MS {
            link.ours = [random.u64(1..), link.ours[0]];
            link.since_ms = now_ms;
        }
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: FaceId = FaceId(300);
    const SILENT_MS: u64 = 3_500;

    fn router(key: u8, seed: u64) -> Authentication {
        let keys = BTreeMap::from([(1, TreeKey::new([key; KEY_BYTES]))]);
        Authentication::new(keys, SILENT_MS, fastrand::Rng::with_seed(seed))
    }

    fn open(router: &mut Authentication, packet: &[u8], now_ms: u64) -> Result<(Vec<u8>, Option<u16>), RoutingRefusal> {
        router.open(FACE, packet, now_ms).map(|(packet, tree)| (packet.to_vec(), tree))
    }

    #[test]
    fn two_routers_accept_each_other_from_the_second_packet_on() {
        let (mut a, mut b) = (router(1, 1), router(1, 2));
        let first = a.seal(FACE, 1, vec![9, 9], 0);
        assert_eq!(open(&mut b, &first, 0), Err(RoutingRefusal::NotFresh));
        let answer = b.seal(FACE, 1, vec![8], 0);
        assert_eq!(open(&mut a, &answer, 0), Ok((vec![8], Some(1))));
        let second = a.seal(FACE, 1, vec![7], 0);
        assert_eq!(open(&mut b, &second, 0), Ok((vec![7], Some(1))));
        // Without a key there is no envelope.
        assert_eq!(a.seal(FACE, 2, vec![5, 0], 0), [5, 0]);
        assert_eq!(open(&mut b, &[5, 0], 0), Ok((vec![5, 0], None)));
    }

    #[test]
    fn packets_changed_or_sealed_with_another_key_are_refused() {
        let (mut a, mut b, mut other) = (router(1, 1), router(1, 2), router(2, 3));
        let sealed = a.seal(FACE, 1, vec![9, 9], 0);
        let forged = other.seal(FACE, 1, vec![9, 9], 0);
        assert_eq!(open(&mut b, &forged, 0), Err(RoutingRefusal::NotAuthentic));
        for place in 4..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert_eq!(open(&mut b, &changed, 0), Err(RoutingRefusal::NotAuthentic), "byte {place}");
        }
        for length in 0..sealed.len() {
            assert_eq!(open(&mut b, &sealed[..length], 0), Err(RoutingRefusal::Malformed), "{length} bytes");
        }
    }

    /// A recorded packet of another link, of an earlier life or of long ago changes nothing, and does not keep the
    /// neighbour from being heard.
    #[test]
    fn recorded_packets_are_not_accepted() {
        let (mut a, mut b) = (router(1, 1), router(1, 2));
        open(&mut b, &a.seal(FACE, 1, vec![1], 0), 0).unwrap_err();
        open(&mut a, &b.seal(FACE, 1, vec![2], 0), 0).unwrap();
        let recorded = a.seal(FACE, 1, vec![3], 0);
        open(&mut b, &recorded, 0).unwrap();
        let mut again = router(1, 5);
        assert_eq!(open(&mut again, &recorded, 10), Err(RoutingRefusal::NotFresh), "b has started again");
        assert_eq!(b.open(FaceId(301), &recorded, 10), Err(RoutingRefusal::NotFresh), "another link");
        for now_ms in (0..4 * CHALLENGE_MS).step_by(1_000) {
            open(&mut b, &a.seal(FACE, 1, vec![4], now_ms), now_ms).unwrap();
            open(&mut a, &b.seal(FACE, 1, vec![5], now_ms), now_ms).unwrap();
        }
        assert_eq!(open(&mut b, &recorded, 4 * CHALLENGE_MS), Err(RoutingRefusal::NotFresh));
        open(&mut b, &a.seal(FACE, 1, vec![6], 4 * CHALLENGE_MS), 4 * CHALLENGE_MS).unwrap();
    }

    /// RFC 4231, test case 2, has a shorter key; the key of HMAC is filled up with zeros.
    #[test]
    fn the_code_is_that_of_the_rfc() {
        let mut key = [0; KEY_BYTES];
        key[..4].copy_from_slice(b"Jefe");
        let code = TreeKey::new(key).code([b"what do ya want ", b"for nothing?"]).unwrap().finalize().into_bytes();
        let expected = [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e];
        assert_eq!((&code[..8], code[31]), (&expected[..], 0x43));
    }
}
