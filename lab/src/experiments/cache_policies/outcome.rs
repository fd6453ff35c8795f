//! Rows, headline and notes of `cache-policies`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::block_cycles::{BLOCKS, BlockCycles, Order};
use super::case::{Case, THOUSANDTHS, Workload};
use super::contestant::{CACHED_FILTER, Contestant, PAPERS_FILTER, PAPERS_WINDOW_PER_ENTRY};
use super::equations::{PolicyBlocks, Table51};
use super::hit_ratio::ROUND_TRIP_REQUESTS;
use super::object_store::Block;
use super::{Found, OTHER_ALPHA, PAPERS, THRESHOLD, choice, comparisons};
use crate::cache_models::eviction::{fifo_hit, lru_hit, optimum_hit};
use crate::cache_models::filter::{FilterRates, filter_rates};
use crate::cache_models::popularity_classes::PopularityClasses;
use crate::experiment::{Outcome, Samples};
use crate::papers;
use crate::record::Row;
use crate::requests::web::PAPER_ALPHA;

pub(super) const SHARE: &str = "share";
const CYCLES: &str = "TSC cycles";
pub(super) const HIT: &str = "hit ratio";
const INSERTION: &str = "insertion rate";

#[derive(Deserialize)]
struct Section54 {
    table_5_1: Table51,
    table_5_2: BTreeMap<String, PolicyBlocks>,
    filter_saves_cycles: BTreeMap<String, f64>,
}

/// The record of the experiment.
///
/// # Errors
/// If the paper's figures are malformed.
pub(super) fn outcome(found: &Found) -> anyhow::Result<Outcome> {
    let paper: Section54 = papers::figures(papers::TAKEMASA_19, "/section_5_4")?;
    let mut outcome = Outcome::default();
    hit_rows(found, &mut outcome);
    paper_point(found, &mut outcome);
    block_rows(found, &mut outcome);
    equation_rows(found, &paper, &mut outcome);
    packet_rows(found, &mut outcome);
    choice_rows(found, &mut outcome);
    comparisons::add(found, &mut outcome);
    notes(found, &paper, &mut outcome);
    Ok(outcome)
}

pub(super) fn row(case: &str, subject: &str, metric: &str, unit: &str, value: f64) -> Row {
    Samples::one(value).row(case, subject, metric, unit, None)
}

fn hit_rows(found: &Found, outcome: &mut Outcome) {
    let cases = found.cases.iter().zip(&found.tallies).zip(&found.bounds);
    for ((case, tallies), bounds) in cases {
        let name = case.name();
        for metric in [HIT, INSERTION] {
            for (contestant, tally) in found.contestants.iter().zip(tallies) {
                let value = if metric == HIT { tally.hit_ratio() } else { tally.insertion_rate() };
                outcome.rows.push(row(&name, &contestant.name, metric, SHARE, value));
            }
            outcome.rows.extend(models(case, metric));
        }
        let remark = Some(format!("the last {} of {} requests", bounds.requests.1, bounds.requests.0));
        let of = [
            ("bound: Belady", Some(bounds.belady)),
            ("bound: no limit", Some(bounds.without_limit)),
            ("bound: most popular", bounds.most_popular),
        ];
        for (subject, value) in of {
            let Some(value) = value else { continue };
            outcome.rows.push(Row { remark: remark.clone(), ..row(&name, subject, HIT, SHARE, value) });
        }
    }
    for (case, tallies) in found.papers_points.iter().zip(&found.papers_tallies) {
        let name = format!("the paper's point, {}", case.name());
        for (contestant, tally) in found.papers.iter().zip(tallies) {
            outcome.rows.push(row(&name, &contestant.name, HIT, SHARE, tally.hit_ratio()));
        }
        outcome.rows.extend(models(case, HIT).into_iter().map(|row| Row { case: name.clone(), ..row }));
    }
}

