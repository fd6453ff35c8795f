//! Draws a chart with the library kuva.
//!
//! Lines with a mark and the spread of the repetitions at each point; figures of others are dashed. In a plot by
//! category the values are marks on a line for each category. On the page, colours of axes and text are those of the
//! page (CSS variables), so that a plot is light or dark with it; in files they are black on white.

use std::sync::Arc;

use kuva::backend::svg::SvgBackend;
use kuva::plot::annotations::ReferenceLine;
use kuva::prelude::{Layout, LegendPosition, LinePlot, MarkerShape, ScatterPlot, Theme, TickFormat};
use kuva::render::plots::Plot as KuvaPlot;
use kuva::render::render::render_multiple;

use crate::chart::{Axis, Chart, Point, Series, figure};

/// Colours that differ for those who do not tell red from green, too (Okabe and Ito), dark enough on white.
const COLORS: [&str; 8] = ["#0072b2", "#c04000", "#007a5a", "#a0528a", "#8a6d00", "#3a7fb0", "#b02020", "#555555"];
const MARKS: [MarkerShape; 4] = [MarkerShape::Circle, MarkerShape::Square, MarkerShape::Triangle, MarkerShape::Diamond];
const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 360.0;
/// Of a line in a plot by category.
const CATEGORY_HEIGHT: f64 = 18.0;
/// Of the title and the axis around them.
const AROUND_HEIGHT: f64 = 110.0;
/// Of a line in the legend, and of what is above and below them.
const LEGEND_LINE_HEIGHT: f64 = 18.0;
const LEGEND_AROUND_HEIGHT: f64 = 60.0;
/// A character of a category's name, of a name in the legend, and of the title.
const CATEGORY_CHARACTER_WIDTH: f64 = 6.4;
const LEGEND_CHARACTER_WIDTH: f64 = 6.4;
const TITLE_CHARACTER_WIDTH: f64 = 7.6;
/// Longer names of categories end in an ellipsis; the table of values has them in full.
const CATEGORY_CHARACTERS_MAX: usize = 76;
/// What is left beside the names of categories, if they are long.
const BESIDE_CATEGORIES_WIDTH: f64 = 440.0;
/// Of a mark in the legend, and of what is around it and its name.
const LEGEND_AROUND_WIDTH: f64 = 56.0;
/// Smaller values are not drawn on a logarithmic axis: the library draws none below 1e-10.
const LOG_LEAST: f64 = 1e-9;
/// A logarithmic axis of more decades has names at powers of ten alone.
const DECADES_WITH_ALL_TICKS: f64 = 1.4;
/// Pixels of a PNG for each unit.
const PNG_SCALE: f32 = 2.0;

/// A file of its own.
pub fn svg(chart: &Chart) -> String {
    SvgBackend::new().render_scene(&render_multiple(curves(chart), titled(chart)))
}

/// # Errors
/// If the library cannot.
pub fn png(chart: &Chart) -> Result<Vec<u8>, String> {
    kuva::render_to_raster(curves(chart), titled(chart), PNG_SCALE).map_err(|error| error.to_string())
}

/// For the page: series of the legend can be muted, and points say their values.
pub fn on_page(chart: &Chart) -> String {
    let theme = Theme {
        background: "var(--paper)".to_owned(),
        axis_color: "var(--ink)".to_owned(),
        grid_color: "var(--line)".to_owned(),
        tick_color: "var(--ink)".to_owned(),
        text_color: "var(--ink)".to_owned(),
        legend_bg: "var(--paper)".to_owned(),
        legend_border: "var(--line)".to_owned(),
        ..Theme::light()
    };
    let layout = layout(chart).with_theme(theme).with_interactive();
    let scene = render_multiple(curves(chart), layout);
    let label = chart.description().replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let start = format!("<svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {} {}\" ", scene.width, scene.height);
    without_controls(&SvgBackend::new().render_scene(&scene)).replacen("<svg ", &start, 1)
}

