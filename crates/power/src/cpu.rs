//! The power of processors by their load.
//!
//! Source: Takemasa19 §6.3.3, Eqs. 6.2-6.8, after Gandhi's model of one core \[44\].
//!
//! Work goes to as few processors as possible, and there to as few cores: of the working cores, all but one run at the
//! highest frequency, and the last one has the rest, `x` of a core's work. If one core suffices, its P-state is the
//! lowest whose utilization is below θ. A core's power is
//!
//! ```text
//! Φ(n, p) · x^σ(n, p)      n: the core, counted among those that work; p: P-state; x: share of its time in C0
//! ```
//!
//! σ < 1 because leaving an idle state costs energy. Idle cores cost nothing here: that is in the chassis.
//!
//! | Takemasa19 | here |
//! | --- | --- |
//! | N_cpu, N_core, h_p, h_p0 | `processors`, cores of [`Processors::first_core`] and `further_cores`, [`PState::ghz`] |
//! | θ | `busy_share` |
//! | Φ(1, p), σ(1, p) | [`PState::watts`], [`PState::sigma`] |
//! | Φ(n, p0), σ(n, p0), n > 1 | [`Core`] |
//! | Φ of a whole processor | the sum over its cores |

use serde::{Deserialize, Serialize};

/// Equal processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processors {
    /// How many there are.
    pub processors: u32,
    /// Utilization from which a higher frequency is chosen.
    pub busy_share: f64,
    /// The first core of a processor in its P-states, slowest first.
    pub first_core: Vec<PState>,
    /// The second core and those after it, at the highest frequency.
    pub further_cores: Vec<Core>,
}

/// One core that works alone in its processor, at one frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PState {
    pub ghz: f64,
    pub sigma: f64,
    /// At full load.
    pub watts: f64,
}

/// A core beside others that are fully loaded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    pub sigma: f64,
    /// At full load, beyond what the others take.
    pub watts: f64,
}

/// Where the work goes, Eqs. 6.2-6.6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// n_cpu - 1: processors that are fully loaded.
    pub full_processors: u32,
    /// n_core - 1: fully loaded cores in the processor that is not.
    pub full_cores: usize,
    /// The frequency of that processor.
    pub ghz: f64,
    /// The share of its time for which its last core works.
    pub last_core_share: f64,
}

/// Loads that exceed the capacity by no more than this share are rounding errors.
const ROUNDING: f64 = 1e-9;

impl Processors {
    /// h_p0; 0 without a P-state.
    pub fn highest_hz(&self) -> f64 {
        self.first_core.last().map_or(0.0, |state| state.ghz * 1e9)
    }

    pub fn cores(&self) -> usize {
        1 + self.further_cores.len()
    }

    /// Cycles per second of all cores together.
    pub fn capacity_hz(&self) -> f64 {
        f64::from(self.processors) * self.cores() as f64 * self.highest_hz()
    }

    /// Cores' work: how many cores the load needs at the highest frequency.
    pub fn cores_needed(&self, cycles_per_s: f64) -> f64 {
        cycles_per_s / self.highest_hz()
    }

    /// `None` if the load is beyond the capacity, or no number.
    pub fn assign(&self, cycles_per_s: f64) -> Option<Assignment> {
        let hz = self.highest_hz();
        let load = cycles_per_s.min(self.capacity_hz());
        if !(0.0..=load * (1.0 + ROUNDING)).contains(&cycles_per_s) || hz <= 0.0 {
            return None;
        }
        // Full ones: as many as the load fills, but one core keeps some work.
        let full = |load: f64, capacity: f64| ((load / capacity).ceil() - 1.0).max(0.0);
        let full_processors = full(load, hz * self.cores() as f64);
        let of_processor = load - full_processors * hz * self.cores() as f64;
        let full_cores = full(of_processor, hz);
        let of_core = of_processor - full_cores * hz;
        let ghz = if full_cores > 0.0 { hz / 1e9 } else { self.frequency_ghz(of_core) };
        Some(Assignment {
            full_processors: full_processors as u32,
            full_cores: full_cores as usize,
            ghz,
            last_core_share: of_core / (ghz * 1e9),
        })
    }

