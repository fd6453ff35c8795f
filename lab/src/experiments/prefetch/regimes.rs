//! How do the schedules compare if fewer waits for memory occur, or more?
//!
//! Two engines in addition to the one of [`super`], over the same FIB. In the regime of Takemasa19 §4.4, [`PAPERS`],
//! Data come soon after their Interests, while the PIT entries are still in the caches: 1,024 Interests are
//! outstanding. The other, [`TINY_LFU`], has 2^20 outstanding Interests as above, and a store that admits by TinyLFU: a
//! Data costs look-ups in the sketch, and is rarely stored.

use super::forwarder::{Finding, Forwarder, Setup};
use super::turns::{self, BATCHES_PER_SLICE, Cases};
use crate::disturbance::Disturbances;
use crate::sample_table::SampleTable;
use namewire_designs::policies::catalogue::{AdmissionName, PolicyChoice};
use namewire_tables::Fib;

/// Rows with as many outstanding Interests as a batch of the thesis has.
pub(super) const PAPERS: &str = "Interest and Data, 1,024 outstanding";
/// Rows with a store that admits by TinyLFU.
pub(super) const TINY_LFU: &str = "Interest and Data, TinyLFU store";

/// Outstanding Interests of [`PAPERS`].
pub(in crate::experiments) const FEW_OUTSTANDING: u64 = 1_024;

/// An engine in one regime.
pub(super) struct Regime {
    case: &'static str,
    forwarder: Forwarder,
}

impl Regime {
    /// Every regime, ready to be measured. Names begin where those of 255 threads end.
    pub(super) fn all(setup: Setup, fib: &Fib, check: &dyn Fn() -> anyhow::Result<()>) -> anyhow::Result<Vec<Self>> {
        let tiny_lfu = PolicyChoice { admission: AdmissionName::TinyLfu, ..setup.policy };
        let few = Setup { outstanding: FEW_OUTSTANDING, first_name: 253 << 37, ..setup };
        let admitted = Setup { policy: tiny_lfu, first_name: 254 << 37, ..setup };
        [(PAPERS, few), (TINY_LFU, admitted)]
            .into_iter()
            .map(|(case, setup)| {
                let mut forwarder = Forwarder::new(setup)?;
                forwarder.fill(fib, check)?;
                Ok(Self { case, forwarder })
            })
            .collect()
    }

    /// Adds a repetition.
    pub(super) fn measure(
        &mut self,
        fib: &Fib,
        slices: usize,
        disturbances: &mut Disturbances,
        table: &mut SampleTable,
    ) -> anyhow::Result<()> {
        let cases = Cases { of_kinds: [None; 2], exchange: self.case };
        turns::measure(&cases, slices, disturbances, table, |schedule, _| {
            let taken = self.forwarder.exchange(fib, schedule, BATCHES_PER_SLICE, Finding::Name)?;
            Ok([taken.interests, taken.data])
        })
    }

    /// Checks what the engine has counted.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.forwarder.check()
    }
}
