//! The parameters of a computer from measurements.
//!
//! Source: Takemasa19 §6.3.3 "Validation and Parameter Fitting", §6.3.4, §6.3.5. Every fit minimizes the squared
//! difference in watts, as the thesis does, not in logarithms.
//!
//! * A core: Φ · x^σ. For a given σ the best Φ is Σ y·x^σ / Σ x^2σ; σ is searched.
//! * Frequencies: Eq. 6.8 with the greatest power known; Φ_amin and ν are searched.
//! * Memory and network: a straight line, whose slope counts.
//!
//! R² = 1 - Σ (y - m)² / Σ (y - ȳ)². (The thesis prints the sums without squares. That must be an error, because these
//! sums are 0.)

use anyhow::{Context as _, ensure};

use super::Server;
use super::cpu::{Core, PState, Processors, watts_at_frequency};
use super::measurements::{Measurements, Part};

/// A fitted curve, and how well it follows the measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitted<T> {
    pub curve: T,
    /// 1: all measurements are on the curve.
    pub r_squared: f64,
}

/// `slope · x + intercept`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub slope: f64,
    pub intercept: f64,
}

/// How power grows with frequency, Eq. 6.8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frequencies {
    pub nu: f64,
    /// Φ_amin.
    pub least_w: f64,
}

/// A computer, and how well each of its curves fits.
#[derive(Clone, Debug)]
pub struct FittedServer {
    pub server: Server,
    /// Curve by curve: what it is, and its R².
    pub r_squared: Vec<(String, f64)>,
    /// If there are at least three frequencies.
    pub frequencies: Option<Fitted<Frequencies>>,
}

/// Steps of a search; each leaves 0.62 of the interval.
const SEARCH_STEPS: usize = 80;
const SIGMA_MAX: f64 = 3.0;
/// ν is searched between these powers of ten.
const NU_LOG10: [f64; 2] = [-1.0, 5.0];
/// Fewest points of a curve with two parameters.
const POINTS_MIN: usize = 3;

/// # Errors
/// If a curve has too few points, or the points have no such curve.
pub fn server(name: &str, processors: u32, busy_share: f64, measured: &Measurements) -> anyhow::Result<FittedServer> {
    let mut r_squared = Vec::new();
    let idle = measured.watts_of(Part::Idle);
    ensure!(!idle.is_empty(), "no row is `idle`");
    let chassis_w = mean(&idle);
    let mut first_core = Vec::new();
    for ghz in measured.frequencies(1) {
        let points = above(measured.cpu(1, ghz), chassis_w);
        let Fitted { curve, r_squared: fits } = core(&points).with_context(|| format!("one core, {ghz} GHz"))?;
        r_squared.push((format!("one core, {ghz} GHz"), fits));
        first_core.push(PState { ghz, sigma: curve.sigma, watts: curve.watts });
    }
    let fastest = *first_core.last().context("no row is `cpu` with one core")?;
    let mut further_cores: Vec<Core> = Vec::new();
    while let Some(ghz) = measured.frequencies(2 + further_cores.len()).last().copied() {
        let cores = 2 + further_cores.len();
        let others = fastest.watts + further_cores.iter().map(|core| core.watts).sum::<f64>();
        let points = above(measured.cpu(cores, ghz), chassis_w + others);
        let Fitted { curve, r_squared: fits } = core(&points).with_context(|| format!("{cores} cores"))?;
        r_squared.push((format!("{cores} cores"), fits));
        further_cores.push(curve);
    }
    let mut slope = |part: Part| {
        let points = measured.rates(part);
        if points.is_empty() {
            return Ok(0.0);
        }
        let Fitted { curve, r_squared: fits } = line(&points).with_context(|| format!("{part:?}"))?;
        r_squared.push((part.name().to_owned(), fits));
        anyhow::Ok(curve.slope)
    };
    let server = Server {
        name: name.to_owned(),
        chassis_w,
        joules_per_byte: slope(Part::Memory)?,
        joules_per_packet: slope(Part::Nic)?,
        processors: Processors { processors, busy_share, first_core, further_cores },
    };
    let states = &server.processors.first_core;
    let frequencies = if states.len() < POINTS_MIN { None } else { Some(frequencies(states)?) };
    Ok(FittedServer { server, r_squared, frequencies })
}

/// Φ and σ of a core from its share of work and its watts.
///
/// # Errors
/// If there are fewer than three shares of work above 0, or none costs power.
pub fn core(points: &[(f64, f64)]) -> anyhow::Result<Fitted<Core>> {
    let working: Vec<(f64, f64)> = points.iter().copied().filter(|(share, _)| *share > 0.0).collect();
    ensure!(distinct(&working) >= POINTS_MIN, "at least {POINTS_MIN} loads are needed, not {}", distinct(&working));
    let watts = |sigma: f64| {
        let sum = |of: fn(f64, f64) -> f64| working.iter().map(|(x, y)| of(x.powf(sigma), *y)).sum::<f64>();
        sum(|power, y| y * power) / sum(|power, _| power * power)
    };
    let error = |sigma: f64| squared_error(&working, |x| watts(sigma) * x.powf(sigma));
    let sigma = least(0.0, SIGMA_MAX, error);
    let curve = Core { sigma, watts: watts(sigma) };
    ensure!(curve.watts > 0.0, "more load takes less power");
    Ok(Fitted { curve, r_squared: r_squared(&working, |x| curve.watts * x.powf(sigma)) })
}

