//! A number as a paper's text prints it, and the line that prints it.
//!
//! Question answered: is this really the paper's number? An entry of `lab/papers/` names the line of the paper's text,
//! and the number as it stands there. Its value is read from that, so nobody types a number that the line lacks.
//! [`check`] looks whether each line has its number. The texts are not part of this repository: without them, it says
//! so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use super::{Figure, Paper};

/// A number of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct PaperFigure {
    #[serde(flatten)]
    pub printed: Printed,
    /// The other end of a range.
    pub to: Option<Printed>,
    /// Divide by this one.
    pub over: Option<Printed>,
    /// To our unit.
    #[serde(default = "one_time")]
    pub times: f64,
}

/// What a line of the paper's text says.
#[derive(Clone, Debug, Deserialize)]
pub struct Printed {
    /// Line of the text, from 1.
    pub line: usize,
    #[serde(flatten)]
    pub says: Says,
    /// The columns of a table run together in the text: digits of neighbours may touch the number.
    #[serde(default)]
    pub run_together: bool,
}

/// A number, or words that mean one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Says {
    /// As printed, for example `1, 126` or `3.69E + 6`.
    Number { prints: String },
    /// For example `increases linearly`, which means 2 if the threads are doubled. The meaning is our reading.
    Words { words: String, means: f64 },
}

const fn one_time() -> f64 {
    1.0
}

impl Says {
    fn value(&self) -> anyhow::Result<f64> {
        match self {
            Self::Number { prints } => {
                let digits: String = prints.chars().filter(|c| c.is_ascii_digit() || "+-.eE".contains(*c)).collect();
                digits.parse().with_context(|| format!("{prints:?} is not a number"))
            }
            Self::Words { means, .. } => Ok(*means),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Number { prints } => prints,
            Self::Words { words, .. } => words,
        }
    }
}

impl Printed {
    fn stands_in(&self, line: &str) -> bool {
        let text = self.says.text();
        let is_alone = |place: usize| {
            let (before, after) = (&line[..place], &line[place + text.len()..]);
            !continues(before.chars().rev()) && !continues(after.chars())
        };
        line.match_indices(text)
            .any(|(place, _)| self.run_together || matches!(self.says, Says::Words { .. }) || is_alone(place))
    }
}

/// Whether a number goes on: with a digit, or with a point or comma and a digit.
fn continues(mut chars: impl Iterator<Item = char>) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    match chars.next() {
        Some('.' | ',') => is_digit(chars.next()),
        first => is_digit(first),
    }
}

impl PaperFigure {
    /// In our unit; of a range, the lower end.
    ///
    /// # Errors
    /// If what is printed is not a number.
    pub fn value(&self) -> anyhow::Result<f64> {
        let divisor = self.over.as_ref().map_or(Ok(1.0), |over| over.says.value())?;
        Ok(self.printed.says.value()? / divisor * self.times)
    }

    /// The upper end of a range, in our unit.
    ///
    /// # Errors
    /// If what is printed is not a number.
    pub fn most(&self) -> anyhow::Result<Option<f64>> {
        self.to.as_ref().map(|to| Ok(to.says.value()? * self.times)).transpose()
    }

    /// One in the last printed digit, in our unit: the paper's number is rounded to that. With a divisor, the larger of
    /// what both digits amount to.
    ///
    /// # Errors
    /// If what the line says is no number.
    pub fn last_digit(&self) -> anyhow::Result<f64> {
        let relative = |says: &Says| -> anyhow::Result<f64> { Ok(last_digit(says.text()) / says.value()?.abs()) };
        let Some(over) = &self.over else { return Ok(last_digit(self.printed.says.text()) * self.times) };
        Ok(relative(&self.printed.says)?.max(relative(&over.says)?) * self.value()?.abs())
    }

    /// The words, if the text has no number.
    pub fn words(&self) -> Option<&str> {
        match &self.printed.says {
            Says::Words { words, .. } => Some(words),
            Says::Number { .. } => None,
        }
    }

    fn all_printed(&self) -> impl Iterator<Item = &Printed> {
        std::iter::once(&self.printed).chain(&self.to).chain(&self.over)
    }
}

/// `0.01` for `3.69`, `1` for `1,991`, `1e4` for `3.69E + 6`.
fn last_digit(prints: &str) -> f64 {
    let (digits, exponent) = prints.split_once(['E', 'e']).unwrap_or((prints, "0"));
    let exponent: String = exponent.chars().filter(|c| c.is_ascii_digit() || *c == '-').collect();
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.trim().len());
    10_f64.powi(exponent.parse().unwrap_or(0) - decimals as i32)
}

/// What [`check`] found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Numbers and words that stand in their lines.
    pub right: usize,
    /// Those that do not.
    pub wrong: Vec<String>,
    /// Papers whose text is not in the folder.
    pub absent: Vec<String>,
}

