//! Yuan15's measurements, shown next to ours.

use serde::Deserialize;

use crate::papers;

#[derive(Deserialize)]
struct Precomputed {
    precomputed_reduction_city_always_percent: f64,
    precomputed_reduction_sip_end_percent: f64,
}

/// For 512 million and a billion names.
#[derive(Deserialize)]
struct Reductions {
    city_always_first_percent: [f64; 2],
    city_always_all_percent: [f64; 2],
    sip_end_first_percent: [f64; 2],
    sip_end_all_percent: [f64; 2],
}

#[derive(Deserialize)]
struct Expected {
    expected_15_over_7_city_always_percent: f64,
    expected_15_over_7_sip_end_percent: f64,
}

#[derive(Deserialize)]
struct Memory {
    names_millions: [f64; 2],
    memory_gb: [f64; 2],
}

/// The paper's figures as notes.
pub(super) fn notes() -> anyhow::Result<Vec<String>> {
    let prefetch: Reductions = papers::figures(papers::YUAN_15, "/figure_3_7")?;
    let hashes: Precomputed = papers::figures(papers::YUAN_15, "/figure_3_6")?;
    let expected: Expected = papers::figures(papers::YUAN_15, "/figure_3_9")?;
    let memory: Memory = papers::figures(papers::YUAN_15, "/section_3_4_1")?;
    let bytes = memory.memory_gb[0] * 1e3 / memory.names_millions[0];
    Ok(vec![
        format!(
            "Yuan15 Fig. 3.7, latency saved with 512 million and 1,000 million names: CityA first {:?} %, all {:?} %; SipE \
             first {:?} %, all {:?} %.",
            prefetch.city_always_first_percent,
            prefetch.city_always_all_percent,
            prefetch.sip_end_first_percent,
            prefetch.sip_end_all_percent
        ),
        format!(
            "Yuan15 Fig. 3.6, precomputed hashes save {} % (CityA) and {} % (SipE); SipE is then the faster one.",
            hashes.precomputed_reduction_city_always_percent, hashes.precomputed_reduction_sip_end_percent
        ),
        format!(
            "Yuan15 Fig. 3.9, by the number of look-ups 15 components should take {} % (CityA) and {} % (SipE) longer than 7; \
             hashing made it more, unless computed beforehand.",
            expected.expected_15_over_7_city_always_percent, expected.expected_15_over_7_sip_end_percent
        ),
        "Yuan15 Fig. 3.10: binary search is faster than linear search; the gain is larger with CityA and smaller if all is prefetched."
            .to_owned(),
        format!(
            "Yuan15 needs {bytes:.0} bytes per name and stores strings for a third of them; here all names have strings."
        ),
        "Binary over linear, all over none and so on are ratios of look-ups per second on the first case; 15 over 7 components \
         is a ratio of latencies in tables of as many names.".to_owned(),
    ])
}
