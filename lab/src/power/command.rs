//! `namewire-lab power`: the power model for a user's own computer and router.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand};

use namewire_power::case_study::{Assumptions, Study};
use namewire_power::fit;
use namewire_power::flows::Router;
use namewire_power::measurements::Measurements;

use super::rapl::{self, Rapl};
use crate::papers;

/// What to do with the power model.
#[derive(Debug, Subcommand)]
pub enum Power {
    /// Find the parameters of a computer from measurements of its power (a CSV file)
    Fit(FitArguments),
    /// Predict the power of a router on a computer
    Predict(PredictArguments),
    /// Measure the processors' power under chosen loads by RAPL, for `fit`
    Measure(MeasureArguments),
}

#[derive(Debug, Args)]
pub struct FitArguments {
    /// Rows `part,cores,ghz,load,per_s,watts`; lab/README.md explains them
    csv: PathBuf,
    /// Name of the computer
    #[arg(long, default_value = "this computer")]
    name: String,
    /// Processors of the computer; the file measures one of them
    #[arg(long, default_value_t = 1)]
    processors: u32,
    /// Utilization from which the governor chooses a higher frequency
    #[arg(long, default_value_t = 0.8)]
    busy_share: f64,
    /// Write the parameters here, for `predict`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct PredictArguments {
    /// A computer: `server1`, `server2` or `server3` of Takemasa19, or a file that `fit` wrote
    #[arg(long, default_value = "server2")]
    server: String,
    /// A router: `naive` or `optimized` of Takemasa19, or a JSON file with its blocks
    #[arg(long, default_value = "optimized")]
    router: String,
    /// Hit ratio, if not the router's
    #[arg(long)]
    hit: Option<f64>,
    /// Insertion rate, if not the router's
    #[arg(long)]
    insertion: Option<f64>,
    /// Energy of the network card for each packet, if not the computer's
    #[arg(long, value_name = "JOULES")]
    joules_per_packet: Option<f64>,
    /// Bytes of a Data
    #[arg(long, default_value_t = 1024.0)]
    data_bytes: f64,
    /// Data rates to the consumers
    #[arg(long, value_name = "GB/S", value_delimiter = ',', default_value = "0,1,5,10,20,30,40,50,58")]
    gbps: Vec<f64>,
}