/// Takemasa19's and Che's analysis of independent requests.
fn models(case: &Case, metric: &str) -> Vec<Row> {
    let Some(alpha) = case.alpha else { return Vec::new() };
    let popularity = PopularityClasses::zipf(case.workload.objects(), alpha);
    let capacity = f64::from(case.capacity);
    let FilterRates { hit, insertion } = filter_rates(&popularity, capacity, capacity, THRESHOLD);
    let model = |subject: &str, value: f64| row(&case.name(), subject, metric, SHARE, value);
    if metric == INSERTION {
        return vec![model("model: filter/fifo", insertion)];
    }
    vec![
        model("model: fifo, random", fifo_hit(&popularity, capacity)),
        model("model: lru", lru_hit(&popularity, capacity)),
        model("model: filter/fifo", hit),
        model("model: optimum", optimum_hit(&popularity, capacity)),
    ]
}

/// The web case for which the paper gives figures.
fn paper_point(found: &Found, outcome: &mut Outcome) {
    let (case, bounds) = (&found.papers_points[0], &found.papers_bounds[0]);
    let place = |name: &str| found.papers.iter().position(|contestant| contestant.name == name);
    let tally = |name: &str| place(name).map(|place| found.papers_tallies[0][place]);
    let hit = |name: &str| tally(name).map_or(f64::NAN, |tally| tally.hit_ratio());
    let insertion = |name: &str| tally(name).map_or(f64::NAN, |tally| tally.insertion_rate());
    let popularity = PopularityClasses::zipf(case.workload.objects(), PAPER_ALPHA);
    let capacity = f64::from(case.capacity);
    let model = filter_rates(&popularity, capacity, capacity, THRESHOLD);
    let is_order = {
        let [lfu, tiny_lfu, arc, filter, random, fifo] = PAPERS.map(hit);
        lfu > tiny_lfu && tiny_lfu > arc && arc > filter && filter > random && (random - fifo).abs() < 0.01
    };
    for (key, value) in [
        ("fifo_hit", hit("fifo")),
        ("random_hit", hit("random")),
        ("lru_hit", hit("lru")),
        ("lfu_hit", hit("perfect-lfu")),
        ("arc_hit", hit("arc")),
        ("tinylfu_hit", hit("tiny-lfu/random")),
        ("filter_hit", hit("filter/fifo")),
        ("filter_insertion", insertion("filter/fifo")),
        ("filter_one_counter_hit", hit(PAPERS_FILTER)),
        ("filter_one_counter_insertion", insertion(PAPERS_FILTER)),
        ("tinylfu_insertion", insertion("tiny-lfu/random")),
        ("optimum_hit", bounds.most_popular.unwrap_or(f64::NAN)),
        ("belady_hit", bounds.belady),
        ("fifo_hit_model", fifo_hit(&popularity, capacity)),
        ("lru_hit_model", lru_hit(&popularity, capacity)),
        ("optimum_hit_model", optimum_hit(&popularity, capacity)),
        ("filter_hit_model", model.hit),
        ("filter_insertion_model", model.insertion),
        ("policies_in_papers_order", f64::from(u8::from(is_order))),
    ] {
        put(outcome, key, value);
    }
    for (contestant, tally) in found.papers.iter().zip(&found.papers_tallies[1]) {
        let short =
            contestant.name.split('/').next().unwrap_or_default().replace("perfect-lfu", "lfu").replace('-', "");
        put(outcome, &format!("{short}_hit_alpha_0_81"), tally.hit_ratio());
    }
}

pub(super) fn put(outcome: &mut Outcome, key: &str, value: f64) {
    if value.is_finite() {
        outcome.headline.insert(key.to_owned(), value);
    }
}