/// ν and Φ_amin from the greatest power at each frequency, slowest first.
///
/// # Errors
/// With fewer than three frequencies.
pub fn frequencies(states: &[PState]) -> anyhow::Result<Fitted<Frequencies>> {
    ensure!(states.len() >= POINTS_MIN, "at least {POINTS_MIN} frequencies are needed");
    let (slowest, fastest) = (states[0], states[states.len() - 1]);
    let points: Vec<(f64, f64)> = states.iter().map(|state| (state.ghz / fastest.ghz, state.watts)).collect();
    let error =
        |nu: f64, least_w: f64| squared_error(&points, |share| watts_at_frequency(least_w, fastest.watts, nu, share));
    let least_w_for = |nu: f64| least(0.0, slowest.watts, |least_w| error(nu, least_w));
    let exponent = least(NU_LOG10[0], NU_LOG10[1], |exponent| {
        let nu = 10_f64.powf(exponent);
        error(nu, least_w_for(nu))
    });
    let nu = 10_f64.powf(exponent);
    let curve = Frequencies { nu, least_w: least_w_for(nu) };
    Ok(Fitted { curve, r_squared: r_squared(&points, |x| watts_at_frequency(curve.least_w, fastest.watts, nu, x)) })
}

/// A straight line.
///
/// # Errors
/// If all x are the same.
pub fn line(points: &[(f64, f64)]) -> anyhow::Result<Fitted<Line>> {
    ensure!(distinct(points) >= 2, "a line needs two different rates");
    let [mean_x, mean_y] = [mean(&points.iter().map(|p| p.0).collect::<Vec<_>>()), mean_of_y(points)];
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>()
        / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let curve = Line { slope, intercept: mean_y - slope * mean_x };
    Ok(Fitted { curve, r_squared: r_squared(points, |x| curve.slope * x + curve.intercept) })
}

/// How well a curve follows the points; 1 if it meets all.
pub fn r_squared(points: &[(f64, f64)], model: impl Fn(f64) -> f64) -> f64 {
    let mean_y = mean_of_y(points);
    let around_mean = squared_error(points, |_| mean_y);
    if around_mean == 0.0 { 1.0 } else { 1.0 - squared_error(points, model) / around_mean }
}

fn squared_error(points: &[(f64, f64)], model: impl Fn(f64) -> f64) -> f64 {
    points.iter().map(|(x, y)| (y - model(*x)).powi(2)).sum()
}

/// The place of the least value between `low` and `high`, by golden section. The value must fall, then rise.
fn least(mut low: f64, mut high: f64, value: impl Fn(f64) -> f64) -> f64 {
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    for _ in 0..SEARCH_STEPS {
        let [left, right] = [high - golden * (high - low), low + golden * (high - low)];
        if value(left) <= value(right) {
            high = right;
        } else {
            low = left;
        }
    }
    f64::midpoint(low, high)
}

/// Without what is taken anyway.
fn above(points: Vec<(f64, f64)>, base_w: f64) -> Vec<(f64, f64)> {
    points.into_iter().map(|(share, watts)| (share, watts - base_w)).collect()
}

/// How many different x there are.
fn distinct(points: &[(f64, f64)]) -> usize {
    let mut places: Vec<f64> = points.iter().map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places.len()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn mean_of_y(points: &[(f64, f64)]) -> f64 {
    mean(&points.iter().map(|point| point.1).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() <= 1e-4 * other.abs().max(1e-3)
    }

    #[test]
    fn a_curve_is_found_again() {
        let points: Vec<(f64, f64)> =
            (1..=10).map(|tenth| f64::from(tenth) / 10.0).map(|x| (x, 6.86 * x.powf(0.69))).collect();
        let Fitted { curve, r_squared } = core(&points).unwrap();
        assert!(close(curve.sigma, 0.69) && close(curve.watts, 6.86) && close(r_squared, 1.0), "{curve:?}");
        let Fitted { curve, .. } = line(&[(0.0, 2.0), (1e9, 2.61), (2e9, 3.22)]).unwrap();
        assert!(close(curve.slope, 0.61e-9) && close(curve.intercept, 2.0), "{curve:?}");
    }

    #[test]
    fn the_least_squares_are_in_watts() {
        // Two points at full load: their mean counts there. A fit of logarithms would give 6 there.
        let points = [(0.25, 4.0), (0.25, 4.0), (0.5, 5.65), (1.0, 4.0), (1.0, 12.0)];
        let Fitted { curve, r_squared } = core(&points).unwrap();
        assert!((curve.watts - 8.0).abs() < 0.1, "{curve:?}");
        assert!(r_squared > 0.0 && r_squared < 0.7, "{r_squared}");
    }

    #[test]
    fn frequencies_are_found_again() {
        let state =
            |share: f64| PState { ghz: share * 2.0, sigma: 0.5, watts: watts_at_frequency(2.0, 9.0, 3.0, share) };
        let Fitted { curve, r_squared } = frequencies(&[0.4, 0.6, 0.8, 1.0].map(state)).unwrap();
        assert!(
            (curve.nu - 3.0).abs() < 0.05 && (curve.least_w - 2.0).abs() < 0.02 && close(r_squared, 1.0),
            "{curve:?}"
        );
    }

    #[test]
    fn too_few_points_are_refused() {
        assert!(core(&[(0.5, 1.0), (0.5, 1.1), (1.0, 2.0)]).unwrap_err().to_string().contains("3 loads"));
        assert!(core(&[(0.2, -1.0), (0.5, -1.0), (1.0, -1.0)]).unwrap_err().to_string().contains("less power"));
        assert!(line(&[(1.0, 1.0), (1.0, 2.0)]).is_err());
    }
}
