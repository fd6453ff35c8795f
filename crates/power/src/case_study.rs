//! The thesis' case study: what do prefetching and Filter save of a router's power?
//!
//! Source: Takemasa19 §6.4.4 and §6.5 (Figs. 6.7-6.10: 11.3 % at 58 Gb/s of Data on server 2).
//!
//! The costs of the blocks are in Figs. 6.7 and 6.8, which the text lacks. The assumptions, written down before the
//! first result; those in *italics* have other readings ([`Assumptions::readings`]), which the experiment shows, too:
//!
//! 1. Cycles of the naive router: Table 5.1 with the blocks of FIFO (Table 5.2). Its path of a miss has the text's
//!    2,016 cycles. Table 3.1 is another reading; with it 58 Gb/s need 4.01 cores, and server 2 has four: the model
//!    says that this cannot be, and opens no second processor.
//! 2. Cycles of the optimized router: the same with the blocks of Filter, less what SHTL saves (§4.4): 28.85 % of an
//!    Interest that misses (B1, B3, B5, B6, B7), *which is saved where tables are read: of B3, B5 and B6, each in
//!    proportion*; and 11.98 % of a Data (B8 to B11), *which is saved of B10*: §4.4 explains it by the fetch of the
//!    Data that is replaced. Where Filter stores nothing, nothing is replaced, and nothing is saved twice.
//! 3. *B2 of Filter costs what Table 5.2 says.* (The text to Fig. 6.8 has no cycles there "because of FIFO"; that is
//!    true of Fig. 6.7.)
//! 4. Bytes: Table 3.1 for both routers, with an FIB of 89 bytes in the naive and of 281 in the optimized router. *Half
//!    the bytes of a Data are those of B10.* Table 3.1 is for Data of 128 bytes, the case study for 1,024: *each
//!    further byte crosses the memory's bus once when its Data is received, once when it is stored, and once when it is
//!    fetched for a hit.*
//! 5. Requests, power of the network cards, Data rate: as in §6.5. All costs are per Interest.
//! 6. *The chassis takes 34.20 W.* §6.3.2 gives this mean for server 2, with the confidence interval of server 1, and
//!    then settles on 68.90 W for server 2.

use serde::Deserialize;

use crate::flows::{Blocks, Router};
use crate::{Power, Server};

/// §6.3 and §6.5 as data.
#[derive(Clone, Debug, Deserialize)]
pub struct Chapter6 {
    pub servers: Vec<PapersServer>,
    pub case_study: CaseStudy,
}

/// A server of the thesis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PapersServer {
    pub model: Server,
    /// What §6.3.2 says elsewhere.
    pub chassis_other_reading_w: Option<f64>,
    pub nu: f64,
    /// What the text says beside the table.
    pub nu_other_reading: Option<f64>,
    /// Φ_amin.
    pub least_w: f64,
    /// The straight line for two and more cores.
    pub line: PapersLine,
}

/// A straight line through the power of a processor, by working cores.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PapersLine {
    pub slope: f64,
    pub intercept: f64,
    pub r_squared: f64,
}

/// §6.5.
#[derive(Clone, Debug, Deserialize)]
pub struct CaseStudy {
    pub gbps: f64,
    pub data_bytes: f64,
    pub naive: Requests,
    pub optimized: Requests,
    /// Of the cards with 40 Gb/s.
    pub joules_per_packet: f64,
    fib_bytes: FibBytes,
    shtl_saves_of_interest_miss: f64,
    shtl_saves_of_data: f64,
    /// Cycles of a miss that the text gives.
    pub miss_cycles: f64,
    /// The result.
    pub saving: f64,
}

/// What becomes of the requests of a router.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Requests {
    pub hit: f64,
    pub insertion: f64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct FibBytes {
    naive: f64,
    optimized: f64,
}

/// A cost of each kind of packet.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PerPacket {
    pub interest_miss: f64,
    pub interest_hit: f64,
    pub data: f64,
}

/// Table 3.1.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Table31 {
    pub cycles: PerPacket,
    pub memory_bytes: PerPacket,
    pub payload_bytes: f64,
}

/// Table 5.2.
#[derive(Clone, Debug, Deserialize)]
struct Table52 {
    #[serde(rename = "filter/fifo")]
    filter: PolicyBlocks,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct PolicyBlocks {
    b2: f64,
    b12: f64,
    b13: f64,
}

/// Where the cycles of an Interest that SHTL saves come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedOfInterest {
    /// B3, B5 and B6, in proportion.
    Tables,
    /// B1, B3, B5, B6 and B7, in proportion.
    AllBlocks,
    /// B6.
    Fib,
}

/// Where those of a Data come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedOfData {
    Insertion,
    /// B8 to B11, in proportion.
    AllBlocks,
}

/// How often the bytes of a Data beyond those of Table 3.1 cross the memory's bus.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossings {
    pub received: f64,
    pub stored: f64,
    pub fetched: f64,
}

impl Crossings {
    const fn all(times: f64) -> Self {
        Self { received: times, stored: times, fetched: times }
    }
}