fn block_rows(found: &Found, outcome: &mut Outcome) {
    for order in Order::ALL {
        let case = format!("blocks, {}", order.name());
        let of_order = || found.blocks.iter().filter(move |blocks| blocks.order == order);
        for (place, (_, metric)) in BLOCKS.iter().enumerate() {
            for blocks in of_order().filter(|blocks| blocks.per_call[place].median().is_some()) {
                outcome.rows.push(blocks.per_call[place].row(&case, &blocks.contestant.name, metric, CYCLES, None));
            }
        }
        for blocks in of_order() {
            let metric = "all blocks, per request";
            outcome.rows.push(blocks.per_request.row(&case, &blocks.contestant.name, metric, CYCLES, None));
        }
    }
    let of =
        |name: &str, order| found.blocks.iter().find(|blocks| blocks.contestant.name == name && blocks.order == order);
    for (order, suffix) in [(Order::Scalar, ""), (Order::Late, "_late"), (Order::Batched, "_batched")] {
        let (Some(filter), Some(tiny_lfu)) = (of("filter/fifo", order), of("tiny-lfu/random", order)) else { continue };
        let b13 = |blocks: &BlockCycles| blocks.of(Block::Admission);
        let both = |blocks: &BlockCycles| blocks.of(Block::Request) + b13(blocks);
        put(outcome, &format!("filter_over_tinylfu_cost{suffix}"), b13(filter) / b13(tiny_lfu));
        put(outcome, &format!("filter_over_tinylfu_b2_b13{suffix}"), both(filter) / both(tiny_lfu));
        for (name, blocks) in [("filter", filter), ("tinylfu", tiny_lfu)] {
            put(outcome, &format!("{name}_b2_cycles{suffix}"), blocks.of(Block::Request));
            put(outcome, &format!("{name}_b13_cycles{suffix}"), b13(blocks));
            put(outcome, &format!("{name}_b2_b13_cycles{suffix}"), both(blocks));
        }
        if let Some(cached) = of(CACHED_FILTER, order) {
            put(outcome, &format!("filter_b2_cycles_cached{suffix}"), cached.of(Block::Request));
        }
    }
}

const BY_TABLES: &str = "Eqs. 5.1 and 5.2, blocks of Tables 5.1 and 5.2";

/// Fig. 5.7: cycles by the paper's equations, with measured blocks and with the paper's.
fn equation_rows(found: &Found, paper: &Section54, outcome: &mut Outcome) {
    let all = found.cases.iter().zip(&found.tallies).map(|(case, tallies)| (case, &found.contestants, tallies));
    let points = found.papers_points.iter().zip(&found.papers_tallies);
    let all = all.chain(points.map(|(case, tallies)| (case, &found.papers, tallies)));
    for (case, contestants, tallies) in all.filter(|(case, ..)| case.alpha == Some(PAPER_ALPHA)) {
        for (contestant, tally) in contestants.iter().zip(tallies) {
            let (hit, insertion) = (tally.hit_ratio(), tally.insertion_rate());
            let mut add = |metric: &str, blocks: PolicyBlocks| {
                let cycles = paper.table_5_1.cycles(blocks, hit, insertion);
                outcome.rows.push(row(&case.name(), &contestant.name, metric, "cycles", cycles));
            };
            if let Some(&blocks) = paper.table_5_2.get(&contestant.name) {
                add(BY_TABLES, blocks);
            }
            let is_measured = |blocks: &&BlockCycles| blocks.contestant == *contestant && blocks.order == Order::Scalar;
            if let Some(measured) = found.blocks.iter().find(is_measured) {
                let blocks = PolicyBlocks {
                    b2: measured.of(Block::Request),
                    b12: measured.of(Block::Eviction),
                    b13: measured.of(Block::Admission),
                };
                add("Eqs. 5.1 and 5.2, the policy's blocks as measured", blocks);
            }
        }
    }
}

fn packet_rows(found: &Found, outcome: &mut Outcome) {
    const CASE: &str = "Content Store, Data of 1024 bytes";
    for packets in &found.packets {
        let name = &packets.contestant.name;
        outcome.rows.push(packets.per_request.row(CASE, name, "cost per packet", CYCLES, None));
    }
    for packets in &found.packets {
        let name = &packets.contestant.name;
        outcome.rows.push(packets.over_lru.row(CASE, name, "cost per packet over LRU's", "ratio", None));
    }
    for packets in &found.packets {
        let name = &packets.contestant.name;
        outcome.rows.push(row(CASE, name, HIT, SHARE, packets.hit_ratio));
        outcome.rows.push(row(CASE, name, "memory of the policy", "bytes", packets.policy_bytes as f64));
    }
}

