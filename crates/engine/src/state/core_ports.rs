//! Ports: which small number represents a face in a face list, and which face has this number?
//!
//! A face gets the lowest free number with its first Interest, and keeps it while the face exists. The number of a
//! removed face becomes free once no entry can name it ([`FingerprintPit::is_port_leaving`]).
//!
//! Cost: an Interest reads one cache line of [`FaceMap`]; Data reads 8 bytes of an array per port; a new face takes a
//! pass over all ports. Memory: a port takes 8 bytes, and two to four map slots of 16 bytes. Limit: the ports of the
//! face list, 16 to 256. Writer: the worker.

use crate::ground::face_table::FaceMap;
use namewire_packet::FaceId;
use namewire_tables::fingerprint_pit::FingerprintPit;

/// See the module.
pub(crate) struct Ports {
    numbers: FaceMap<u16>,
    /// By number; [`FaceId::INVALID`] for a free port.
    faces: Box<[FaceId]>,
}

impl Ports {
    /// Has the numbers below `ports`.
    pub(crate) fn new(ports: u16) -> Self {
        let faces = vec![FaceId::INVALID; usize::from(ports)].into_boxed_slice();
        Ports { numbers: FaceMap::with_room(faces.len()), faces }
    }

    /// The number of `face`, if it has one.
    #[inline]
    pub(crate) fn known(&self, face: FaceId) -> Option<u16> {
        self.numbers.get(face).copied()
    }

    /// The number of `face`, perhaps a new one; `None` if all are taken.
    #[inline]
    pub(crate) fn number(&mut self, face: FaceId, fingerprints: &FingerprintPit) -> Option<u16> {
        self.known(face).or_else(|| self.assign(face, fingerprints))
    }

    #[cold]
    fn assign(&mut self, face: FaceId, fingerprints: &FingerprintPit) -> Option<u16> {
        if self.numbers.len() == self.faces.len() {
            return None;
        }
        let is_free =
            |port: &u16| self.faces[usize::from(*port)] == FaceId::INVALID && !fingerprints.is_port_leaving(*port);
        let port = (0..self.faces.len() as u16).find(is_free)?;
        self.faces[usize::from(port)] = face;
        self.numbers.insert(face, port);
        Some(port)
    }

    /// The face of a port.
    #[inline]
    pub(crate) fn face(&self, port: u16) -> FaceId {
        self.faces[usize::from(port)]
    }

    /// Forgets removed faces.
    pub(crate) fn remove(&mut self, faces: &[FaceId], fingerprints: &mut FingerprintPit) {
        let forget = |&face| {
            let port = self.known(face)?;
            self.numbers.remove(face);
            self.faces[usize::from(port)] = FaceId::INVALID;
            Some(port)
        };
        fingerprints.remove_ports(faces.iter().filter_map(forget));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_tables::fingerprint_pit::FingerprintPitConfig;

    const HASH: u64 = 0x1234_5678_9abc_def0;
    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_number_is_used_again_only_when_no_entry_can_name_its_former_face() {
        let mut table = FingerprintPit::new(FingerprintPitConfig::new(1024), 1).unwrap();
        let mut ports = Ports::new(table.ports());
        for place in 0..16 {
            assert_eq!(ports.number(FaceId(300 + place), &table), Some(place as u16));
            assert_eq!(ports.number(FaceId(300 + place), &table), Some(place as u16), "it keeps it");
        }
        assert_eq!(ports.number(FaceId(400), &table), None);
        table.insert(HASH, 5, SECOND_NS, 15 * SECOND_NS).unwrap();
        ports.remove(&[FaceId(305)], &mut table);
        assert_eq!((ports.face(5), ports.known(FaceId(305))), (FaceId::INVALID, None));
        assert_eq!(ports.number(FaceId(400), &table), None, "an entry names it");
        let mut now_ns = SECOND_NS;
        while table.is_port_leaving(5) {
            now_ns += SECOND_NS / 100;
            table.sweep(now_ns);
            assert!(now_ns < 10 * SECOND_NS, "for ever?");
        }
        assert_eq!(ports.number(FaceId(400), &table), Some(5));
        let named = table.lookup(HASH, now_ns).map(|found| found.ports.len());
        assert_eq!(named.unwrap_or(0), 0, "nobody is sent what another asked for");
    }
}