/// What the text does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumptions {
    pub saved_of_interest: SavedOfInterest,
    pub saved_of_data: SavedOfData,
    pub history_costs: bool,
    /// The share of a Data's bytes in Table 3.1 that B10 has.
    pub insertion_share_of_bytes: f64,
    pub crossings: Crossings,
    pub chassis_is_other: bool,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            saved_of_interest: SavedOfInterest::Tables,
            saved_of_data: SavedOfData::Insertion,
            history_costs: true,
            insertion_share_of_bytes: 0.5,
            crossings: Crossings::all(1.0),
            chassis_is_other: false,
        }
    }
}

impl Assumptions {
    /// Other readings, each of one assumption alone.
    pub fn readings() -> [(&'static str, Self); 9] {
        let plain = Self::default();
        [
            ("Interests save in all blocks", Self { saved_of_interest: SavedOfInterest::AllBlocks, ..plain }),
            ("Interests save in B6", Self { saved_of_interest: SavedOfInterest::Fib, ..plain }),
            ("Data saves in all blocks", Self { saved_of_data: SavedOfData::AllBlocks, ..plain }),
            ("B2 of Filter is free", Self { history_costs: false, ..plain }),
            ("B10 has no bytes", Self { insertion_share_of_bytes: 0.0, ..plain }),
            ("B10 has all bytes of a Data", Self { insertion_share_of_bytes: 1.0, ..plain }),
            ("further bytes of a Data stay in caches", Self { crossings: Crossings::all(0.0), ..plain }),
            ("further bytes of a Data cross twice", Self { crossings: Crossings::all(2.0), ..plain }),
            ("chassis of 68.90 W", Self { chassis_is_other: true, ..plain }),
        ]
    }
}

/// The case study with all it needs.
#[derive(Clone, Debug)]
pub struct Study {
    pub chapter: Chapter6,
    pub table_3_1: Table31,
    table_5_1: Blocks,
    filter: PolicyBlocks,
}

/// Of the thesis' figures, what the case study needs.
#[derive(Deserialize)]
struct Figures {
    chapter_6: Chapter6,
    section_3_2_3: Section323,
    section_5_4: Section54,
}

#[derive(Deserialize)]
struct Section323 {
    table_3_1: Table31,
}

#[derive(Deserialize)]
struct Section54 {
    table_5_1: Blocks,
    table_5_2: Table52,
}

/// The server of the case study, in the order of the thesis.
const SERVER: usize = 1;

impl Study {
    /// From the thesis' figures as JSON.
    ///
    /// # Errors
    /// If something is missing.
    pub fn from_json(figures: &str) -> serde_json::Result<Self> {
        let Figures { chapter_6: chapter, section_3_2_3, section_5_4 } = serde_json::from_str(figures)?;
        let Section54 { table_5_1, table_5_2 } = section_5_4;
        Ok(Self { chapter, table_3_1: section_3_2_3.table_3_1, table_5_1, filter: table_5_2.filter })
    }

    /// Server 2 with the case study's network cards.
    pub fn server(&self, assumptions: &Assumptions) -> Server {
        let PapersServer { model, chassis_other_reading_w, .. } = self.chapter.servers[SERVER].clone();
        let chassis_w = chassis_other_reading_w.filter(|_| assumptions.chassis_is_other).unwrap_or(model.chassis_w);
        Server { chassis_w, joules_per_packet: self.chapter.case_study.joules_per_packet, ..model }
    }

    pub fn naive(&self, assumptions: &Assumptions) -> Router {
        let CaseStudy { naive: Requests { hit, insertion }, fib_bytes, .. } = self.chapter.case_study;
        Router { cycles: self.table_5_1, memory_bytes: self.memory_bytes(fib_bytes.naive, assumptions), hit, insertion }
    }

    pub fn optimized(&self, assumptions: &Assumptions) -> Router {
        let CaseStudy { optimized: Requests { hit, insertion }, fib_bytes, .. } = self.chapter.case_study;
        let mut cycles = self.table_5_1;
        let saved = self.chapter.case_study.shtl_saves_of_interest_miss;
        {
            let Blocks { b1, b3, b5, b6, b7, .. } = &mut cycles;
            let saved = saved * (*b1 + *b3 + *b5 + *b6 + *b7);
            match assumptions.saved_of_interest {
                SavedOfInterest::Tables => save(saved, [b3, b5, b6]),
                SavedOfInterest::AllBlocks => save(saved, [b1, b3, b5, b6, b7]),
                SavedOfInterest::Fib => save(saved, [b6]),
            }
        }
        let saved = self.chapter.case_study.shtl_saves_of_data;
        {
            let Blocks { b8, b9, b10, b11, .. } = &mut cycles;
            let saved = saved * (*b8 + *b9 + *b10 + *b11);
            match assumptions.saved_of_data {
                SavedOfData::Insertion => save(saved, [b10]),
                SavedOfData::AllBlocks => save(saved, [b8, b9, b10, b11]),
            }
        }
        cycles.b2 = if assumptions.history_costs { self.filter.b2 } else { 0.0 };
        (cycles.b12, cycles.b13) = (self.filter.b12, self.filter.b13);
        Router { cycles, memory_bytes: self.memory_bytes(fib_bytes.optimized, assumptions), hit, insertion }
    }

