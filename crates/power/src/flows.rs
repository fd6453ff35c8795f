//! The mean cost of an Interest and its Data for a router: cycles, bytes of memory, packets.
//!
//! Source: Takemasa19 §6.4, Eqs. 6.11-6.15. Both routers have the flow of Figs. 5.1 and 5.2; one equation serves for
//! both, because a router without admission has an insertion rate of 1 and an empty B13:
//!
//! ```text
//! always + hit · B4 + (1 - hit) · (B5 + B6 + B7 + B8 + B9 + B13 + insertion · (B10 + B12))     always = B1 + B2 + B3 +
//! B11
//! ```
//!
//! All costs are per Interest: Data comes for the share of them that misses. B11, which sends the Data to the
//! consumers, is executed for each.

use serde::{Deserialize, Serialize};

use super::Load;

/// The cost of each block: cycles or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Blocks {
    /// Receives and decodes an Interest, hashes its name.
    pub b1: f64,
    /// History of requests.
    pub b2: f64,
    /// Looks for the Data in the Content Store.
    pub b3: f64,
    /// Fetches Data that is stored.
    pub b4: f64,
    /// Inserts into the PIT.
    pub b5: f64,
    /// FIB.
    pub b6: f64,
    /// Sends the Interest.
    pub b7: f64,
    /// Receives and decodes Data, hashes its name.
    pub b8: f64,
    /// Finds and removes the PIT entry.
    pub b9: f64,
    /// Inserts the Data into the Content Store.
    pub b10: f64,
    /// Sends the Data.
    pub b11: f64,
    /// Evicts other Data.
    pub b12: f64,
    /// Admits the Data or not.
    pub b13: f64,
}

impl Blocks {
    /// Each block with its name.
    pub fn named(&self) -> [(&'static str, f64); 13] {
        [
            ("B1", self.b1),
            ("B2", self.b2),
            ("B3", self.b3),
            ("B4", self.b4),
            ("B5", self.b5),
            ("B6", self.b6),
            ("B7", self.b7),
            ("B8", self.b8),
            ("B9", self.b9),
            ("B10", self.b10),
            ("B11", self.b11),
            ("B12", self.b12),
            ("B13", self.b13),
        ]
    }

    /// The mean cost of an Interest and what follows from it.
    pub fn per_interest(&self, hit: f64, insertion: f64) -> f64 {
        let always = self.b1 + self.b2 + self.b3 + self.b11;
        let miss = self.b5 + self.b6 + self.b7 + self.b8 + self.b9 + self.b13;
        always + hit * self.b4 + (1.0 - hit) * (miss + insertion * (self.b10 + self.b12))
    }
}

/// A router and its requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Router {
    pub cycles: Blocks,
    pub memory_bytes: Blocks,
    pub hit: f64,
    /// Of the Data that comes.
    pub insertion: f64,
}

impl Router {
    /// The load of this many Interests per second.
    pub fn load(&self, interests_per_s: f64) -> Load {
        Load {
            cycles_per_s: interests_per_s * self.cycles.per_interest(self.hit, self.insertion),
            memory_bytes_per_s: interests_per_s * self.memory_bytes.per_interest(self.hit, self.insertion),
            // Eq. 6.13: each Interest comes in, and each is sent on or answered; the Data of a miss comes in and
            // leaves.
            packets_per_s: interests_per_s * (2.0 - self.hit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each block counts as often as its equation says.
    #[test]
    fn blocks_are_weighted_as_in_the_equations() {
        let one = |set: fn(&mut Blocks)| {
            let mut blocks = Blocks::default();
            set(&mut blocks);
            blocks.per_interest(0.25, 0.1)
        };
        let always: [fn(&mut Blocks); 4] = [|b| b.b1 = 1.0, |b| b.b2 = 1.0, |b| b.b3 = 1.0, |b| b.b11 = 1.0];
        let missed: [fn(&mut Blocks); 6] =
            [|b| b.b5 = 1.0, |b| b.b6 = 1.0, |b| b.b7 = 1.0, |b| b.b8 = 1.0, |b| b.b9 = 1.0, |b| b.b13 = 1.0];
        let inserted: [fn(&mut Blocks); 2] = [|b| b.b10 = 1.0, |b| b.b12 = 1.0];
        assert!(always.into_iter().all(|set| one(set) == 1.0));
        assert_eq!(one(|b| b.b4 = 1.0), 0.25);
        assert!(missed.into_iter().all(|set| one(set) == 0.75));
        assert!(inserted.into_iter().all(|set| (one(set) - 0.075).abs() < 1e-12));
    }

    #[test]
    fn a_hit_is_one_packet_forwarded_and_a_miss_two() {
        let router = Router { cycles: Blocks::default(), memory_bytes: Blocks::default(), hit: 0.25, insertion: 1.0 };
        assert_eq!(router.load(100.0).packets_per_s, 175.0);
    }
}
