//! Summary: what a router says of itself in short: `/summary.json` of an observer.
//!
//! Question: what do views of several routers need of each? All of a router's state (`/status.json`) may be megabytes.
//! The contents of a summary are limited, so that 64 of them can be fetched each second.
//!
//! Limits: [`FACES_MAX`] faces, those to other machines first and of these the busiest; [`REASONS_MAX`] reasons for
//! drops, [`LAST_DROPS_MAX`] packets dropped, texts of [`TEXT_BYTES_MAX`]. [`Summary::bounded`] enforces them on what
//! another router sent.

use serde::{Deserialize, Serialize};

/// Faces of a summary.
pub const FACES_MAX: usize = 256;
/// Reasons for drops.
pub const REASONS_MAX: usize = 64;
/// Packets that were dropped last.
pub const LAST_DROPS_MAX: usize = 50;
/// The longest text. A name of a packet may be longer: it is cut.
pub const TEXT_BYTES_MAX: usize = 512;

/// A router in short. All counters count since its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// Differs from router to router and from start to start, so that a router that is read on two ways is seen once.
    pub instance: String,
    /// Its version.
    pub version: String,
    /// The name of its machine.
    pub host: String,
    /// When it started.
    pub start_unix_ms: u64,
    /// When it said this.
    pub now_unix_ms: u64,
    /// All faces together.
    pub traffic: Traffic,
    /// The last ten seconds of all faces together, if it can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// How many faces there are.
    pub face_count: u64,
    /// Those that are shown.
    pub faces: Vec<FaceSummary>,
    /// Pending Interests.
    pub pit_entries: u64,
    /// How many there may be; 0: unknown.
    pub pit_capacity: u64,
    /// FIB entries.
    pub fib_entries: u64,
    /// Interests that the Content Store answered, and those that it could not answer.
    pub cs_hits: u64,
    /// See `cs_hits`.
    pub cs_misses: u64,
    /// The share of time in which the busiest worker had work, from 0 to 1.
    pub busiest_worker: Option<f64>,
    /// Why packets were dropped, those of normal work left out.
    pub drops: Vec<Drops>,
    /// The last packets that were dropped, the newest first.
    pub last_drops: Vec<Dropped>,
}

/// A face in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FaceSummary {
    /// Its number.
    pub id: u64,
    /// FaceUri of the other end.
    pub remote: String,
    /// FaceUri of this end.
    pub local: String,
    /// To an application of this machine.
    pub is_local: bool,
    /// Several peers hear what is sent there.
    pub has_several_peers: bool,
    /// The program at the other end, if it is one of this machine.
    pub process: Option<String>,
    /// `up`, `down` or `degraded`; empty: unknown.
    pub state: String,
    /// The round-trip time last measured.
    pub rtt_ms: Option<f64>,
    /// Its traffic.
    pub traffic: Traffic,
    /// The last ten seconds, if the router can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names say it
pub struct Traffic {
    pub in_packets: u64,
    pub in_bytes: u64,
    pub out_packets: u64,
    pub out_bytes: u64,
}

/// Per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // the names say it
pub struct Rates {
    pub in_packets_per_s: f64,
    pub in_bits_per_s: f64,
    pub out_packets_per_s: f64,
    pub out_bits_per_s: f64,
}

/// How many packets were dropped for a reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drops {
    /// `engine.no-route` and so on.
    pub reason: String,
    /// Since the start.
    pub count: u64,
}

/// A packet that was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// When.
    pub time_unix_ms: u64,
    /// Why.
    pub reason: String,
    /// `Interest`, `Data`, `Nack` or `packet`.
    pub packet: String,
    /// The face that it came from.
    pub face: Option<u64>,
    /// Its name, perhaps cut.
    pub name: Option<String>,
}

impl Traffic {
    /// Both together.
    pub fn and(self, other: Traffic) -> Traffic {
        Traffic {
            in_packets: self.in_packets.saturating_add(other.in_packets),
            in_bytes: self.in_bytes.saturating_add(other.in_bytes),
            out_packets: self.out_packets.saturating_add(other.out_packets),
            out_bytes: self.out_bytes.saturating_add(other.out_bytes),
        }
    }
}

