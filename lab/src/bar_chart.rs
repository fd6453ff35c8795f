//! A horizontal bar chart as inline SVG: one bar per subject, its range as a line.

use std::fmt::Write as _;

use crate::report::{escaped, figure};

/// One bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// How much; bars start at 0.
    pub(crate) value: f64,
    /// Lowest and highest repetition.
    pub(crate) range: Option<(f64, f64)>,
    /// Drawn in a strong colour; figures of others are light.
    pub(crate) is_ours: bool,
}

const LABEL_WIDTH: f64 = 150.0;
const BAR_WIDTH: f64 = 220.0;
const VALUE_WIDTH: f64 = 80.0;
const ROW_HEIGHT: f64 = 20.0;
const TITLE_HEIGHT: f64 = 24.0;

/// Draws `bars` from zero on one linear scale; empty text if there is none.
pub(crate) fn bar_chart(title: &str, bars: &[Bar]) -> String {
    let highest =
        bars.iter().map(|bar| bar.range.map_or(bar.value, |range| range.1).max(bar.value)).fold(0.0, f64::max);
    if bars.is_empty() {
        return String::new();
    }
    let scale = if highest > 0.0 { BAR_WIDTH / highest } else { 0.0 };
    let width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH;
    let height = TITLE_HEIGHT + ROW_HEIGHT * bars.len() as f64;
    let mut out = format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0}\">\
         <text x=\"0\" y=\"15\" font-weight=\"bold\">{0}</text>\n",
        escaped(title)
    );
    for (place, bar) in bars.iter().enumerate() {
        let top = TITLE_HEIGHT + ROW_HEIGHT * place as f64;
        let (middle, baseline) = (top + ROW_HEIGHT / 2.0, top + ROW_HEIGHT * 0.72);
        let length = bar.value * scale;
        let colour = if bar.is_ours { "#2a6fb0" } else { "#b9c9d9" };
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABEL_WIDTH}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            LABEL_WIDTH - 6.0,
            escaped(&bar.label),
            top + 3.0,
            ROW_HEIGHT - 6.0
        );
        let mut end = length;
        if let Some((low, high)) = bar.range {
            end = end.max(high * scale);
            let _ = writeln!(
                out,
                "<line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\" stroke=\"#d9822b\" stroke-width=\"2\"/>",
                LABEL_WIDTH + low * scale,
                LABEL_WIDTH + high * scale
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
            LABEL_WIDTH + end + 5.0,
            figure(bar.value)
        );
    }
    out + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_width_and_others_are_in_proportion() {
        let bar = |value: f64| Bar { label: "x".to_owned(), value, range: None, is_ours: true };
        let chart = bar_chart("title", &[bar(50.0), bar(100.0)]);
        assert!(chart.contains("width=\"110.0\"") && chart.contains("width=\"220.0\""), "{chart}");
        assert_eq!(bar_chart("title", &[]), "");
        assert!(!bar_chart("title", &[bar(0.0)]).contains("NaN"));
    }
}