/// The library's search field and its buttons have ids, which may not be twice on a page, and no label. The script
/// works without them.
fn without_controls(svg: &str) -> String {
    let (Some(start), Some(end)) = (svg.find("<foreignObject"), svg.rfind("<script")) else { return svg.to_owned() };
    format!("{}{}", &svg[..start], &svg[end..])
}

/// A file stands alone. The title is wrapped to the width that the curves have.
fn titled(chart: &Chart) -> Layout {
    let beside = if chart.is_by_category() { BESIDE_CATEGORIES_WIDTH } else { WIDTH };
    let characters = (beside / TITLE_CHARACTER_WIDTH) as usize;
    layout(chart).with_title(chart.title.clone()).with_title_size(14).with_title_wrap(characters)
}

fn layout(chart: &Chart) -> Layout {
    let legend_height = LEGEND_AROUND_HEIGHT + LEGEND_LINE_HEIGHT * chart.series.len() as f64;
    let by_category = chart.is_by_category();
    let mut layout = Layout::auto_from_plots(&curves(chart))
        .with_width(WIDTH)
        .with_height(legend_height.max(HEIGHT))
        .with_x_label(chart.x.label.clone())
        .with_legend_position(LegendPosition::OutsideRightTop)
        .with_legend_width(legend_width(chart));
    if by_category {
        layout = with_categories(layout, chart, legend_height);
    } else {
        layout = layout.with_y_label(chart.y.label.clone());
    }
    let x_range = range(chart, &chart.x, |point| if by_category { [point.low, point.high] } else { [point.at; 2] });
    layout = layout.with_x_tick_format(ticks(&chart.x, x_range));
    if let (true, Some((least, most))) = (chart.x.log, x_range) {
        layout = layout.with_log_x().with_x_axis_min(least).with_x_axis_max(most);
    }
    let y_range = range(chart, &chart.y, |point| [point.low, point.high]);
    layout = layout.with_y_tick_format(ticks(&chart.y, y_range));
    if let (true, false, Some((least, most))) = (chart.y.log, by_category, y_range) {
        layout = layout.with_log_y().with_y_axis_min(least).with_y_axis_max(most);
    }
    layout =
        chart.x.mark.into_iter().fold(layout, |layout, at| layout.with_reference_line(ReferenceLine::vertical(at)));
    chart.y.mark.into_iter().fold(layout, |layout, at| layout.with_reference_line(ReferenceLine::horizontal(at)))
}

fn with_categories(layout: Layout, chart: &Chart, legend_height: f64) -> Layout {
    let names: Vec<String> = chart.categories.iter().map(|name| shortened(name)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64;
    let lines = names.len() as f64;
    layout
        .with_width(WIDTH.max(BESIDE_CATEGORIES_WIDTH + longest * CATEGORY_CHARACTER_WIDTH + legend_width(chart) / 2.0))
        .with_height(legend_height.max(AROUND_HEIGHT + CATEGORY_HEIGHT * lines))
        // The library names lines from below.
        .with_y_categories(names.into_iter().rev().collect())
        .with_y_axis_min(0.5)
        .with_y_axis_max(lines + 0.5)
}

/// The library's own width cuts the legend's box at the right edge.
fn legend_width(chart: &Chart) -> f64 {
    let longest = chart.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0) as f64;
    LEGEND_AROUND_WIDTH + longest * LEGEND_CHARACTER_WIDTH
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= CATEGORY_CHARACTERS_MAX {
        return name.to_owned();
    }
    name.chars().take(CATEGORY_CHARACTERS_MAX - 1).chain(['…']).collect()
}

