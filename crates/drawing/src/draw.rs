//! Draws a chart with the library kuva.
//!
//! Lines with a mark and the spread of the repetitions at each point; figures of others are dashed. In a plot by
//! category the values are marks on a line for each category. On the page, colours of axes and text are those of the
//! page (CSS variables), so that a plot is light or dark with it; in files they are black on white.

use std::sync::Arc;

use kuva::backend::svg::SvgBackend;
use kuva::prelude::{Layout, LegendPosition, LinePlot, MarkerShape, ScatterPlot, Theme, TickFormat};
use kuva::render::plots::Plot as KuvaPlot;
use kuva::render::render::render_multiple;

use crate::chart::{Chart, Series, figure};

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

/// A file stands alone.
fn titled(chart: &Chart) -> Layout {
    layout(chart).with_title(chart.title.clone()).with_title_size(14)
}

fn layout(chart: &Chart) -> Layout {
    let mut layout = Layout::auto_from_plots(&curves(chart))
        .with_width(WIDTH)
        .with_x_label(chart.x.label.clone())
        .with_y_label(chart.y.label.clone())
        .with_tick_format(TickFormat::Custom(Arc::new(tick)))
        .with_legend_position(LegendPosition::OutsideRightTop);
    if chart.x.log {
        layout = layout.with_log_x();
    }
    if chart.y.log {
        layout = layout.with_log_y();
    }
    let legend_height = LEGEND_AROUND_HEIGHT + LEGEND_LINE_HEIGHT * chart.series.len() as f64;
    if !chart.is_by_category() {
        return layout.with_height(legend_height.max(HEIGHT));
    }
    let lines = chart.categories.len() as f64;
    layout
        .with_height(legend_height.max(AROUND_HEIGHT + CATEGORY_HEIGHT * lines))
        // The library names lines from below.
        .with_y_categories(chart.categories.iter().rev().cloned().collect())
        .with_y_axis_min(0.5)
        .with_y_axis_max(lines + 0.5)
}

/// A number at an axis: 0.1, 25, 1500, 20 k, 50 M, 1 G.
fn tick(value: f64) -> String {
    let (scale, unit) = match value.abs() {
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

fn curves(chart: &Chart) -> Vec<KuvaPlot> {
    chart.series.iter().enumerate().flat_map(|(place, series)| curve(chart, place, series)).collect()
}

fn curve(chart: &Chart, place: usize, series: &Series) -> Vec<KuvaPlot> {
    // After as many curves as there are colours, the marks are others.
    let (color, mark) = (COLORS[place % COLORS.len()], MARKS[(place + place / COLORS.len()) % MARKS.len()]);
    let by_category = chart.is_by_category();
    // Categories count from 1, the first at the top.
    let category = |at: f64| chart.categories.len() as f64 - at;
    let points: Vec<(f64, f64)> = series
        .points
        .iter()
        .map(|point| if by_category { (point.value, category(point.at)) } else { (point.at, point.value) })
        .collect();
    let spread: Vec<(f64, f64)> =
        series.points.iter().map(|point| (point.value - point.low, point.high - point.value)).collect();
    let is_spread = spread.iter().any(|&(below, above)| below > 0.0 || above > 0.0);
    let told = series
        .points
        .iter()
        .map(|point| format!("{}, {}: {}", series.name, chart.place_name(point), figure(point.value)));
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
    }
}
