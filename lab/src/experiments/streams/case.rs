//! Sizes of a run, and its cases: what do Interests ask for?

use serde::Deserialize;

/// Sizes of a run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::experiments) struct Size {
    pub(super) prefixes: u64,
    pub(super) outstanding: u64,
    pub(super) store_bytes: u64,
    /// Exchanges before a case is measured, more than are outstanding.
    pub(super) warm_up: usize,
    pub(super) repetitions: usize,
    /// Slices per case, program and repetition; batches of each kind in a slice.
    pub(super) slices: usize,
    pub(super) batches: usize,
    /// Besides those of the headlines: fetches, bursts, shares of names that never repeat, components.
    pub(super) fetches: Vec<u32>,
    pub(super) bursts: Vec<u32>,
    pub(super) never_again_percent: Vec<u8>,
    pub(super) components: Vec<u64>,
    /// Packets of a stepped batch, and batches.
    pub(super) counted_packets: usize,
    pub(super) counted_batches: usize,
}

/// The names that a case's Interests have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The next segments of files that are fetched at the same time.
    Segments {
        fetches: u32,
        /// Consecutive Interests of one fetch: 1, or a window that opens at once.
        burst: u32,
        /// Of so many Interests in a hundred the file never comes again.
        never_again_percent: u8,
    },
    /// Two segments of each file, [`TWICE_APART`] Interests apart, and never one more: a cache notes files in vain.
    Twice,
    /// Each Interest has another parent, yet the flow cache looks for many of them in the same place.
    Alike,
}

/// Interests between the two for the same file.
pub(super) const TWICE_APART: usize = 16;

/// A case of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) asked: Asked,
    /// Components of a name: as many, or drawn for each file if there are several.
    pub(super) components: (u64, u64),
}

/// The fetches of the headlines.
pub(super) const FETCHES: u32 = 1_000;
/// Components of the names of the headlines.
pub(super) const COMPONENTS: (u64, u64) = (4, 8);

/// The case of the headlines: each Interest's fetch is drawn for itself.
pub(super) const STREAMS: Case = segments(FETCHES, 1, 0);
/// Names that never repeat, nor do their parents.
pub(super) const RANDOM: Case = segments(FETCHES, 1, 100);
pub(super) const TWICE: Case = Case { asked: Asked::Twice, components: COMPONENTS };
/// The parents have 55 bytes, so that the bytes which differ are in no whole block of a parent.
pub(super) const ALIKE: Case = Case { asked: Asked::Alike, components: (6, 6) };

const fn segments(fetches: u32, burst: u32, never_again_percent: u8) -> Case {
    Case { asked: Asked::Segments { fetches, burst, never_again_percent }, components: COMPONENTS }
}

impl Case {
    /// All cases of a run but [`RANDOM`], beside which each is measured.
    pub(super) fn all(size: &Size) -> Vec<Self> {
        let mut cases = vec![STREAMS, TWICE, ALIKE];
        cases.extend(size.never_again_percent.iter().map(|&percent| segments(FETCHES, 1, percent)));
        cases.extend(size.bursts.iter().map(|&burst| segments(FETCHES, burst, 0)));
        for &fetches in &size.fetches {
            cases.push(segments(fetches, 1, 0));
            cases.extend(size.bursts.iter().map(|&burst| segments(fetches, burst, 0)));
        }
        cases.extend(size.components.iter().map(|&count| Self { components: (count, count), ..STREAMS }));
        cases
    }

    /// Its name in the record.
    pub(super) fn label(&self) -> String {
        let (least, most) = self.components;
        match self.asked {
            Asked::Twice => "parents that come twice".to_owned(),
            Asked::Alike => "parents in one place".to_owned(),
            Asked::Segments { never_again_percent: 100, .. } => "names that never repeat".to_owned(),
            Asked::Segments { fetches, never_again_percent: 1.., .. } => {
                format!("{fetches} fetches, {} % never again", self.never_again_percent())
            }
            Asked::Segments { fetches, .. } if least == most => format!("{fetches} fetches, {least} components"),
            Asked::Segments { fetches, burst, .. } => format!("{fetches} fetches, bursts of {burst}"),
        }
    }

    fn never_again_percent(&self) -> u8 {
        match self.asked {
            Asked::Segments { never_again_percent, .. } => never_again_percent,
            Asked::Twice | Asked::Alike => 0,
        }
    }
}