/// From what to what a logarithmic axis goes: a multiple of 1, 2 or 5 below all values, and one above.
fn range(chart: &Chart, axis: &Axis, values: impl Fn(&Point) -> [f64; 2]) -> Option<(f64, f64)> {
    let points = chart.series.iter().flat_map(|series| &series.points).flat_map(values).chain(axis.mark);
    let drawn: Vec<f64> = points.filter(|value| *value >= LOG_LEAST).collect();
    let least = drawn.iter().copied().reduce(f64::min)?;
    let most = drawn.iter().copied().reduce(f64::max)?;
    let (least, most) = (round_multiple(least, false), round_multiple(most, true));
    Some(if least < most { (least, most) } else { (least / 2.0, most * 2.0) })
}

/// The next multiple of 1, 2 or 5 by a power of ten, up or down.
fn round_multiple(value: f64, up: bool) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let multiples = [1.0, 2.0, 5.0, 10.0].map(|multiple| multiple * power);
    // Powers of ten are not exact.
    let found = if up {
        multiples.into_iter().find(|multiple| *multiple >= value * (1.0 - 1e-9))
    } else {
        multiples.into_iter().rev().find(|multiple| *multiple <= value * (1.0 + 1e-9))
    };
    found.unwrap_or(value)
}

/// What stands at the ticks of an axis: on a logarithmic one of several decades, powers of ten alone.
fn ticks(axis: &Axis, range: Option<(f64, f64)>) -> TickFormat {
    let decades = range.map_or(0.0, |(least, most)| (most / least).log10());
    let powers_alone = axis.log && decades > DECADES_WITH_ALL_TICKS;
    TickFormat::Custom(Arc::new(move |value| {
        let is_power = (value.abs().log10() - value.abs().log10().round()).abs() < 1e-6;
        if powers_alone && !is_power { String::new() } else { tick(value) }
    }))
}

/// A number at an axis: 0.1, 25, 1500, 20 k, 50 M, 1 G, 10⁻⁷.
fn tick(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        tiny if tiny > 0.0 && tiny < 1e-4 => return small_tick(value),
        large if large >= 1e9 => (1e9, " G"),
        large if large >= 1e6 => (1e6, " M"),
        large if large >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    let scaled = value / scale;
    // As many digits as tell neighbouring ticks apart.
    let decimals = (3.0 - scaled.abs().log10().ceil()).clamp(0.0, 6.0) as usize;
    let digits = format!("{scaled:.decimals$}");
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits}{unit}")
}

/// 10⁻⁷, 2·10⁻⁷.
fn small_tick(value: f64) -> String {
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let mut exponent = value.abs().log10().floor();
    let mut multiple = (value / 10_f64.powf(exponent) * 100.0).round() / 100.0;
    if multiple.abs() >= 10.0 {
        (multiple, exponent) = (multiple / 10.0, exponent + 1.0);
    }
    let digits = format!("{:.0}", -exponent);
    let power: String =
        digits.bytes().filter_map(|digit| SUPERSCRIPTS.get(usize::from(digit.wrapping_sub(b'0')))).collect();
    if multiple == 1.0 { format!("10⁻{power}") } else { format!("{multiple}·10⁻{power}") }
}

fn curves(chart: &Chart) -> Vec<KuvaPlot> {
    chart.series.iter().enumerate().flat_map(|(place, series)| curve(chart, place, series)).collect()
}

