//! Measures the power of the processors by the kernel's powercap interface (RAPL), at chosen loads.
//!
//! Source: Linux `Documentation/power/powercap`. A package is a folder `intel-rapl:N` (on AMD too) with a counter in
//! microjoules, `energy_uj`, which starts again at 0 after `max_energy_range_uj`; reading it needs root on most
//! systems. A load is arithmetic in registers for a share of each period and sleep for the rest, as in Takemasa19
//! §6.3.3.
//!
//! Limits: the sum of all packages, without memory, network and fans. Frequencies are the system's choice; a row has
//! the highest one. A machine without RAPL (most virtual ones) gets an error; nothing is estimated.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::{interrupt, process};
use namewire_power::measurements::{Measurements, Part, Row};

/// Where the kernel has it.
pub const POWERCAP: &str = "/sys/class/powercap";
/// Where the kernel has the highest frequency of the first processor, in kHz.
pub const HIGHEST_KHZ: &str = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";

/// A load works and sleeps once in this time.
const PERIOD: Duration = Duration::from_millis(20);
/// The counter of a package is read at least this often: it begins anew after a minute at the earliest.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// Loads of a core, in tenths.
const TENTHS: [u32; 6] = [1, 2, 4, 6, 8, 10];

/// The packages of this machine.
#[derive(Clone, Debug)]
pub struct Rapl {
    packages: Vec<Package>,
}

#[derive(Clone, Debug)]
struct Package {
    energy_uj: PathBuf,
    range_uj: u64,
}

impl Rapl {
    /// # Errors
    /// If the machine has no such counter, or does not let us read it.
    pub fn open(powercap: &Path) -> anyhow::Result<Self> {
        let entries = fs::read_dir(powercap).with_context(|| format!("{}: no powercap here", powercap.display()))?;
        let mut packages = Vec::new();
        for entry in entries {
            let folder = entry?.path();
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_package = name.starts_with("intel-rapl:") && name.matches(':').count() == 1;
            if is_package && read_text(&folder.join("name"))?.starts_with("package") {
                let range_uj = read_number(&folder.join("max_energy_range_uj"))?;
                packages.push(Package { energy_uj: folder.join("energy_uj"), range_uj });
            }
        }
        ensure!(!packages.is_empty(), "{} has no RAPL package (a virtual machine?)", powercap.display());
        let rapl = Self { packages };
        rapl.read_uj()?;
        Ok(rapl)
    }

    fn read_uj(&self) -> anyhow::Result<Vec<u64>> {
        self.packages.iter().map(|package| read_number(&package.energy_uj)).collect()
    }

    /// Mean watts of all packages while `for_s` passes.
    ///
    /// # Errors
    /// If a counter cannot be read, or on an interrupt.
    pub fn watts(&self, for_s: Duration) -> anyhow::Result<f64> {
        let started = Instant::now();
        let mut before_uj = self.read_uj()?;
        let mut sum_uj = 0;
        loop {
            let left = for_s.saturating_sub(started.elapsed());
            std::thread::sleep(left.min(READ_INTERVAL));
            interrupt::check()?;
            let now_uj = self.read_uj()?;
            for ((package, before), now) in self.packages.iter().zip(&before_uj).zip(&now_uj) {
                sum_uj += used_uj(*before, *now, package.range_uj);
            }
            before_uj = now_uj;
            if left <= READ_INTERVAL {
                return Ok(sum_uj as f64 / 1e6 / started.elapsed().as_secs_f64());
            }
        }
    }

    /// The processor idle, then with one to `cores` working cores, `for_s` for each load.
    ///
    /// # Errors
    /// If a counter cannot be read, or on an interrupt.
    pub fn measure(&self, cores: usize, ghz: f64, for_s: Duration) -> anyhow::Result<Measurements> {
        let row = |part, watts| Row { part, cores: None, ghz: None, load: None, per_s: None, watts };
        let mut rows = vec![row(Part::Idle, self.watts(for_s)?)];
        for working in 1..=cores {
            for tenths in TENTHS {
                let share = f64::from(tenths) / 10.0;
                let watts = under_load(working, share, || self.watts(for_s))?;
                rows.push(Row { cores: Some(working), ghz: Some(ghz), load: Some(share), ..row(Part::Cpu, watts) });
            }
        }
        Ok(Measurements(rows))
    }
}