    /// The naive router with Table 3.1: all cycles of an Interest that misses in B5, of a hit in B4, of a Data in B8.
    pub fn naive_by_table_3_1(&self, assumptions: &Assumptions) -> Router {
        Router { cycles: by_packet(&self.table_3_1.cycles), ..self.naive(assumptions) }
    }

    /// Bytes of an Interest that hits in B4, of one that misses in B5 and B6, of a Data in B8 and B10.
    fn memory_bytes(&self, fib: f64, assumptions: &Assumptions) -> Blocks {
        let Table31 { memory_bytes, payload_bytes, .. } = &self.table_3_1;
        let Crossings { received, stored, fetched } = assumptions.crossings;
        let further = self.chapter.case_study.data_bytes - payload_bytes;
        let inserted = memory_bytes.data * assumptions.insertion_share_of_bytes;
        Blocks {
            b4: memory_bytes.interest_hit + fetched * further,
            b5: memory_bytes.interest_miss - self.chapter.case_study.fib_bytes.naive,
            b6: fib,
            b8: memory_bytes.data - inserted + received * further,
            b10: inserted + stored * further,
            ..Blocks::default()
        }
    }

    /// The Interests per second that bring this much Data.
    pub fn interests_per_s(&self, gbps: f64) -> f64 {
        gbps * 1e9 / 8.0 / self.chapter.case_study.data_bytes
    }

    /// The power of a router on the server; `None` if the server cannot do the work.
    pub fn power(&self, router: &Router, gbps: f64, assumptions: &Assumptions) -> Option<Power> {
        self.server(assumptions).power(router.load(self.interests_per_s(gbps)))
    }

    /// The share of the naive router's power that the optimized one saves.
    pub fn saving(&self, gbps: f64, assumptions: &Assumptions) -> Option<f64> {
        let naive = self.power(&self.naive(assumptions), gbps, assumptions)?.total_w();
        let optimized = self.power(&self.optimized(assumptions), gbps, assumptions)?.total_w();
        Some(1.0 - optimized / naive)
    }
}

/// The blocks of a router whose costs are known for whole packets only.
pub fn by_packet(costs: &PerPacket) -> Blocks {
    Blocks { b4: costs.interest_hit, b5: costs.interest_miss, b8: costs.data, ..Blocks::default() }
}

/// Takes `saved` from the blocks in proportion; a block is never below 0.
fn save<const N: usize>(saved: f64, blocks: [&mut f64; N]) {
    let sum: f64 = blocks.iter().map(|block| **block).sum();
    let left = (1.0 - saved / sum).max(0.0);
    for block in blocks {
        *block *= left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &str = include_str!("../../../lab/papers/takemasa19.json");

    #[test]
    fn the_naive_router_is_the_texts() -> anyhow::Result<()> {
        let study = Study::from_json(FIGURES)?;
        let naive = study.naive(&Assumptions::default());
        assert_eq!(naive.cycles.per_interest(0.0, 1.0), study.chapter.case_study.miss_cycles);
        // By hand: 769 + 0.238 · 72 + 0.762 · 1,247.
        assert!((naive.cycles.per_interest(naive.hit, naive.insertion) - 1_736.35).abs() < 0.01);
        Ok(())
    }

    #[test]
    fn nothing_is_saved_of_data_that_is_not_stored() -> anyhow::Result<()> {
        let study = Study::from_json(FIGURES)?;
        let optimized = study.optimized(&Assumptions::default());
        let naive = study.naive(&Assumptions::default());
        for (one, other) in [(optimized.cycles.b8, naive.cycles.b8), (optimized.cycles.b11, naive.cycles.b11)] {
            assert_eq!(one, other);
        }
        assert!((naive.cycles.b10 - optimized.cycles.b10 - 0.1198 * 640.0).abs() < 1e-9);
        let interest = |blocks: &Blocks| blocks.b1 + blocks.b3 + blocks.b5 + blocks.b6 + blocks.b7;
        for (_, reading) in Assumptions::readings() {
            let saved = 1.0 - interest(&study.optimized(&reading).cycles) / interest(&naive.cycles);
            assert!((saved - 0.2885).abs() < 1e-9, "{reading:?}: {saved}");
        }
        Ok(())
    }

    #[test]
    fn table_3_1_does_not_fit_on_the_server() -> anyhow::Result<()> {
        let (study, plain) = (Study::from_json(FIGURES)?, Assumptions::default());
        let router = study.naive_by_table_3_1(&plain);
        let load = router.load(study.interests_per_s(58.0));
        let cores = study.server(&plain).processors.cores_needed(load.cycles_per_s);
        assert!((cores - 4.01).abs() < 0.005, "{cores}");
        assert_eq!(study.power(&router, 58.0, &plain), None);
        assert!(study.power(&router, 57.0, &plain).is_some());
        Ok(())
    }
}