#[derive(Debug, Args)]
pub struct MeasureArguments {
    /// Write the rows here instead of to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Most cores that work
    #[arg(long, default_value_t = default_cores())]
    cores: usize,
    /// Seconds for each load
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

fn default_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Most bytes of a file with parameters.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// # Errors
/// If an input is wrong, or this machine cannot measure.
pub fn run(command: &Power) -> anyhow::Result<()> {
    match command {
        Power::Fit(arguments) => run_fit(arguments),
        Power::Predict(arguments) => {
            print!("{}", prediction(arguments)?);
            Ok(())
        }
        Power::Measure(arguments) => measure(arguments),
    }
}

fn run_fit(arguments: &FitArguments) -> anyhow::Result<()> {
    ensure!((1..=1_024).contains(&arguments.processors), "a computer has 1 to 1024 processors");
    ensure!(arguments.busy_share > 0.0 && arguments.busy_share <= 1.0, "--busy-share is above 0 and at most 1");
    let measured = Measurements::read(&arguments.csv)?;
    let fitted = fit::server(&arguments.name, arguments.processors, arguments.busy_share, &measured)?;
    print!("{}", description(&fitted));
    if let Some(file) = &arguments.out {
        fs::write(file, serde_json::to_string_pretty(&fitted.server)? + "\n")
            .with_context(|| file.display().to_string())?;
        println!("written to {}", file.display());
    }
    Ok(())
}

fn description(fitted: &fit::FittedServer) -> String {
    let fit::FittedServer { server, r_squared, frequencies } = fitted;
    let fits = |curve: &str| {
        let found = r_squared.iter().find(|(name, _)| name == curve);
        found.map_or_else(String::new, |(_, fits)| format!("  R² {fits:.3}"))
    };
    let mut out = format!("{}\nidle               {:8.2} W\n", server.name, server.chassis_w);
    for state in &server.processors.first_core {
        let curve = format!("one core, {} GHz", state.ghz);
        let _ = writeln!(out, "{curve:18} {:8.2} W · load^{:.3}{}", state.watts, state.sigma, fits(&curve));
    }
    for (place, core) in server.processors.further_cores.iter().enumerate() {
        let curve = format!("{} cores", place + 2);
        let _ = writeln!(
            out,
            "{:18} {:8.2} W · load^{:.3}{}",
            format!("+ core {}", place + 2),
            core.watts,
            core.sigma,
            fits(&curve)
        );
    }
    if let Some(fit::Fitted { curve, r_squared }) = frequencies {
        let fit::Frequencies { nu, least_w } = curve;
        let _ = writeln!(out, "frequencies        ν {nu:.4}, least power {least_w:.2} W  R² {r_squared:.3}");
    }
    let _ = writeln!(out, "memory             {:8.3} nJ per byte{}", server.joules_per_byte * 1e9, fits("memory"));
    let _ = writeln!(out, "network            {:8.3} µJ per packet{}", server.joules_per_packet * 1e6, fits("nic"));
    out
}

fn prediction(arguments: &PredictArguments) -> anyhow::Result<String> {
    let (study, plain) = (Study::from_json(papers::TAKEMASA_19)?, Assumptions::default());
    let mut server = match arguments.server.as_str() {
        "server1" => study.chapter.servers[0].model.clone(),
        "server2" => study.server(&plain),
        "server3" => study.chapter.servers[2].model.clone(),
        file => from_file(Path::new(file)).context("--server is server1, server2, server3 or a file")?,
    };
    let mut router: Router = match arguments.router.as_str() {
        "naive" => study.naive(&plain),
        "optimized" => study.optimized(&plain),
        file => from_file(Path::new(file)).context("--router is naive, optimized or a file")?,
    };
    server.joules_per_packet = arguments.joules_per_packet.unwrap_or(server.joules_per_packet);
    router.hit = arguments.hit.unwrap_or(router.hit);
    router.insertion = arguments.insertion.unwrap_or(router.insertion);
    for (what, share) in [("hit ratio", router.hit), ("insertion rate", router.insertion)] {
        ensure!((0.0..=1.0).contains(&share), "a {what} is 0 to 1");
    }
    ensure!(arguments.data_bytes >= 1.0, "a Data has at least a byte");
    let mut out = format!(
        "{}: {:.0} cycles and {:.0} bytes of memory per Interest\n\n{:>8} {:>12} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>9}\n",
        server.name,
        router.cycles.per_interest(router.hit, router.insertion),
        router.memory_bytes.per_interest(router.hit, router.insertion),
        "Gb/s",
        "Interests/s",
        "cores",
        "chassis",
        "CPU",
        "memory",
        "network",
        "total W",
        "nJ/bit"
    );
    for gbps in &arguments.gbps {
        if !(gbps.is_finite() && *gbps >= 0.0) {
            bail!("{gbps} is no Data rate");
        }
        let interests_per_s = gbps * 1e9 / 8.0 / arguments.data_bytes;
        let load = router.load(interests_per_s);
        let cores = server.processors.cores_needed(load.cycles_per_s);
        let start = format!("{gbps:8} {interests_per_s:12.0} {cores:7.2}");
        let _ = match server.power(load) {
            Some(power) => {
                let per_bit =
                    if *gbps > 0.0 { format!("{:9.2}", power.total_w() / gbps) } else { format!("{:>9}", "-") };
                let namewire_power::Power { chassis_w, cpu_w, memory_w, nic_w } = power;
                writeln!(
                    out,
                    "{start} {chassis_w:9.2} {cpu_w:8.2} {memory_w:8.2} {nic_w:8.2} {:9.2} {per_bit}",
                    power.total_w()
                )
            }
            None => writeln!(
                out,
                "{start}   more than its {} cores do",
                server.processors.cores() * server.processors.processors as usize
            ),
        };
    }
    Ok(out)
}

fn measure(arguments: &MeasureArguments) -> anyhow::Result<()> {
    ensure!((1..=1_024).contains(&arguments.cores), "--cores is 1 to 1024");
    ensure!((1..=86_400).contains(&arguments.seconds), "--seconds is 1 to 86400");
    let rapl = Rapl::open(Path::new(rapl::POWERCAP))?;
    let ghz = rapl::highest_ghz(Path::new(rapl::HIGHEST_KHZ))?;
    let measured = rapl.measure(arguments.cores, ghz, Duration::from_secs(arguments.seconds))?;
    let mut bytes = Vec::new();
    measured.write(&mut bytes)?;
    match &arguments.out {
        Some(file) => fs::write(file, bytes).with_context(|| file.display().to_string()),
        None => Ok(std::io::stdout().write_all(&bytes)?),
    }
}

fn from_file<T: serde::de::DeserializeOwned>(file: &Path) -> anyhow::Result<T> {
    let bytes = fs::metadata(file).with_context(|| file.display().to_string())?.len();
    ensure!(bytes <= FILE_BYTES_MAX, "{}: more than {FILE_BYTES_MAX} bytes", file.display());
    serde_json::from_str(&fs::read_to_string(file)?).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_power::Server;

    #[derive(clap::Parser)]
    struct Line {
        #[command(subcommand)]
        command: Power,
    }

    fn predicted(arguments: &[&str]) -> anyhow::Result<String> {
        let line = <Line as clap::Parser>::try_parse_from([&["lab", "predict"], arguments].concat())?;
        let Power::Predict(arguments) = line.command else { bail!("another command") };
        prediction(&arguments)
    }

    #[test]
    fn a_load_beyond_the_computer_is_said() -> anyhow::Result<()> {
        let text = predicted(&["--router", "naive", "--gbps", "0,58,80"])?;
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].trim_start().starts_with("0 ") && lines[3].trim_end().ends_with('-'), "{text}");
        assert!(lines[4].contains("7080078") && lines[5].contains("more than its 4 cores do"), "{text}");
        assert!(predicted(&["--hit", "1.5"]).is_err() && predicted(&["--gbps", "-1"]).is_err());
        assert!(format!("{:#}", predicted(&["--server", "none"]).unwrap_err()).contains("server1"));
        Ok(())
    }

    /// What `fit` writes, `predict` reads.
    #[test]
    fn a_fitted_computer_can_be_predicted() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let (csv, json) = (folder.path().join("m.csv"), folder.path().join("server.json"));
        let mut rows = String::from("part,cores,ghz,load,per_s,watts\nidle,,,,,20\nmemory,,,,0,30\nmemory,,,,1e9,31\n");
        for (cores, base, top) in [(1, 20.0, 10.0), (2, 30.0, 6.0)] {
            for load in [0.25, 0.5, 1.0_f64] {
                let _ = writeln!(rows, "cpu,{cores},2.0,{load},,{}", base + top * load.sqrt());
            }
        }
        fs::write(&csv, rows)?;
        run_fit(&FitArguments { csv, name: "mine".into(), processors: 1, busy_share: 0.8, out: Some(json.clone()) })?;
        let server: Server = from_file(&json)?;
        assert!((server.joules_per_byte - 1e-9).abs() < 1e-15, "{server:?}");
        let watts = server.processors.watts(3e9).context("in its capacity")?;
        assert!((watts - (10.0 + 6.0 * 0.5_f64.sqrt())).abs() < 1e-3, "{watts}");
        let text = predicted(&["--server", &json.to_string_lossy(), "--gbps", "1"])?;
        assert!(text.starts_with("mine: "), "{text}");
        Ok(())
    }
}