/// The highest frequency of the first processor.
///
/// # Errors
/// If the kernel does not say.
pub fn highest_ghz(file: &Path) -> anyhow::Result<f64> {
    Ok(read_number(file)? as f64 / 1e6)
}

/// Runs `measure` while so many cores work, the last one for a share of its time.
fn under_load<T>(cores: usize, share: f64, measure: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for core in 0..cores {
            let (ends, share) = (&ends, if core + 1 == cores { share } else { 1.0 });
            scope.spawn(move || {
                process::run_on_processor(core);
                while !ends.load(Ordering::Relaxed) {
                    work_for(PERIOD.mul_f64(share));
                    std::thread::sleep(PERIOD.mul_f64(1.0 - share));
                }
            });
        }
        let measured = measure();
        ends.store(true, Ordering::Relaxed);
        measured
    })
}

/// Arithmetic in registers.
fn work_for(time: Duration) {
    let ends = Instant::now() + time;
    let mut value = 1_u64;
    while Instant::now() < ends {
        for _ in 0..1_000 {
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

/// The counter begins anew after `range_uj`.
fn used_uj(before_uj: u64, now_uj: u64, range_uj: u64) -> u64 {
    if now_uj >= before_uj { now_uj - before_uj } else { range_uj.saturating_sub(before_uj) + now_uj }
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    let text =
        fs::read_to_string(file).with_context(|| format!("{}: not readable (root may read it)", file.display()))?;
    Ok(text.trim().to_owned())
}

fn read_number(file: &Path) -> anyhow::Result<u64> {
    let text = read_text(file)?;
    text.parse().with_context(|| format!("{}: {text:?} is no number", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, name: &str, kind: &str, energy_uj: &str) -> anyhow::Result<()> {
        fs::create_dir(folder.join(name))?;
        for (file, text) in [("name", kind), ("max_energy_range_uj", "1000000\n"), ("energy_uj", energy_uj)] {
            fs::write(folder.join(name).join(file), text)?;
        }
        Ok(())
    }

    #[test]
    fn packages_are_found_and_parts_of_packages_are_not() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        package(folder.path(), "intel-rapl:0", "package-0\n", "5\n")?;
        package(folder.path(), "intel-rapl:0:0", "core\n", "3\n")?;
        package(folder.path(), "intel-rapl:1", "package-1\n", "7\n")?;
        package(folder.path(), "intel-rapl:2", "psys\n", "90\n")?;
        let mut read = Rapl::open(folder.path())?.read_uj()?;
        read.sort_unstable();
        assert_eq!(read, [5, 7]);
        // A counter that stands still has no power.
        assert_eq!(Rapl::open(folder.path())?.watts(Duration::from_millis(5))?, 0.0);
        Ok(())
    }

    #[test]
    fn a_machine_without_counters_is_an_error() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        assert!(Rapl::open(folder.path()).unwrap_err().to_string().contains("no RAPL package"));
        assert!(Rapl::open(&folder.path().join("none")).unwrap_err().to_string().contains("no powercap"));
        package(folder.path(), "intel-rapl:0", "package-0", "many")?;
        assert!(Rapl::open(folder.path()).unwrap_err().to_string().contains("no number"));
        Ok(())
    }

    #[test]
    fn a_counter_may_begin_anew() {
        assert_eq!((used_uj(10, 25, 100), used_uj(90, 5, 100)), (15, 15));
    }

    #[test]
    fn a_load_runs_while_it_is_measured() -> anyhow::Result<()> {
        assert_eq!(under_load(2, 0.5, || Ok(7))?, 7);
        let failed: anyhow::Result<()> = under_load(1, 1.0, || anyhow::bail!("no"));
        assert!(failed.is_err_and(|error| error.to_string() == "no"));
        Ok(())
    }
}
