//! A chart: its axes and its curves.

use serde::Deserialize;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Said above it.
    pub title: String,
    /// In a chart by category, the axis of values.
    pub x: Axis,
    /// In a chart by category, the axis of categories.
    pub y: Axis,
    /// In the order of the legend.
    pub series: Vec<Series>,
    /// Top to bottom; empty if the x axis has numbers.
    pub categories: Vec<String>,
}

/// An axis.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// Whether it is logarithmic. Then points that are not positive, or too small to be told from nothing, are left
    /// out.
    #[serde(default)]
    pub log: bool,
    /// A value that others are compared with, for example 1 in a chart of ratios: a line crosses the chart there.
    pub mark: Option<f64>,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// As in the legend.
    pub name: String,
    /// Not a figure of others, which are dashed.
    pub is_ours: bool,
    /// In the order of the x axis.
    pub points: Vec<Point>,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The number on the x axis, or the place among the categories.
    pub at: f64,
    /// The value.
    pub value: f64,
    /// The least of its repetitions.
    pub low: f64,
    /// The largest of its repetitions.
    pub high: f64,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Self {
        Axis { label: label.to_owned(), ..Axis::default() }
    }
}

impl Point {
    /// A value that was taken once.
    pub fn single(at: f64, value: f64) -> Self {
        Point { at, value, low: value, high: value }
    }
}

impl Chart {
    /// Whether its values stand beside names.
    pub fn is_by_category(&self) -> bool {
        !self.categories.is_empty()
    }

    /// What a point's place is called.
    pub fn place_name(&self, point: &Point) -> String {
        let category = self.categories.get(point.at as usize).filter(|_| self.is_by_category());
        category.cloned().unwrap_or_else(|| figure(point.at))
    }

    /// The chart in a sentence, for those who do not see it.
    pub fn description(&self) -> String {
        let values = || self.series.iter().flat_map(|series| &series.points).map(|point| point.value);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let axis = if self.is_by_category() { &self.x } else { &self.y };
        format!(
            "{}. {} curves: {}. {} from {} to {}. The table below has all values.",
            self.title,
            self.series.len(),
            self.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>().join("; "),
            axis.label,
            figure(least),
            figure(most)
        )
    }
}

/// A number with about four significant digits and a comma between thousands.
pub fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1_000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let plain = format!("{value:.decimals$}");
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut grouped = String::from(sign);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.1234, "0.123"),
            (12.345, "12.35"),
            (999.96, "1000.0"),
            (1_633_000.0, "1,633,000"),
            (-4_321.0, "-4,321"),
        ] {
            assert_eq!(figure(value), expected.replace("1000.0", "1,000.0"));
        }
    }
}
