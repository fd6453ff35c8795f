//! What follows from a paper's number and ours.

use serde::Deserialize;

use super::ComparedFigure;

/// A speed or a size of ours that is better than the paper's by more than this factor is beyond it, not found again.
const BEYOND_FACTOR: f64 = 1.25;

/// A speed or a size of ours that is worse than the paper's by no more than this factor agrees: two machines of one
/// kind differ by as much. What the text says in words has no such margin: faster is faster.
const MARGIN_FACTOR: f64 = 1.1;

/// When ours agrees with the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Neither is more than this factor above the other.
    Within(f64),
    /// Ours is the paper's, but for one in the last digit that the paper prints.
    AsPrinted,
    /// Ours is in the paper's range.
    InRange,
    /// Ours is at least the paper's, but for [`MARGIN_FACTOR`]: a speed.
    AtLeast,
    /// Ours is at most the paper's, but for [`MARGIN_FACTOR`]: a time, a number of bytes.
    AtMost,
}

/// Where our number comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured or counted: a program did what the paper's did.
    #[default]
    Measured,
    /// Computed from the paper's equations and its parameters. That it comes out proves our arithmetic, no more.
    Calculated,
    /// A property of an input that was made to have it.
    Generated,
}

/// A paper's number and what it is rounded to, both in our unit.
#[derive(Clone, Copy, Debug)]
pub struct Theirs {
    pub value: f64,
    /// The upper end, if the text gives a range.
    pub most: Option<f64>,
    /// One in the last printed digit.
    pub last_digit: f64,
    /// The text has words, and `value` is what they mean.
    pub is_in_words: bool,
}

/// What became of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Measured, and agrees.
    Agrees,
    /// Measured, and better than the paper's by more than [`BEYOND_FACTOR`].
    Beyond,
    /// Measured, and agrees with words of the text.
    AgreesInWords,
    /// Computed, and agrees.
    Calculated,
    /// Made to agree.
    Generated,
    /// Does not agree.
    Differs,
    /// A sum over more processors than we have, which ours does not reach: a row for each processor is beside it.
    FewerProcessors,
    /// Our repetitions spread too far, and some of them agree.
    Unsteady,
    /// The paper's text gives no number.
    OursAlone,
    /// There is no number of ours.
    NotHere,
}

/// What became of a table or figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// None differs, and at least one that was measured agrees.
    FoundAgain,
    /// None differs; those that were measured are beyond the paper's.
    Beyond,
    /// None differs; those that were measured agree with words of the text.
    InWords,
    /// None differs, and none was measured: some were computed.
    Calculated,
    /// None differs; our input was made to agree.
    Generated,
    /// At least one does not agree.
    Differs,
    /// Our repetitions spread too far for a verdict.
    Unsteady,
    /// The paper's text gives no number: ours is shown alone.
    OursAlone,
    /// There is no number of ours.
    NotHere,
    /// A drawing or an example.
    Explains,
}

impl Agreement {
    pub fn holds(self, ours: f64, theirs: Theirs) -> bool {
        let Theirs { value, most, last_digit, is_in_words } = theirs;
        let margin = if is_in_words { 1.0 } else { MARGIN_FACTOR };
        match self {
            // Two zeros agree, too.
            Self::Within(factor) => ours <= value * factor && value <= ours * factor,
            // Binary fractions are not exact.
            Self::AsPrinted => (ours - value).abs() <= last_digit * (1.0 + 1e-6),
            Self::InRange => (value..=most.unwrap_or(value)).contains(&ours),
            Self::AtLeast => ours * margin >= value,
            Self::AtMost => ours <= value * margin,
        }
    }

    /// The factor of [`Agreement::Within`], if it is above [`MARGIN_FACTOR`].
    pub fn wide_factor(self) -> Option<f64> {
        match self {
            Self::Within(factor) if factor > MARGIN_FACTOR => Some(factor),
            _ => None,
        }
    }

    /// What it is if it holds.
    pub fn cell(self, origin: Origin, ours: f64, theirs: Theirs) -> Cell {
        let is_beyond = match self {
            Self::AtLeast => ours > theirs.value * BEYOND_FACTOR,
            Self::AtMost => ours * BEYOND_FACTOR < theirs.value,
            Self::Within(_) | Self::AsPrinted | Self::InRange => false,
        };
        match origin {
            Origin::Calculated => Cell::Calculated,
            Origin::Generated => Cell::Generated,
            Origin::Measured if theirs.is_in_words => Cell::AgreesInWords,
            Origin::Measured if is_beyond => Cell::Beyond,
            Origin::Measured => Cell::Agrees,
        }
    }
}

impl Cell {
    /// In the order in which a table's verdict names them.
    pub const ALL: [Self; 10] = [
        Self::Differs,
        Self::Agrees,
        Self::Beyond,
        Self::AgreesInWords,
        Self::Calculated,
        Self::Generated,
        Self::Unsteady,
        Self::FewerProcessors,
        Self::OursAlone,
        Self::NotHere,
    ];

