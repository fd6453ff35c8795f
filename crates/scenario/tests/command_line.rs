//! `namewire-sim` as people type it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

const FAILOVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/failover.toml");

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_namewire-sim")).args(arguments).output().expect("the simulator starts")
}

fn ran(arguments: &[&str]) -> String {
    let output = sim(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The last column of a file whose lines begin like this.
fn value(file: &Path, begins: &str) -> f64 {
    let text = read(file);
    let line = text.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("{begins} in {text}"));
    line.rsplit(',').next().and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("a number ends {line}"))
}

#[test]
fn a_scenario_becomes_files_and_a_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a UTF-8 path");
    let text = ran(&["run", FAILOVER, "--out", out, "--capture", "left lower"]);
    assert!(text.contains("satisfied"), "{text}");
    let folder = dir.path().join("failover");
    assert!(value(&folder.join("summary.csv"), "viewer,satisfied,%") > 99.0);
    let sent = |sender: &str, link: &str| {
        let links = read(&folder.join("links.csv"));
        let row = links.lines().find(|line| line.starts_with(&format!("{link},{sender},"))).expect("a link").to_owned();
        row.split(',').nth(2).and_then(|cell| cell.parse::<u64>().ok()).expect("a count")
    };
    assert!(sent("left", "left lower") > 3_000, "the longer way takes over");
    assert!(sent("left", "left upper") > 3_000, "the shorter way comes first");
    assert!(folder.join("left-lower.pcapng").metadata().is_ok_and(|file| file.len() > 100_000));
    let page = read(&folder.join("index.html"));
    assert!(page.contains("<svg") && !page.contains("src=\"http") && page.contains("What does a consumer notice"));
    let missing = sim(&["run", "nowhere.toml"]);
    assert!(!missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("nowhere.toml"));
}

/// All files of a folder, with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let read = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        (path.file_name().expect("a name").to_string_lossy().into_owned(), std::fs::read(&path).expect("a file"))
    });
    read.collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let dir = tempfile::tempdir().expect("a directory");
    let run = |name: &str, seed: &str| {
        let folder = dir.path().join(name);
        let lossy = "link_defaults.loss=0.02";
        let path = folder.to_str().expect("a UTF-8 path").to_owned();
        ran(&["run", FAILOVER, "--seed", seed, "--set", lossy, "--folder", &path, "--capture", "left lower"]);
        files(&folder)
    };
    let first = run("first", "7");
    assert_eq!(first.len(), 7, "{:?}", first.keys());
    assert!(run("second", "7") == first, "another run of the same seed");
    let other = run("third", "8");
    assert!(other["summary.csv"] != first["summary.csv"] && other["left-lower.pcapng"] != first["left-lower.pcapng"]);
}

#[test]
fn variants_are_compared_over_seeds() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a UTF-8 path");
    let text =
        ran(&["run", FAILOVER, "--vary", "strategy=best-route,asf", "--seeds", "3", "--out", out, "--set", "node=[]"]);
    assert!(text.contains("index.html"), "{text}");
    let comparison = read(&dir.path().join("failover/comparison.csv"));
    let satisfied = |variant: &str| -> (f64, String) {
        let begins = format!("{variant},viewer,satisfied,%,");
        let row = comparison.lines().find(|line| line.starts_with(&begins)).expect("a row").to_owned();
        let cells: Vec<&str> = row.split(',').collect();
        (cells[4].parse().expect("a mean"), cells[7].to_owned())
    };
    let ((best_route, seeds), (asf, _)) = (satisfied("best-route"), satisfied("asf"));
    assert!(asf > 99.0 && best_route > 0.0 && seeds == "3", "{comparison}");
    let page = read(&dir.path().join("failover/index.html"));
    assert!(page.contains("viewer: latency over time") && page.contains("best-route"));
    let wrong = sim(&["run", FAILOVER, "--vary", "strategy=asf,besst-route", "--out", out, "--set", "node=[]"]);
    let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && error.contains("besst-route"), "{error}");
}

#[test]
fn a_constellation_is_made_and_run() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a UTF-8 path");
    // Twelve planes of 22: enough for a look, too few for all places.
    ran(&[
        "make",
        "constellation",
        "--planes",
        "12",
        "--per-plane",
        "22",
        "--duration",
        "5min",
        "--out",
        out,
        "--station",
        "a,40,0",
        "--station",
        "b,40,90",
    ]);
    let scenario = dir.path().join("scenario.toml");
    let scenario = scenario.to_str().expect("a UTF-8 path");
    let text = ran(&["check", scenario]);
    assert!(text.contains("266 nodes"), "{text}");
    ran(&["run", scenario, "--out", out]);
    let summary = dir.path().join("scenario/summary.csv");
    assert!(value(&summary, "network,changes of links") > 10.0);
    let satisfied = value(&summary, "b,satisfied,%");
    assert!(satisfied > 50.0, "{satisfied} % of the pings");
    let latency_ms = value(&summary, "b,\"latency, median\"");
    assert!((40.0..400.0).contains(&latency_ms), "{latency_ms} ms there and back over 8,000 km");
}

#[test]
fn graphs_are_made_and_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a UTF-8 path");
    for (arguments, links) in [
        (vec!["geometric", "--nodes", "50", "--links", "120"], "120 links"),
        (vec!["grid", "--width", "4", "--height", "5"], "31 links"),
        (vec!["hubs", "--nodes", "40", "--links", "2"], "76 links"),
    ] {
        let text = ran(&[vec!["make"], arguments, vec!["--out", out]].concat());
        assert!(text.contains(links), "{text}");
        let scenario = dir.path().join("scenario.toml");
        let text = "duration = \"5s\"\nlinks_file = \"links.csv\"\nproducer = [{ node = \"r0\", prefix = \"/p\" }]\n\
                    consumer = [{ node = \"r9\", prefix = \"/p\", kind = \"ping\", name = \"probe\" }]\n";
        std::fs::write(&scenario, text).expect("a scenario");
        ran(&["run", scenario.to_str().expect("a UTF-8 path"), "--out", out]);
        assert_eq!(value(&dir.path().join("scenario/summary.csv"), "probe,satisfied,%"), 100.0);
    }
}