fn curve(chart: &Chart, place: usize, series: &Series) -> Vec<KuvaPlot> {
    // After as many curves as there are colours, the marks are others.
    let (color, mark) = (COLORS[place % COLORS.len()], MARKS[(place + place / COLORS.len()) % MARKS.len()]);
    let by_category = chart.is_by_category();
    // Categories count from 1, the first at the top.
    let category = |at: f64| chart.categories.len() as f64 - at;
    let is_log = if by_category { chart.x.log } else { chart.y.log };
    let drawn: Vec<&Point> = series.points.iter().filter(|point| !is_log || point.value >= LOG_LEAST).collect();
    let points: Vec<(f64, f64)> = drawn
        .iter()
        .map(|point| if by_category { (point.value, category(point.at)) } else { (point.at, point.value) })
        .collect();
    let spread: Vec<(f64, f64)> =
        drawn.iter().map(|point| (point.value - point.low, point.high - point.value)).collect();
    let is_spread = spread.iter().any(|&(below, above)| below > 0.0 || above > 0.0);
    let told =
        drawn.iter().map(|point| format!("{}, {}: {}", series.name, chart.place_name(point), figure(point.value)));
    let mut marks = ScatterPlot::new()
        .with_data(points.clone())
        .with_color(color)
        .with_marker(mark)
        .with_size(3.5)
        .with_group_name(series.name.clone())
        .with_tooltips()
        .with_tooltip_labels(told);
    if is_spread {
        marks = if by_category { marks.with_x_err_asymmetric(spread) } else { marks.with_y_err_asymmetric(spread) };
    }
    let has_legend = chart.series.len() > 1;
    if by_category {
        return vec![if has_legend { marks.with_legend(series.name.clone()) } else { marks }.into()];
    }
    let line = LinePlot::new().with_data(points).with_color(color).with_stroke_width(1.6);
    let line = match (series.is_ours, place / COLORS.len()) {
        (false, _) => line.with_dashed(),
        (true, 0) => line,
        (true, _) => line.with_dotted(),
    };
    let line = if has_legend { line.with_legend(series.name.clone()) } else { line };
    vec![line.into(), marks.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let ticks = [0.0, 0.1, 0.25, -3.0, 25.0, 1500.0, 9_999.0, 10_000.0, 2_500_000.0, 5e7, 1e9].map(tick);
        assert_eq!(ticks, ["0", "0.1", "0.25", "-3", "25", "1500", "9999", "10 k", "2.5 M", "50 M", "1 G"]);
        assert_eq!([0.0001, 0.000_25].map(tick), ["0.0001", "0.00025"]);
        assert_eq!([1e-5, 2e-7, 1e-10, 9.999_999e-8].map(tick), ["10⁻⁵", "2·10⁻⁷", "10⁻¹⁰", "10⁻⁷"]);
    }

    #[test]
    fn a_logarithmic_axis_begins_and_ends_at_a_round_number() {
        for (value, below, above) in [(1.0, 1.0, 1.0), (3.0, 2.0, 5.0), (0.07, 0.05, 0.1), (1e-7, 1e-7, 1e-7)] {
            assert!((round_multiple(value, false) / below - 1.0).abs() < 1e-6, "{value}");
            assert!((round_multiple(value, true) / above - 1.0).abs() < 1e-6, "{value}");
        }
    }

    fn chart(values: &[f64]) -> Chart {
        let points = values.iter().zip(1_u8..).map(|(&value, at)| Point::single(at.into(), value)).collect();
        let y = Axis { log: true, mark: Some(1.0), ..Axis::linear("y") };
        let series = vec![Series { name: "a".to_owned(), is_ours: true, points }];
        Chart { title: "t".to_owned(), x: Axis::linear("x"), y, series, categories: Vec::new() }
    }

    /// Seven decades had ticks that all said 0, and values of 0 stood at the lowest of them.
    #[test]
    fn small_values_have_ticks_of_their_own_and_nothing_stands_for_zero() {
        let small = svg(&chart(&[1e-7, 1e-3, 1.0]));
        assert!(small.contains("10⁻⁷") && small.contains(">0.001<"), "{small}");
        assert!(!small.contains(">0<"), "{small}");
        let circles = |values: &[f64]| svg(&chart(values)).matches("<circle").count();
        assert_eq!(circles(&[1e-3, 1.0, 0.0, 1e-80]), circles(&[1e-3, 1.0]));
    }

    #[test]
    fn a_long_category_is_shortened() {
        assert_eq!(shortened("short"), "short");
        let long = shortened(&"é".repeat(200));
        assert_eq!((long.chars().count(), long.ends_with('…')), (CATEGORY_CHARACTERS_MAX, true));
    }
}