    /// In the column of a table.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Beyond => "ours beyond",
            Self::AgreesInWords => "agrees with the words",
            Self::Calculated => "equal by calculation",
            Self::Generated => "generated so",
            Self::Differs => "**differs**",
            Self::Unsteady => "spreads too far",
            Self::FewerProcessors => "fewer processors here",
            Self::OursAlone => "ours alone",
            Self::NotHere => "no number here",
        }
    }
}

impl Verdict {
    /// Of a table or figure that is no drawing.
    pub fn of(figures: &[ComparedFigure]) -> Self {
        let has = |cell: Cell| figures.iter().any(|figure| figure.cell == cell);
        [
            (Cell::Differs, Self::Differs),
            (Cell::Agrees, Self::FoundAgain),
            (Cell::Beyond, Self::Beyond),
            (Cell::AgreesInWords, Self::InWords),
            (Cell::Calculated, Self::Calculated),
            (Cell::Generated, Self::Generated),
            (Cell::Unsteady, Self::Unsteady),
            (Cell::OursAlone, Self::OursAlone),
        ]
        .into_iter()
        .find_map(|(cell, verdict)| has(cell).then_some(verdict))
        .unwrap_or(Self::NotHere)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn theirs(value: f64) -> Theirs {
        Theirs { value, most: Some(2.5), last_digit: 0.1, is_in_words: false }
    }

    #[test]
    fn numbers_agree_within_a_factor_or_on_one_side_or_as_printed() {
        for (agreement, ours, paper, expected) in [
            (Agreement::Within(1.1), 1.09, 1.0, true),
            (Agreement::Within(1.1), 1.0, 1.09, true),
            (Agreement::Within(1.1), 1.11, 1.0, false),
            (Agreement::Within(1.1), 0.0, 0.0, true),
            (Agreement::Within(1.1), 0.0, 1.0, false),
            (Agreement::AtLeast, 2.0, 1.0, true),
            (Agreement::AtLeast, 0.92, 1.0, true),
            (Agreement::AtLeast, 0.9, 1.0, false),
            (Agreement::AtMost, 2.0, 1.0, false),
            (Agreement::AtMost, 1.0, 1.0, true),
            (Agreement::AtMost, 1.09, 1.0, true),
            (Agreement::AtMost, 1.11, 1.0, false),
            (Agreement::AsPrinted, 29.53, 29.6, true),
            (Agreement::AsPrinted, 29.7, 29.6, true),
            (Agreement::AsPrinted, 29.48, 29.6, false),
            (Agreement::InRange, 2.5, 2.0, true),
            (Agreement::InRange, 2.6, 2.0, false),
            (Agreement::InRange, 1.9, 2.0, false),
        ] {
            assert_eq!(agreement.holds(ours, theirs(paper)), expected, "{agreement:?} {ours} {paper}");
        }
    }

    #[test]
    fn only_what_was_measured_is_found_again() {
        let one = theirs(1.0);
        for (agreement, origin, ours, expected) in [
            (Agreement::AtLeast, Origin::Measured, 1.2, Cell::Agrees),
            (Agreement::AtLeast, Origin::Measured, 2.0, Cell::Beyond),
            (Agreement::AtMost, Origin::Measured, 0.5, Cell::Beyond),
            (Agreement::Within(9.0), Origin::Measured, 2.0, Cell::Agrees),
            (Agreement::AtLeast, Origin::Calculated, 2.0, Cell::Calculated),
            (Agreement::Within(2.0), Origin::Generated, 1.0, Cell::Generated),
        ] {
            assert_eq!(agreement.cell(origin, ours, one), expected, "{agreement:?} {origin:?} {ours}");
        }
        let words = Theirs { is_in_words: true, ..one };
        assert!(!Agreement::AtLeast.holds(0.99, words), "words have no margin");
        assert_eq!(Agreement::AtLeast.cell(Origin::Measured, 2.0, words), Cell::AgreesInWords);
    }

    #[test]
    fn one_difference_decides_and_one_agreement_without_is_enough() {
        let figure = |cell: Cell| ComparedFigure { cell, ..ComparedFigure::default() };
        for (cells, expected) in [
            (&[Cell::Agrees, Cell::Differs][..], Verdict::Differs),
            (&[Cell::Calculated, Cell::Agrees, Cell::NotHere], Verdict::FoundAgain),
            (&[Cell::Beyond, Cell::OursAlone], Verdict::Beyond),
            (&[Cell::Calculated, Cell::Unsteady], Verdict::Calculated),
            (&[Cell::Unsteady, Cell::OursAlone], Verdict::Unsteady),
            (&[Cell::NotHere], Verdict::NotHere),
            (&[], Verdict::NotHere),
        ] {
            let figures: Vec<ComparedFigure> = cells.iter().copied().map(figure).collect();
            assert_eq!(Verdict::of(&figures), expected, "{cells:?}");
        }
    }
}