fn choice_rows(found: &Found, outcome: &mut Outcome) {
    const CASE: &str = "choice of the default";
    let standings = choice::standings(&found.cases, &found.tallies, found.ranked);
    let by_name = |name: &str| found.contestants.iter().position(|contestant| contestant.name == name);
    let arc = by_name("arc").map_or(f64::NAN, |place| standings[place].mean_hit);
    for (contestant, standing) in found.contestants.iter().zip(&standings) {
        outcome.rows.push(row(CASE, &contestant.name, "mean hit ratio less ARC's", SHARE, standing.mean_hit - arc));
    }
    for (contestant, standing) in found.contestants.iter().zip(&standings) {
        let row = row(CASE, &contestant.name, "worst gap to the best", SHARE, standing.worst_gap);
        outcome.rows.push(Row { remark: Some(standing.worst_case.clone()), ..row });
    }
    let default = Contestant::default_one();
    if let Some(place) = by_name(&default.name) {
        put(outcome, "default_mean_hit_minus_arc", standings[place].mean_hit - arc);
        put(outcome, "default_worst_gap_to_best_of_all", standings[place].worst_gap);
        put(outcome, "pairs_of_all", Contestant::pairs().len() as f64);
        let packets = found.packets.iter().find(|packets| packets.contestant == default);
        if let Some(packets) = packets {
            outcome.add_steady("default_cost_over_lru", &packets.over_lru);
        }
        let standing = &standings[place];
        outcome.notes.push(format!(
            "default_policy: {}. Its worst case: {}, where {} is best.",
            default.name, standing.worst_case, found.contestants[standing.best_there].name
        ));
    }
}

fn notes(found: &Found, paper: &Section54, outcome: &mut Outcome) {
    for case in [&found.cases[0], &found.papers_points[0]] {
        outcome.notes.push(format!("{}: {} requests are counted after {}.", case.name(), case.counted, case.warm_up));
    }
    let longest =
        found.cases.iter().filter(|case| matches!(case.workload, Workload::Trace(_))).map(Case::requests).max();
    outcome.notes.push(format!(
        "Traces run once, from an empty store, and every request counts; the longest has {} requests.",
        longest.unwrap_or(0)
    ));
    for case in &found.cases {
        if let Workload::Trace(trace) = &case.workload
            && trace.left_out > 0
            && case.thousandths == THOUSANDTHS[0]
        {
            outcome.notes.push(format!("{}: {} lines are no requests and were left out.", case.title, trace.left_out));
        }
    }
    outcome.notes.push(format!(
        "TinyLFU halves its counts after {PAPERS_WINDOW_PER_ENTRY} C requests in the paper's own case, and elsewhere after \
         10 C, the router's default."
    ));
    outcome.notes.push(format!(
        "Takemasa19 states an exponent of 0.8; its measured hit ratios are about 0.014 above its own analysis \
         throughout; an exponent of {OTHER_ALPHA} would explain them."
    ));
    let examples = [("arc", 1.0), ("tiny-lfu/random", 0.1)].map(|(policy, insertion)| {
        let blocks = paper.table_5_2.get(policy).copied().unwrap_or_default();
        paper.table_5_1.cycles(blocks, 0.3, insertion)
    });
    for (policy, cycles) in ["arc", "tiny-lfu/random"].into_iter().zip(examples) {
        outcome.rows.push(row("§5.1.2, hit 0.3, insertion 0.1", policy, BY_TABLES, "cycles", cycles));
    }
    let saved: Vec<String> =
        paper.filter_saves_cycles.iter().map(|(name, share)| format!("{name} {:.0} %", share * 100.0)).collect();
    outcome.notes.push(format!(
        "Takemasa19 Fig. 5.7 at 1 %: Filter saves cycles against {}. Its own equations do not give exactly that \
         from its Tables 5.1 and 5.2. Nor do they give its example of §5.1.2: with hits of 0.3 and insertions of 0.1, they \
         give {:.1} cycles for ARC and {:.1} for TinyLFU, not 1,817 and 1,705.",
        saved.join(", "),
        examples[0],
        examples[1]
    ));
    outcome.notes.push(format!(
        "Data come at once, except under admission by requests: there they come {ROUND_TRIP_REQUESTS} requests after their \
         Interest. That admission is not timed."
    ));
    outcome.notes.push(
        "blocks: cycles of a call, including waits for memory; before every packet the run reads as many other lines as a \
         router does. Content Store: a whole request, packet by packet."
            .to_owned(),
    );
}