    /// Eq. 6.6 for one core.
    fn frequency_ghz(&self, cycles_per_s: f64) -> f64 {
        let fits = |state: &&PState| cycles_per_s / (state.ghz * 1e9) < self.busy_share;
        self.first_core.iter().find(fits).or(self.first_core.last()).map_or(0.0, |state| state.ghz)
    }

    /// Eq. 6.7. `None` if the load is beyond the capacity.
    pub fn watts(&self, cycles_per_s: f64) -> Option<f64> {
        let Assignment { full_processors, full_cores, ghz, last_core_share } = self.assign(cycles_per_s)?;
        let fastest = self.first_core.last()?;
        let others = || self.further_cores.iter().map(|core| core.watts);
        let whole: f64 = fastest.watts + others().sum::<f64>();
        let last = match full_cores {
            0 => {
                let state = self.first_core.iter().find(|state| state.ghz == ghz)?;
                state.watts * last_core_share.powf(state.sigma)
            }
            full => {
                let Core { sigma, watts } = self.further_cores[full - 1];
                fastest.watts + others().take(full - 1).sum::<f64>() + watts * last_core_share.powf(sigma)
            }
        };
        Some(f64::from(full_processors) * whole + last)
    }
}

/// Eq. 6.8: the greatest power of a core at `share` of the highest frequency, between `least_w` (Φ_amin) and `most_w`.
pub fn watts_at_frequency(least_w: f64, most_w: f64, nu: f64, share: f64) -> f64 {
    let [least, most] = [least_w, most_w].map(|watts| watts.powf(1.0 / nu));
    (least + (most - least) * share).powf(nu)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processors of three cores at 1 and 2 GHz.
    fn processors() -> Processors {
        Processors {
            processors: 2,
            busy_share: 0.8,
            first_core: vec![PState { ghz: 1.0, sigma: 0.5, watts: 4.0 }, PState { ghz: 2.0, sigma: 0.5, watts: 10.0 }],
            further_cores: vec![Core { sigma: 1.0, watts: 3.0 }, Core { sigma: 0.5, watts: 2.0 }],
        }
    }

    #[test]
    fn a_slow_core_suffices_until_it_is_busy() {
        let processors = processors();
        assert_eq!(processors.watts(0.0), Some(0.0));
        assert_eq!(processors.watts(0.25e9), Some(4.0 * 0.5));
        // 0.8 of the slow frequency is busy: the fast one is chosen, where it is 0.4.
        let assigned = processors.assign(0.8e9).unwrap();
        assert_eq!((assigned.ghz, assigned.last_core_share), (2.0, 0.4));
        // Beyond 0.8 of the fast frequency there is none faster.
        assert_eq!(processors.watts(2e9), Some(10.0));
    }

    #[test]
    fn as_few_cores_and_processors_as_possible_work() {
        let processors = processors();
        assert_eq!(processors.watts(3e9), Some(10.0 + 3.0 * 0.5));
        assert_eq!(processors.watts(4e9), Some(13.0));
        assert_eq!(processors.watts(5e9), Some(13.0 + 2.0 * 0.5_f64.sqrt()));
        assert_eq!(processors.watts(6e9), Some(15.0));
        assert_eq!(processors.watts(6.25e9), Some(15.0 + 4.0 * 0.5));
        assert_eq!(processors.watts(12e9), Some(30.0));
        assert_eq!(processors.cores_needed(5e9), 2.5);
    }

    #[test]
    fn there_is_no_power_for_work_beyond_the_capacity() {
        let processors = processors();
        assert_eq!(processors.watts(12.01e9), None);
        assert_eq!(processors.watts(f64::NAN), None);
        assert_eq!(processors.watts(-1.0), None);
        assert_eq!(Processors { first_core: Vec::new(), ..processors }.watts(1.0), None);
    }

    #[test]
    fn power_lies_between_the_frequencies() {
        assert_eq!(watts_at_frequency(1.0, 9.0, 1.0, 0.5), 5.0);
        assert!((watts_at_frequency(4.0, 16.0, 2.0, 0.5) - 9.0).abs() < 1e-9);
        // Table 6.2: 6.25 W at 1.6 of 3.1 GHz.
        assert!((watts_at_frequency(3.63, 10.40, 1890.0, 1.6 / 3.1) - 6.25).abs() < 0.01);
    }
}
