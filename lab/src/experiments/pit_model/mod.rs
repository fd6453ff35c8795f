//! How much memory and link capacity would the fingerprint-only PIT take at 100 Gb/s?
//!
//! Source: Yuan15 §5.4.5 and §5.7.1: Tables 5.1-5.3, Figs. 5.4 and 5.5. Pure arithmetic, the same at every scale:
//! [`memory`] and [`traffic`]. `papers/yuan15.json` has every figure that the text or a table prints, for comparison
//! with ours. The run fails if one of ours, rounded as in the paper, differs.
//!
//! Limits: how full the paper's buckets can be in practice, and how often fingerprints collide in them;
//! `pit-fingerprint` measures that.

mod memory;
mod traffic;

use anyhow::{Context as _, ensure};

use self::memory::{LIFETIME_FACTOR, SUBTABLES, ZipfLike};
use self::traffic::Traffic;
use crate::experiment::{Context, Outcome};
use crate::peers;

pub(super) const FILE: &str = include_str!("experiment.toml");

const EXPONENTS: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
const DATA_BYTES: [f64; 4] = [100.0, 200.0, 300.0, 1500.0];
/// Suffix of the subject in rows with the paper's figures.
const OF_THE_PAPER: &str = ", Yuan15";

pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    context.plan_steps(1);
    context.begin_step("equations")?;
    let mut outcome = Outcome::default();
    table_5_1(&mut outcome);
    figure_5_4(&mut outcome);
    table_5_2(&mut outcome);
    figure_5_5(&mut outcome);
    table_5_3(&mut outcome);
    text(&mut outcome);
    let printed = compare(&outcome)?;
    for (key, value) in [
        ("pit_model_ideal_mb", memory::duplicates_mb(SUBTABLES, LIFETIME_FACTOR, 0.0)),
        ("pit_model_worst_mb", memory::duplicates_mb(SUBTABLES, LIFETIME_FACTOR, 1.0)),
        ("pit_model_false_positives_allowed_mb", memory::false_positives_allowed_mb()),
        ("pit_model_printed_figures_met", printed as f64),
    ] {
        outcome.headline.insert(key.to_owned(), value);
    }
    outcome.notes = vec![format!("All {printed} figures that the paper prints are reproduced, with its rounding.")];
    outcome.add_notes(FILE)?;
    Ok(outcome)
}

fn table_5_1(outcome: &mut Outcome) {
    for (link, link_bits_per_s) in [("edge, 1 Gb/s", 1e9), ("core, 10 Gb/s", 1e10), ("core, 100 Gb/s", 1e11)] {
        for (kind, data_bytes) in [("best", 1500.0), ("worst", 100.0)] {
            let subject = format!("{link}, {kind}");
            let (packets_per_s, names_mb) = (
                memory::packets_per_s(link_bits_per_s, data_bytes),
                memory::waiting_names_mb(link_bits_per_s, data_bytes),
            );
            outcome.add_value("Table 5.1", &subject, ("packets", "million per s"), packets_per_s / 1e6);
            outcome.add_value("Table 5.1", &subject, ("memory", "MB"), names_mb);
        }
    }
}

fn figure_5_4(outcome: &mut Outcome) {
    for subtables in [2, 4] {
        for lifetime_factor in 6..=10 {
            for percent in (0..=100).step_by(20) {
                let subject = format!("{percent} % duplicate, k = {lifetime_factor}");
                let value = memory::duplicates_mb(subtables, f64::from(lifetime_factor), f64::from(percent) / 100.0);
                outcome.add_value(&format!("Fig. 5.4, d = {subtables}"), &subject, ("memory", "MB"), value);
            }
        }
    }
}

fn table_5_2(outcome: &mut Outcome) {
    let ideal_mb = memory::duplicates_mb(SUBTABLES, LIFETIME_FACTOR, 0.0);
    for exponent in EXPONENTS {
        let zipf = ZipfLike::new(exponent);
        for (metric, value) in [
            (("unique", "%"), 100.0 * zipf.unique_share),
            (("memory", "MB"), zipf.memory_mb),
            (("memory over names stored", "%"), 100.0 * zipf.memory_mb / memory::named_mb()),
            (("memory over ideal", "times"), zipf.memory_mb / ideal_mb),
        ] {
            outcome.add_value("Table 5.2", &format!("S = {exponent}"), metric, value);
        }
    }
}

fn figure_5_5(outcome: &mut Outcome) {
    for data_bytes in DATA_BYTES {
        let case = format!("Fig. 5.5, Data of {data_bytes} bytes");
        for requests in [1, 2, 4, 8, 16] {
            let traffic = Traffic::new(f64::from(requests), data_bytes);
            for (subject, metric, value) in [
                ("fingerprints", ("traffic", "% of no aggregation"), 100.0 * traffic.fingerprints / traffic.internet),
                ("ideal", ("traffic", "% of no aggregation"), 100.0 * traffic.ideal / traffic.internet),
                ("fingerprints", ("traffic over ideal", "times"), traffic.fingerprints / traffic.ideal),
                ("collisions", ("Data overhead", "% of ideal"), 100.0 * traffic.collision_overhead()),
            ] {
                outcome.add_value(&case, &format!("{subject}, α = {requests}"), metric, value);
            }
        }
    }
}

