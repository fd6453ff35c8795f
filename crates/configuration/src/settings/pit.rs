//! `[pit]`: how the router keeps pending Interests.

use super::choice::Choice;
use super::ranges::{face_sets, fingerprint_bits, fingerprints, overflow, round_trips, segments, subtables};
use namewire_engine::{CoreConfig, PitRole};
use namewire_tables::fingerprint_pit::{FaceList, FingerprintPitConfig};
use serde::{Deserialize, Serialize};

/// Sets of faces, used where a bit vector is too short: four for each of 256 ports.
const DEFAULT_FACE_SETS: u16 = 1024;

/// `[pit]`. Everything but the role concerns the core role. Numbers of entries are over all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PitSection {
    /// Keep Interests by name, or by fingerprint where that is enough.
    pub role: Choice<Role>,
    /// Fingerprints that the table has room for.
    #[serde(deserialize_with = "fingerprints")]
    pub fingerprints: u32,
    /// Bits of a fingerprint.
    #[serde(deserialize_with = "fingerprint_bits")]
    pub fingerprint_bits: u8,
    /// Places that a name may have, by hash.
    #[serde(deserialize_with = "subtables")]
    pub subtables: u8,
    /// Parts of the table; each serves some of the faces.
    #[serde(deserialize_with = "segments")]
    pub segments: u8,
    /// Entries for names whose places are full. Without it, one for 32 fingerprints.
    #[serde(deserialize_with = "overflow", skip_serializing_if = "Option::is_none")]
    pub overflow: Option<u32>,
    /// How an entry keeps its faces.
    pub faces: FaceListChoice,
    /// Different sets of faces that can be kept.
    #[serde(deserialize_with = "face_sets")]
    pub face_sets: u16,
    /// While fewer Interests are pending by name than this, all are kept by name.
    pub names_up_to: u32,
    /// Treat a matching fingerprint as the same name.
    pub aggregate: bool,
    /// How long an entry stays, in round-trip times of its prefix.
    #[serde(deserialize_with = "round_trips", skip_serializing_if = "Option::is_none")]
    pub expiry_round_trips: Option<u8>,
}

namewire_packet::names! {
    /// The router's role in the network.
    #[derive(Default)]
    pub enum Role {
        /// Interests are kept by name, and aggregated.
        #[default]
        Edge = "edge",
        /// Interests are kept by fingerprint where that is enough.
        Core = "core",
    }
}

super::choice::named! {
    Role: &Self::ALL;
}

/// How an entry keeps its faces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaceListChoice {
    /// A vector of 16 bits.
    #[default]
    Bits,
    /// A number that chooses one of many sets of 256.
    Sets,
}

impl Default for PitSection {
    fn default() -> Self {
        PitSection {
            role: Choice::default(),
            fingerprints: 65_536,
            fingerprint_bits: 16,
            subtables: 2,
            segments: 1,
            overflow: None,
            faces: FaceListChoice::Bits,
            face_sets: DEFAULT_FACE_SETS,
            names_up_to: 0,
            aggregate: false,
            expiry_round_trips: None,
        }
    }
}

impl PitSection {
    /// The role in the engine's form.
    pub fn role(&self) -> PitRole {
        if self.role.0 == Role::Edge {
            return PitRole::Edge;
        }
        let sizes = FingerprintPitConfig::new(self.fingerprints);
        PitRole::Core(CoreConfig {
            fingerprints: FingerprintPitConfig {
                subtables: self.subtables,
                segments: self.segments,
                fingerprint_bits: self.fingerprint_bits,
                overflow_entries: self.overflow.unwrap_or(sizes.overflow_entries),
                faces: match self.faces {
                    FaceListChoice::Bits => FaceList::Bits,
                    FaceListChoice::Sets => FaceList::Sets { max_sets: self.face_sets },
                },
                ..sizes
            },
            names_up_to: self.names_up_to,
            aggregate: self.aggregate,
            expiry_round_trips: self.expiry_round_trips,
        })
    }
}
