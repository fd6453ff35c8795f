//! The TOML file of each experiment: its question, the sources on which its results depend, the sizes of its runs, and
//! notes for readers of its record.
//!
//! ```toml
//! id = "fib-pages"                      # the fields of [`Experiment`]
//! question = "What do larger pages save a FIB look-up?"
//! notes = ["Transparent pages are …"]   # for [`Outcome::add_notes`]
//! [smoke]                               # the sizes of each scale, for [`Context::size`]
//! prefixes = 20_000
//! ```
//!
//! The files are parts of the program, which reads all of them, with all sizes, before it runs an experiment.

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::experiment::{Context, Experiment, Input, Outcome, Scale};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: String,
    source: String,
    question: String,
    needs: String,
    takes: Option<Input>,
    sources: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    smoke: Option<toml::Value>,
    quick: Option<toml::Value>,
    full: Option<toml::Value>,
}

impl File {
    fn read(text: &str) -> anyhow::Result<Self> {
        let id = || text.lines().next().unwrap_or_default().to_owned();
        toml::from_str(text).with_context(|| format!("the file of the experiment with {}", id()))
    }

    fn size<Size: DeserializeOwned>(&self, scale: Scale) -> anyhow::Result<Size> {
        let size = match scale {
            Scale::Smoke => &self.smoke,
            Scale::Quick => &self.quick,
            Scale::Full => &self.full,
        };
        let of = || format!("{}: sizes of the scale {}", self.id, scale.name());
        size.clone().unwrap_or_else(|| toml::Table::new().into()).try_into().with_context(of)
    }

    /// Whether it has the sizes of all scales.
    fn check<Size: DeserializeOwned>(&self) -> anyhow::Result<()> {
        [Scale::Smoke, Scale::Quick, Scale::Full].into_iter().try_for_each(|scale| self.size::<Size>(scale).map(drop))
    }
}

/// The sizes of a run of this scale in the file of the experiment.
///
/// # Errors
/// If it lacks one, or has one that the experiment does not know.
pub(crate) fn size<Size: DeserializeOwned>(file: &str, scale: Scale) -> anyhow::Result<Size> {
    File::read(file)?.size(scale)
}

/// The sizes of an experiment whose runs have none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoSize {}

/// An experiment with a file beside it.
pub(crate) struct FiledExperiment {
    file: &'static str,
    run: fn(&Context) -> anyhow::Result<Outcome>,
    check: fn(&File) -> anyhow::Result<()>,
}

impl FiledExperiment {
    pub(crate) const fn new<Size: DeserializeOwned>(
        file: &'static str,
        run: fn(&Context) -> anyhow::Result<Outcome>,
    ) -> Self {
        Self { file, run, check: File::check::<Size> }
    }

    /// The line of the table of experiments. It lives as long as the program.
    ///
    /// # Panics
    /// If the file is wrong, or lacks a size.
    pub(crate) fn experiment(&self) -> Experiment {
        let file = File::read(self.file).and_then(|file| (self.check)(&file).map(|()| file));
        let File { id, source, question, needs, takes, sources, .. } = file.unwrap_or_else(|error| panic!("{error:#}"));
        let [id, source, question, needs] = [id, source, question, needs].map(|text| &*text.leak());
        let sources = sources.into_iter().map(|source| &*source.leak()).collect::<Vec<_>>().leak();
        Experiment { id, source, question, needs, takes, run: self.run, sources }
    }
}

impl Context {
    /// The same for this run.
    ///
    /// # Errors
    /// As for [`size`].
    pub(crate) fn size<Size: DeserializeOwned>(&self, file: &str) -> anyhow::Result<Size> {
        size(file, self.scale)
    }
}

impl Outcome {
    /// Adds the notes in the file of the experiment.
    ///
    /// # Errors
    /// If the file is wrong.
    pub(crate) fn add_notes(&mut self, file: &str) -> anyhow::Result<()> {
        self.notes.extend(File::read(file)?.notes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Size {
        names: u32,
    }

    const FILE: &str = "id = 'x'\nsource = ''\nquestion = ''\nneeds = ''\nsources = []\n";

    #[test]
    fn an_error_says_which_size_of_which_experiment() {
        for (rest, reason) in [
            ("[quick]\nnames = 'many'", "x: sizes of the scale quick"),
            ("", "missing field `names`"),
            ("[quick]\nnames = 1\nnmaes = 2", "unknown field `nmaes`"),
            ("qick = 1", "unknown field `qick`"),
        ] {
            let read = File::read(&format!("{FILE}{rest}")).and_then(|file| file.size::<Size>(Scale::Quick));
            let error = format!("{:#}", read.expect_err(rest));
            assert!(error.contains(reason), "{error}");
        }
        let read = File::read(&format!("{FILE}[full]\nnames = 7")).and_then(|file| file.size::<Size>(Scale::Full));
        assert_eq!(read.expect("a size").names, 7);
    }
}
