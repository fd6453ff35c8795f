//! One page of all records: `namewire-lab report`.
//!
//! Question answered: what did the lab find, and how does that compare with the papers? The page needs nothing from
//! outside: its style and its plots are in it. Beside it are the plots as SVG and PNG, and the rows of each record as
//! CSV.
//!
//! * [`plots`]: which rows of which record become which plot (`lab/plots.json`).
//! * [`page`]: the page.
//!
//! The page and `lab/README.md` have the same text about each paper: both are made from [`crate::paper_results`].
//!
//! Limits: pages of more than [`PAGE_BYTES_MAX`] are refused; rows that no plot shows are in the CSV files alone.

mod page;
mod plots;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use namewire_drawing::draw;

use crate::paper_results::Records;
use crate::record::{Record, write_whole};

/// Most bytes of a page.
pub const PAGE_BYTES_MAX: usize = 5 << 20;

/// Writes `DIR/report.html`, and `DIR/report/` with plots and rows. Returns the page's path.
///
/// # Errors
/// If a record or a data file is malformed, or a file cannot be written.
pub fn write(records: &Records, dir: &Path) -> anyhow::Result<PathBuf> {
    ensure!(!records.kept.is_empty(), "there is no record");
    let plots = plots::ratios(records)?.into_iter().chain(plots::all(records)?).collect::<Vec<_>>();
    let folder = dir.join("report");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for plot in &plots {
        let file = |extension: &str| folder.join(format!("{}.{extension}", plot.spec.id));
        write_whole(&file("svg"), draw::svg(&plot.chart).as_bytes())?;
        write_whole(&file("png"), &draw::png(&plot.chart).map_err(anyhow::Error::msg)?)?;
    }
    for record in records.kept.values() {
        write_whole(&folder.join(format!("{}.csv", record.experiment)), &rows_as_csv(record)?)?;
    }
    let page = page::page(records, &plots)?;
    ensure!(page.len() <= PAGE_BYTES_MAX, "the page has {} bytes, {PAGE_BYTES_MAX} are allowed", page.len());
    let path = dir.join("report.html");
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}

fn rows_as_csv(record: &Record) -> anyhow::Result<Vec<u8>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record([
        "case",
        "subject",
        "metric",
        "unit",
        "median",
        "low",
        "high",
        "repetitions",
        "refused",
        "remark",
    ])?;
    for row in &record.rows {
        let value = |of: fn(&crate::statistics::Summary) -> f64| {
            row.value.as_ref().map_or_else(String::new, |value| of(value).to_string())
        };
        let repetitions = row.value.as_ref().map_or(0, |value| value.samples.len());
        csv.write_record([
            &row.case,
            &row.subject,
            &row.metric,
            &row.unit,
            &value(|value| value.median),
            &value(|value| value.low),
            &value(|value| value.high),
            &repetitions.to_string(),
            row.refused.as_deref().unwrap_or(""),
            row.remark.as_deref().unwrap_or(""),
        ])?;
    }
    Ok(csv.into_inner()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments;

    fn kept() -> anyhow::Result<Records> {
        Records::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("record"))
    }

    #[test]
    fn the_kept_records_become_a_page_with_everything_beside_it() -> anyhow::Result<()> {
        let (records, dir) = (kept()?, tempfile::tempdir()?);
        let page = fs::read_to_string(write(&records, dir.path())?)?;
        for outside in ["src=", "@import", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
        // Plots refer to their own clip paths.
        assert_eq!(page.matches("url(").count(), page.matches("url(#").count());
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        for experiment in records.kept.keys() {
            assert!(page.contains(&format!("<section id=\"{experiment}\"")), "{experiment}");
            let csv = fs::read_to_string(dir.path().join("report").join(format!("{experiment}.csv")))?;
            assert_eq!(csv.lines().next().map(|line| line.starts_with("case,")), Some(true));
        }
        for plot in plots::all(&records)? {
            for extension in ["svg", "png"] {
                let file = dir.path().join("report").join(format!("{}.{extension}", plot.spec.id));
                assert!(fs::metadata(&file)?.len() > 1_000, "{}", file.display());
                assert!(page.contains(&format!("report/{}.{extension}", plot.spec.id)));
            }
        }
        Ok(())
    }

    /// An experiment that somebody adds gets a plot, and every plot finds its rows.
    #[test]
    fn every_experiment_has_a_plot_and_every_plot_has_points() -> anyhow::Result<()> {
        let records = kept()?;
        let plots = plots::all(&records)?;
        for experiment in experiments::TABLE.iter() {
            assert!(plots.iter().any(|plot| plot.spec.experiment == experiment.id), "{}", experiment.id);
        }
        assert_eq!(plots.len(), plots::count_specs());
        for plot in &plots {
            let ours = plot.chart.series.iter().filter(|series| series.is_ours).count();
            assert!(ours <= plots::CURVES_MAX, "{} has {ours} curves", plot.spec.id);
        }
        // A pattern that finds one size of several makes a line of one point.
        for plot in plots.iter().filter(|plot| !plot.chart.is_by_category()) {
            assert!(plot.chart.series.iter().any(|series| series.points.len() > 1), "{}", plot.spec.id);
        }
        Ok(())
    }

    /// A run at another scale, or of few experiments, has a page, too.
    #[test]
    fn a_record_without_the_rows_of_a_paper_becomes_a_page() -> anyhow::Result<()> {
        let (mut records, dir) = (kept()?, tempfile::tempdir()?);
        records.kept.retain(|experiment, _| experiment == "packet-costs");
        if let Some(record) = records.kept.get_mut("packet-costs") {
            record.rows.truncate(1);
        }
        // As `namewire-sim` makes one.
        let own = records
            .kept
            .get("packet-costs")
            .map(|record| Record { experiment: "my-scenario".to_owned(), ..record.clone() });
        records.kept.extend(own.map(|record| (record.experiment.clone(), record)));
        let page = fs::read_to_string(write(&records, dir.path())?)?;
        assert!(page.contains("Not in this record: "), "{page}");
        assert!(page.contains("<section id=\"my-scenario\"") && page.contains("href=\"#my-scenario\""));
        assert!(write(&Records::default(), dir.path()).is_err());
        Ok(())
    }
}
