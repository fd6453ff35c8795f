//! The contents of the record: rows by kind of packet, with the thesis' blocks; the headline; the notes.

use std::collections::{BTreeMap, HashSet};

use namewire_engine::batch::measured::Stage;
use namewire_tables::Fib;

use super::counting::COUNTED_BY_STAGE;
use super::{BLOCKS_OVER_WHOLE, DATA, DATA_BY_TOKEN, HIT, MISS, SHAPES, memory};
use crate::experiment::Outcome;
use crate::experiments::prefetch::forwarder::Forwarder;
use crate::sample_table::SampleTable;

pub(super) fn outcome(table: &SampleTable, forwarders: &[Forwarder], fib: &Fib, reading_cycles: f64) -> Outcome {
    let mut rows = table.rows();
    for row in rows.iter_mut().filter(|row| BY_BLOCK.contains(&&*row.metric)) {
        row.remark = block(&row.case, &row.subject).map(str::to_owned);
    }
    // Rows for one kind of packet stay together, in the order of the first way.
    let mut cases: Vec<String> = rows.iter().map(|row| row.case.clone()).collect();
    let mut seen = HashSet::new();
    cases.retain(|case| seen.insert(case.clone()));
    rows.sort_by_key(|row| cases.iter().position(|case| *case == row.case));
    let mut headline = BTreeMap::from([("reading_cycles".to_owned(), reading_cycles)]);
    for (key, case) in [("interest_miss", MISS), ("interest_hit", HIT), ("data", DATA)] {
        let bytes = memory::of_packet(table, case);
        headline.extend(bytes.map(|bytes| (format!("{key}_memory_bytes"), bytes)));
    }
    let notes = notes(forwarders, fib, reading_cycles);
    let mut outcome = Outcome { rows, headline, notes, ..Outcome::default() };
    for (key, case, subject, metric) in [
        ("interest_miss_cycles", MISS, "vector", "whole"),
        ("interest_hit_cycles", HIT, "vector", "whole"),
        ("data_cycles", DATA, "vector", "whole"),
        ("data_by_token_cycles", DATA_BY_TOKEN, "vector", "whole"),
        ("interest_miss_naive_cycles_papers_regime", "Interest, miss; 1,024 outstanding", "naive", "whole"),
        ("data_naive_cycles_papers_regime", "Data by name; 1,024 outstanding", "naive", "whole"),
        ("interest_miss_cycles_papers_regime", "Interest, miss; 1,024 outstanding", "vector", "whole"),
        ("data_cycles_papers_regime", "Data by name; 1,024 outstanding", "vector", "whole"),
        ("interest_miss_naive_cycles", MISS, "naive", "whole"),
        ("interest_hit_naive_cycles", HIT, "naive", "whole"),
        ("data_naive_cycles", DATA, "naive", "whole"),
        ("fib_naive_cycles", MISS, Stage::Fib.name(), "naive, by stage"),
        ("fib_cycles", MISS, Stage::Fib.name(), "by part"),
        ("hash_cycles", MISS, Stage::Hash.name(), "by part"),
        ("interest_miss_instructions", MISS, "all stages", COUNTED_BY_STAGE),
        ("interest_hit_instructions", HIT, "all stages", COUNTED_BY_STAGE),
        ("data_instructions", DATA, "all stages", COUNTED_BY_STAGE),
        ("data_by_token_instructions", DATA_BY_TOKEN, "all stages", COUNTED_BY_STAGE),
    ] {
        if let Some(samples) = table.find(case, subject, metric).filter(|samples| samples.median().is_some()) {
            outcome.add_steady(key, samples);
        }
    }
    if let Some(ratios) = table.find("Interest, hit and Data", "vector", BLOCKS_OVER_WHOLE) {
        outcome.add_steady("blocks_over_whole", ratios);
    }
    outcome
}

/// Metrics whose stages are the thesis' blocks.
const BY_BLOCK: [&str; 5] = ["naive, by stage", "by stage", "by part", "bytes fetched, naive", "bytes written, naive"];

/// The blocks of Takemasa19 Table 5.1, numbered as its Eq. 5.1 demands, that make a stage of this kind of packet. B2,
/// B12 and B13 are the policy's, inside of B3 and B10; `cache-policies` measures them alone.
fn block(case: &str, stage: &str) -> Option<&'static str> {
    let kind = case.split(';').next().unwrap_or(case);
    Some(match (kind, stage) {
        (MISS | HIT, "decode" | "hash" | "decode and hash") => "B1",
        (MISS | HIT, "verdict") => "B3, with B2",
        (HIT, "emit") => "B4 and B11",
        (MISS, "insert") => "B5",
        (MISS, "FIB") => "B6",
        (MISS, "emit") => "B7",
        (DATA | DATA_BY_TOKEN, "decode" | "hash" | "decode and hash") => "B8",
        (DATA | DATA_BY_TOKEN, "verdict") => "B9",
        (DATA | DATA_BY_TOKEN, "insert") => "B10, with B12 and B13",
        (DATA | DATA_BY_TOKEN, "emit") => "B11",
        _ => return None,
    })
}

/// What a reader must know.
fn notes(forwarders: &[Forwarder], fib: &Fib, reading_cycles: f64) -> Vec<String> {
    let bytes: Vec<String> = SHAPES
        .iter()
        .zip(forwarders)
        .map(|(shape, forwarder)| {
            let (interest, data) = forwarder.packet_bytes();
            format!("names of {} components, Interests of {interest} bytes, Data of {data}", shape.name_components)
        })
        .collect();
    vec![
        format!(
            "{} FIB entries; {} Data in a full FIFO store. {}.",
            fib.len(),
            forwarders[0].stored(),
            bytes.join("; ")
        ),
        format!(
            "A reading of the clock takes {reading_cycles:.0} cycles, which are subtracted. In `by part` and `naive, by stage` \
         it prevents the code before it from overlapping with the code after it, and fetches continue during it, so these \
         parts need not add up to those of `by stage` and to `whole`."
        ),
        "Cycles are those of the time stamp counter, which runs at the processor's base rate.".to_owned(),
    ]
}