/// Looks in the papers' texts for every number of the papers that a table of the lab shows.
///
/// # Errors
/// If a text is there and cannot be read.
pub fn check(papers: &[Paper], folder: &Path) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    for paper in papers {
        let path = folder.join(&paper.text_file);
        if !path.is_file() {
            checked.absent.push(paper.name.to_owned());
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let lines: BTreeMap<usize, &str> = (1..).zip(text.lines()).collect();
        for result in &paper.results {
            for figure in &result.figures {
                check_figure(&mut checked, &result.id, figure, &lines);
            }
        }
    }
    Ok(checked)
}

fn check_figure(checked: &mut Checked, id: &str, figure: &Figure, lines: &BTreeMap<usize, &str>) {
    for printed in figure.paper.iter().flat_map(PaperFigure::all_printed) {
        if lines.get(&printed.line).is_some_and(|line| printed.stands_in(line)) {
            checked.right += 1;
        } else {
            let text = printed.says.text();
            checked.wrong.push(format!("{id}, {}: line {} does not say {text:?}", figure.what, printed.line));
        }
    }
}

/// Where the papers' texts are, if they are beside this checkout.
pub fn texts_beside(checkout: &Path) -> PathBuf {
    checkout.parent().unwrap_or(checkout).join("shared").join("papers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper_results;

    fn printed(json: &str) -> anyhow::Result<PaperFigure> {
        Ok(serde_json::from_str(json)?)
    }

    #[test]
    fn a_number_is_read_as_it_is_printed() -> anyhow::Result<()> {
        for (prints, value, last_digit) in [
            ("1, 126", 1126.0, 1.0),
            ("3.69E + 6", 3.69e6, 1e4),
            ("5.55E + 0", 5.55, 0.01),
            ("0.341", 0.341, 0.001),
            (r"1,\\!639", 1639.0, 1.0),
        ] {
            let figure = printed(&format!(r#"{{"line": 1, "prints": "{prints}"}}"#))?;
            assert_eq!(figure.value()?, value, "{prints}");
            assert!((figure.last_digit()? / last_digit - 1.0).abs() < 1e-9, "{prints}: {:?}", figure.last_digit());
        }
        let ratio = printed(r#"{"line": 1, "prints": "30.0", "over": {"line": 2, "prints": "20"}, "times": 2}"#)?;
        assert_eq!(ratio.value()?, 3.0);
        assert!((ratio.last_digit()? - 0.15).abs() < 1e-9, "{:?}", ratio.last_digit());
        assert!(printed(r#"{"line": 1, "prints": "many"}"#)?.value().is_err());
        Ok(())
    }

    #[test]
    fn a_number_stands_alone_in_its_line() -> anyhow::Result<()> {
        for (prints, line, expected) in [
            ("31", "(about 31% to 48%)", true),
            ("31", "about 131 %", false),
            ("31", "about 31.5 %", false),
            ("31", "about 0.31 %", false),
            ("31", "It is 31.", true),
            ("31", "of 31, then", true),
            ("126", "1,126 cycles", false),
            ("0.47", "0.47/4.8", true),
            ("499", "499Kpps", true),
        ] {
            let figure = printed(&format!(r#"{{"line": 1, "prints": "{prints}"}}"#))?;
            assert_eq!(figure.printed.stands_in(line), expected, "{prints} in {line}");
        }
        let touching = printed(r#"{"line": 1, "prints": "6.88", "run_together": true}"#)?;
        assert!(touching.printed.stands_in("6.8813.0925.51"));
        Ok(())
    }

    fn invented(line: usize) -> anyhow::Result<Paper> {
        let result = format!(
            r#"{{"id": "x-1", "shows": "speed", "figures": [{{"what": "fast", "unit": "per s",
            "paper": {{"line": {line}, "prints": "42", "over": {{"line": 3, "words": "half as much", "means": 2}}}}}}]}}"#
        );
        let results = vec![serde_json::from_str(&result)?];
        Ok(Paper { name: "X", title: String::new(), text_file: "x.txt".to_owned(), results })
    }

    #[test]
    fn a_wrong_line_is_found() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        std::fs::write(
            dir.path().join("x.txt"),
            "An invented paper.\nIt makes 42 things a second,\nand half as much.\n",
        )?;
        let right = check(&[invented(2)?], dir.path())?;
        assert_eq!((right.right, right.wrong.len(), right.absent.len()), (2, 0, 0));
        for line in [1, 3, 4] {
            let wrong = check(&[invented(line)?], dir.path())?;
            assert_eq!(wrong.wrong, [format!("x-1, fast: line {line} does not say \"42\"")]);
        }
        assert_eq!(check(&[invented(2)?], &dir.path().join("none"))?.absent, ["X"]);
        Ok(())
    }

    /// The papers' texts are beside a checkout of the project's own, and nowhere else.
    #[test]
    fn every_number_stands_in_its_line_where_the_texts_are() -> anyhow::Result<()> {
        let folder =
            texts_beside(Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the lab is in the repository")?);
        let checked = check(&paper_results::all()?, &folder)?;
        assert_eq!(checked.wrong, [] as [String; 0]);
        Ok(())
    }
}
