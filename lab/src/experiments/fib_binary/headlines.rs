//! The headlines: ratios of latencies, repetition by repetition, refused where they spread too far.

use namewire_designs::fib::FibPrefetch;

use super::{LookUp, Subject};
use crate::experiment::{Outcome, Samples};

const NONE: LookUp = LookUp::FibPrefetch(FibPrefetch::None);
const ALL: LookUp = LookUp::FibPrefetch(FibPrefetch::All);
const VARIANTS: [(&str, &str); 2] = [("", "CityA"), ("_sip_end", "SipE")];

/// Nanoseconds of all repetitions of one case, by variant and way to look up.
#[derive(Default)]
pub(super) struct Latencies(Vec<(String, LookUp, Samples)>);

impl Latencies {
    pub(super) fn add(&mut self, subjects: &[Subject]) {
        for subject in subjects {
            let of =
                |variant: &super::Variant| (variant.subject(subject), variant.look_up, variant.nanoseconds.clone());
            self.0.extend(subject.variants.iter().map(of));
        }
    }

    /// None, if it was not measured.
    fn of(&self, subject: &str, wanted: LookUp) -> Option<&Samples> {
        let is_it = |(name, look_up, _): &&(String, LookUp, Samples)| name == subject && *look_up == wanted;
        self.0.iter().find(is_it).map(|(_, _, samples)| samples)
    }
}

/// Look-ups per second of one way over those of another, on the same population.
pub(super) fn of_one_case(latencies: &Latencies, outcome: &mut Outcome) {
    let mut faster = |key: &str, fast: (&str, LookUp), slow: (&str, LookUp)| {
        add_ratio(key, latencies.of(slow.0, slow.1), latencies.of(fast.0, fast.1), outcome);
    };
    for (suffix, variant) in VARIANTS {
        let (binary, linear) = (&*format!("{variant} binary"), &*format!("{variant} linear"));
        faster(&format!("binary_over_linear{suffix}"), (binary, NONE), (linear, NONE));
        faster(&format!("binary_over_linear_all{suffix}"), (binary, ALL), (linear, ALL));
        for (name, way) in [
            ("first", LookUp::FibPrefetch(FibPrefetch::First)),
            ("all", ALL),
            ("batched", LookUp::FibPrefetch(FibPrefetch::Batch)),
            ("precomputed", LookUp::Precomputed),
        ] {
            faster(&format!("{name}_over_none{suffix}"), (binary, way), (binary, NONE));
        }
    }
    let precomputed = LookUp::Precomputed;
    faster("sip_end_over_city_always_precomputed", ("SipE binary", precomputed), ("CityA binary", precomputed));
    for (key, way) in [("all", ALL), ("batched", LookUp::FibPrefetch(FibPrefetch::Batch))] {
        if let Some(nanoseconds) = latencies.of("CityA binary", way) {
            let rates = nanoseconds.taken().iter().map(|ns| 1e3 / ns).collect();
            outcome.add_steady(&format!("city_always_{key}_mlookups"), &rates);
        }
    }
}

/// Fig. 3.9: the latency with 15 components over that with 7, in tables of as many names.
pub(super) fn of_more_components(seven: &Latencies, fifteen: &Latencies, outcome: &mut Outcome) {
    for (suffix, variant) in VARIANTS {
        let binary = format!("{variant} binary");
        for (name, way) in [("components_15_over_7", NONE), ("components_15_over_7_precomputed", LookUp::Precomputed)] {
            add_ratio(&format!("{name}{suffix}"), fifteen.of(&binary, way), seven.of(&binary, way), outcome);
        }
    }
}

/// Nothing is said of what was not measured.
fn add_ratio(key: &str, over: Option<&Samples>, under: Option<&Samples>, outcome: &mut Outcome) {
    let (Some(over), Some(under)) = (over, under) else { return };
    outcome.add_steady(key, &over.over(under));
}
