//! Figures of others to print next to ours: one data file per source under `lab/papers/`.
//!
//! They were measured on other machines or with other tools; each file states its sources. Compare ratios and shapes,
//! not absolute values. If a source gives no number, the file states this instead of a guess.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::papers;

/// Files with one source each.
const PEERS: &[&str] = &[include_str!("../papers/peers.json"), include_str!("../papers/nfd-tables.json")];
/// Papers: parameters that experiments read, and figures for one or several experiments.
const PAPERS: [&str; 5] =
    [papers::NAME_TRIE_18, papers::TAG_NET_16, papers::TAKEMASA_17, papers::TAKEMASA_19, papers::YUAN_15];

#[derive(Deserialize)]
struct Paper {
    beside_ours: Vec<Peers>,
}

/// One source and its figures for one experiment.
#[derive(Clone, Debug, Deserialize)]
pub struct Peers {
    pub title: String,
    /// Who measured what, and when.
    pub source: String,
    pub machine: String,
    pub method: String,
    /// Our experiment that measures the same.
    pub experiment: String,
    pub figures: Vec<PeerFigure>,
}

/// One quantity for several subjects; case, metric and unit are those of our rows.
#[derive(Clone, Debug, Deserialize)]
pub struct PeerFigure {
    /// As in [`crate::record::Row::case`].
    pub case: String,
    /// As in [`crate::record::Row::metric`].
    pub metric: String,
    /// As in [`crate::record::Row::unit`].
    pub unit: String,
    /// Value by subject.
    pub values: BTreeMap<String, f64>,
}

/// All sources that have figures for `experiment`.
///
/// # Errors
/// If a data file is malformed (the tests read them all).
pub fn for_experiment(experiment: &str) -> serde_json::Result<Vec<Peers>> {
    Ok(all()?.into_iter().filter(|peers| peers.experiment == experiment).collect())
}

fn all() -> serde_json::Result<Vec<Peers>> {
    let mut all = PEERS.iter().map(|text| serde_json::from_str(text)).collect::<serde_json::Result<Vec<Peers>>>()?;
    for text in PAPERS {
        all.append(&mut serde_json::from_str::<Paper>(text)?.beside_ours);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_well_formed_and_belongs_to_an_experiment() -> serde_json::Result<()> {
        for peers in all()? {
            assert!(crate::experiments::find(&peers.experiment).is_some(), "{}", peers.experiment);
            assert!(
                peers
                    .figures
                    .iter()
                    .all(|figure| figure.values.values().all(|value| value.is_finite() && *value >= 0.0))
            );
        }
        assert_eq!(for_experiment("router-sockets")?.len(), 1);
        assert_eq!(for_experiment("prefetch")?.len(), 2);
        Ok(())
    }
}