impl Rates {
    /// Both together.
    pub fn and(self, other: Rates) -> Rates {
        Rates {
            in_packets_per_s: self.in_packets_per_s + other.in_packets_per_s,
            in_bits_per_s: self.in_bits_per_s + other.in_bits_per_s,
            out_packets_per_s: self.out_packets_per_s + other.out_packets_per_s,
            out_bits_per_s: self.out_bits_per_s + other.out_bits_per_s,
        }
    }

    /// Both directions.
    pub fn bits_per_s(&self) -> f64 {
        self.in_bits_per_s + self.out_bits_per_s
    }
}

impl Summary {
    /// The same within the limits of the module. Sums over all faces are made here, before faces are left out.
    pub fn bounded(mut self) -> Self {
        let traffic = self.faces.iter().fold(Traffic::default(), |sum, face| sum.and(face.traffic));
        if self.traffic == Traffic::default() {
            self.traffic = traffic;
        }
        let rates = self.faces.iter().filter_map(|face| face.rates).reduce(Rates::and);
        self.rates = self.rates.or(rates);
        self.face_count = self.face_count.max(self.faces.len() as u64);
        let bits = |face: &FaceSummary| face.rates.map_or(0.0, |rates| rates.bits_per_s());
        self.faces.sort_by(|a, b| a.is_local.cmp(&b.is_local).then(bits(b).total_cmp(&bits(a))).then(a.id.cmp(&b.id)));
        self.faces.truncate(FACES_MAX);
        self.drops.retain(|drops| drops.count > 0);
        self.drops.sort_by_key(|drops| std::cmp::Reverse(drops.count));
        self.drops.truncate(REASONS_MAX);
        self.last_drops.sort_by_key(|drop| std::cmp::Reverse(drop.time_unix_ms));
        self.last_drops.truncate(LAST_DROPS_MAX);
        self.cut_texts();
        self
    }

    fn cut_texts(&mut self) {
        [&mut self.instance, &mut self.version, &mut self.host].into_iter().for_each(cut);
        for face in &mut self.faces {
            [&mut face.remote, &mut face.local, &mut face.state].into_iter().chain(&mut face.process).for_each(cut);
        }
        self.drops.iter_mut().for_each(|drops| cut(&mut drops.reason));
        for drop in &mut self.last_drops {
            [&mut drop.reason, &mut drop.packet].into_iter().chain(&mut drop.name).for_each(cut);
        }
    }
}

/// Cuts a text at its limit, and says so.
pub(crate) fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_stays_small_and_keeps_what_matters() {
        let face = |id: u64| FaceSummary {
            id,
            is_local: id.is_multiple_of(2),
            remote: "x".repeat(10_000),
            traffic: Traffic { in_bytes: 1, ..Traffic::default() },
            rates: Some(Rates { in_bits_per_s: id as f64, ..Rates::default() }),
            ..FaceSummary::default()
        };
        let huge = Summary {
            faces: (0..1000).map(face).collect(),
            drops: (0..1000).map(|count| Drops { reason: "r".repeat(1000), count }).collect(),
            last_drops: (0..1000)
                .map(|time_unix_ms| Dropped { time_unix_ms, name: Some("/é".repeat(1000)), ..Dropped::default() })
                .collect(),
            ..Summary::default()
        };
        let small = huge.bounded();
        assert_eq!((small.faces.len(), small.face_count, small.traffic.in_bytes), (FACES_MAX, 1000, 1000));
        assert!(small.faces.iter().all(|face| !face.is_local) && small.faces[0].id == 999);
        assert_eq!(small.rates.unwrap().in_bits_per_s, (0..1000).sum::<u64>() as f64);
        assert_eq!((small.drops.len(), small.drops[0].count), (REASONS_MAX, 999));
        assert_eq!((small.last_drops.len(), small.last_drops[0].time_unix_ms), (LAST_DROPS_MAX, 999));
        assert!(serde_json::to_vec(&small).unwrap().len() < 600_000);
        assert_eq!(small.clone().bounded(), small, "a second time changes nothing");
    }

    #[test]
    fn a_summary_of_another_version_is_read() {
        let read: Summary = serde_json::from_str(r#"{"host": "a", "new": [1], "faces": [{"id": 7}]}"#).unwrap();
        assert_eq!((&*read.host, read.faces[0].id), ("a", 7));
    }
}
