//! Published numbers beside ours, from shortened runs of `scenarios/published`. docs/simulator-published.md has the
//! whole runs, the sources of the numbers and what differs.

use std::path::Path;
use std::process::Command;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/published/");

fn sim(arguments: &[&str]) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_namewire-sim")).args(arguments).output().expect("the simulator starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a scenario of the folder and returns one of its files, as rows of cells.
fn ran(scenario: &str, settings: &[&str], file: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a directory");
    let scenario = format!("{SCENARIOS}{scenario}.toml");
    let mut arguments = vec!["run", &scenario, "--folder", path(folder.path())];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    sim(&arguments);
    let text = std::fs::read_to_string(folder.path().join(file)).expect("a file of results");
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

/// The latency of the requests of a group that began in the bin at a time; `None` if none got Data.
fn latency_ms(timeline: &[Vec<String>], group: &str, time_s: f64) -> Option<f64> {
    let row = timeline.iter().find(|row| row[1] == group && row[0].parse() == Ok(time_s));
    row.unwrap_or_else(|| panic!("{group} at {time_s} s"))[4].parse().ok()
}

/// Of Hypatia's repository (0ac531c), `satgenpy/tests/data_to_match/kuiper_630/networkx_rtt_*.txt`, every tenth second:
/// round trips in milliseconds of Manila and Dalian, Manila and Saint Petersburg, Saint Petersburg and Dalian.
/// Infinite: no path.
const HYPATIA_MS: [[f64; 3]; 20] = [
    [29.423, 76.846, 63.204],
    [29.154, 75.622, 61.936],
    [25.319, 75.117, 61.361],
    [41.136, 74.649, 60.876],
    [41.137, 74.222, 60.433],
    [41.186, 73.839, 60.036],
    [41.285, 73.505, 59.686],
    [41.434, 73.223, 59.388],
    [42.182, 72.998, 59.142],
    [42.458, 72.835, 58.952],
    [42.777, 72.738, 58.821],
    [43.135, 72.711, 58.750],
    [43.534, 72.756, 58.742],
    [42.921, 72.875, 58.787],
    [42.556, 73.768, 59.619],
    [42.234, 74.044, 59.819],
    [41.955, f64::INFINITY, f64::INFINITY],
    [41.719, 77.343, 63.673],
    [41.527, 76.054, 62.337],
    [41.380, 75.523, 61.766],
];

#[test]
fn pings_over_kuiper_take_as_long_as_hypatia_computed() {
    let made = tempfile::tempdir().expect("a directory");
    let kuiper = "make constellation --planes 34 --per-plane 34 --altitude 629.3 --inclination 51.9 --stagger --elevation 0 \
                  --range 1260 --earth-angle 99.968 --uplinks 1156 --station manila,14.6042,120.9822 \
                  --station dalian,38.913811,121.602322 --station petersburg,59.929858,30.326228 --duration 200s \
                  --delay-step 0.01 --step 10s --out";
    let mut arguments: Vec<&str> = kuiper.split_whitespace().collect();
    arguments.push(path(made.path()));
    sim(&arguments);
    let [links, changes] = ["links", "changes"].map(|file| format!("{file}_file={}/{file}.csv", path(made.path())));
    let intervals = [0, 1, 2].map(|consumer| format!("consumer.{consumer}.interval=10s"));
    let mut settings = vec![links.as_str(), &changes, "bin=10s"];
    settings.extend(intervals.iter().map(String::as_str));
    let timeline = ran("kuiper", &settings, "timeline.csv");
    for (step, published_ms) in HYPATIA_MS.iter().enumerate() {
        for (group, published_ms) in
            ["manila dalian", "manila petersburg", "petersburg dalian"].iter().zip(published_ms)
        {
            let ours_ms = latency_ms(&timeline, group, step as f64 * 10.0).unwrap_or(f64::INFINITY);
            let is_near = ours_ms == *published_ms || (ours_ms - published_ms).abs() < 0.25;
            assert!(is_near, "{group} at {step}0 s: {ours_ms} ms, published {published_ms} ms");
        }
    }
}

/// ndnSIM (90d5039), `tests/unit-tests/utils/tracers/ndn-app-delay-tracer.t.cpp`: 41766.4 µs over two links, 0 from the
/// own store, 20883.2 µs over one link. Our frames are some bytes longer, and our applications are 10 µs away.
#[test]
fn delays_on_a_line_are_those_of_ndnsim() {
    let timeline = ran("ndnsim-delays", &[], "timeline.csv");
    for (group, time_s, published_ms) in [("end", 1.0, 41.7664), ("middle", 2.0, 0.0), ("middle", 3.0, 20.8832)] {
        let ours_ms = latency_ms(&timeline, group, time_s).unwrap_or(f64::NAN);
        assert!((0.0..0.15).contains(&(ours_ms - published_ms)), "{group} at {time_s} s: {ours_ms}, {published_ms} ms");
    }
}

/// ndnSIM (90d5039), `tests/unit-tests/helper/ndn-link-control-helper.t.cpp`, six nodes: Interests that arrived over
/// either way before the link fails, before it works again, and ten seconds later.
#[test]
fn interests_over_a_failing_way_are_those_of_ndnsim() {
    for (duration, published) in [("10.05s", [11, 11]), ("20.05s", [11, 21]), ("30.05s", [21, 31])] {
        let links = ran("ndnsim-failure", &[&format!("duration={duration}")], "links.csv");
        let arrived = |link: &str| {
            let row = links.iter().find(|row| row[0] == link && row[1] == "1").expect("a link");
            row[3].parse::<u64>().expect("a count")
        };
        assert_eq!([arrived("1 2"), arrived("1 3")], published, "after {duration}");
    }
}

/// Hits of an LRU cache by Che et al. 2002, in percent: with `q` the shares of the requests, the characteristic time
/// `t` solves Σ (1 − e^(−q t)) = C, and the share of hits is Σ q (1 − e^(−q t)).
fn che_percent(catalogue: u32, exponent: f64, cache: f64) -> f64 {
    let weights: Vec<f64> = (1..=catalogue).map(|place| libm::pow(f64::from(place), -exponent)).collect();
    let sum: f64 = weights.iter().sum();
    let kept = |t: f64| move |weight: &f64| 1.0 - libm::exp(-weight / sum * t);
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        let held: f64 = weights.iter().map(kept(middle)).sum();
        if held < cache { low = middle } else { high = middle }
    }
    weights.iter().map(|weight| weight / sum * kept(low)(weight)).sum::<f64>() * 100.0
}

#[test]
fn an_lru_store_answers_as_many_requests_as_che_says() {
    let hits_percent = |settings: &[&str]| {
        let shorter = [&["duration=2000s"], settings].concat();
        let summary = ran("lru", &shorter, "summary.csv");
        let row = summary.iter().find(|row| row[1] == "store hits of all nodes").expect("a row");
        row[3].parse::<f64>().expect("a number")
    };
    // Of 40,000 requests; the standard deviation is at most 0.25.
    for (exponent, cache) in [(0.8, 10), (0.8, 100), (1.2, 100)] {
        let settings = [format!("consumer.0.exponent={exponent}"), format!("node.0.store_packets={cache}")];
        let ours = hits_percent(&settings.each_ref().map(String::as_str));
        let published = che_percent(1_000, exponent, f64::from(cache));
        assert!((ours - published).abs() < 1.0, "exponent {exponent}, {cache} Data: {ours} %, {published} %");
    }
    let fifo = hits_percent(&["node.0.policy=fifo"]);
    assert!(fifo < che_percent(1_000, 0.8, 100.0) - 2.0, "{fifo}: the comparison tells policies apart");
}