fn table_5_3(outcome: &mut Outcome) {
    for data_bytes in DATA_BYTES {
        let case = format!("Table 5.3, Data of {data_bytes} bytes");
        let traffic = EXPONENTS.map(|exponent| Traffic::new(ZipfLike::new(exponent).requests_per_name, data_bytes));
        for (exponent, traffic) in EXPONENTS.iter().zip(&traffic) {
            outcome.add_value(&case, &format!("S = {exponent}"), ("overhead", "%"), 100.0 * traffic.overhead());
        }
        let most = traffic.iter().map(Traffic::collision_overhead).fold(0.0, f64::max);
        outcome.add_value(&case, "most, any S", ("Data overhead", "%"), 100.0 * most);
    }
}

/// Figures of the text that are in no table.
fn text(outcome: &mut Outcome) {
    let ideal_mb = memory::duplicates_mb(SUBTABLES, LIFETIME_FACTOR, 0.0);
    let worst_mb = memory::duplicates_mb(SUBTABLES, LIFETIME_FACTOR, 1.0);
    for (case, subject, metric, value) in [
        ("§5.4.5", "nothing duplicate", ("memory over names stored", "%"), 100.0 * ideal_mb / memory::named_mb()),
        ("§5.4.5", "everything duplicate", ("memory over names stored", "%"), 100.0 * worst_mb / memory::named_mb()),
        ("§5.4.5", "names stored", ("memory", "MB"), memory::named_mb()),
        ("§5.7.1", "false positives allowed", ("memory", "MB"), memory::false_positives_allowed_mb()),
        ("§5.4.5", "T_D at 16 bits", ("Data for nobody", "per 10000 Interests"), 1e4 * traffic::collision_data()),
        ("§5.4.5", "d = 2", ("collision rate, bound", "per 10000 names"), 1e4 * memory::collision_rate(2)),
        ("§5.4.5", "d = 4", ("collision rate, bound", "per 10000 names"), 1e4 * memory::collision_rate(4)),
        ("§5.4.5", "two parts", ("segregated entry saves", "bits"), f64::from(memory::segregated_entry_saves_bits(2))),
        ("§5.5.2", "several core routers, everything duplicate", ("memory", "MB"), 2.0 * worst_mb),
    ] {
        outcome.add_value(case, subject, metric, value);
    }
}

/// Counts the paper's figures that we reproduce.
///
/// # Errors
/// If one differs.
fn compare(outcome: &Outcome) -> anyhow::Result<usize> {
    let mut compared = 0;
    for figure in peers::for_experiment("pit-model")?.into_iter().flat_map(|peers| peers.figures) {
        for (label, printed) in &figure.values {
            let subject = label.strip_suffix(OF_THE_PAPER).with_context(|| format!("{label} has no known subject"))?;
            let same = |row: &&crate::record::Row| {
                (&row.case, &row.metric, &row.unit) == (&figure.case, &figure.metric, &figure.unit)
                    && row.subject == subject
            };
            let ours = outcome.rows.iter().find(same).and_then(|row| row.value.as_ref());
            let ours =
                ours.with_context(|| format!("our rows lack {}, {subject}: {}", figure.case, figure.metric))?.median;
            ensure!(
                rounds_to(ours, *printed),
                "{}, {subject}: {} is {ours}, not {printed}",
                figure.case,
                figure.metric
            );
            compared += 1;
        }
    }
    Ok(compared)
}

/// Whether `ours` rounds to the printed figure, with its number of digits.
fn rounds_to(ours: f64, printed: f64) -> bool {
    let text = printed.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    (ours - printed).abs() <= 0.500_000_1 * 10.0_f64.powi(-(decimals as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use std::path::PathBuf;

    #[test]
    fn every_printed_figure_comes_out() -> anyhow::Result<()> {
        let outcome = run(&Context::new(Scale::Smoke, 1, vec![1], PathBuf::new()))?;
        assert_eq!(outcome.headline["pit_model_printed_figures_met"], 61.0, "figures in papers/yuan15.json");
        assert!(
            rounds_to(36.774, 36.77) && !rounds_to(36.776, 36.77) && rounds_to(1.5625, 1.563) && rounds_to(7.0, 7.0)
        );
        let mut wrong = outcome;
        for row in wrong.rows.iter_mut().filter(|row| row.case == "Table 5.2") {
            row.value = row.value.as_ref().and_then(|value| crate::statistics::Summary::of(&[value.median * 1.02]));
        }
        assert!(compare(&wrong).is_err(), "a figure that is another is noticed");
        Ok(())
    }
}
