//! Every example of docs/simulator.md runs unchanged and leaves what the page says.

use std::path::Path;
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../../docs/simulator.md");

/// The blocks of the page that a shell can run.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Runs a block in a folder, with our program.
fn run(block: &str, folder: &Path) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_namewire-sim")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", block]).current_dir(folder).env("PATH", format!("{}:{path}", programs.display()));
    let run = command.output().expect("a shell");
    assert!(run.status.success(), "{block}\n{}", String::from_utf8_lossy(&run.stderr));
    run
}

/// The mean of a number of `viewers` or others, by variant.
fn mean(comparison: &str, begins: &str) -> f64 {
    let row = comparison.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("no {begins}"));
    row[begins.len()..].split(',').next().and_then(|cell| cell.parse().ok()).expect("a mean")
}

#[test]
fn the_first_figure_answers_its_question() {
    let dir = tempfile::tempdir().expect("a directory");
    // Half a minute is enough to see it here.
    let block = blocks()[0].replace("\"5min\"", "\"90s\"").replace("--seeds 3", "--seeds 1");
    run(&block, dir.path());
    let folder = dir.path().join("out/question");
    let comparison = std::fs::read_to_string(folder.join("comparison.csv")).expect("a comparison");
    let of = |strategy: &str, what: &str| mean(&comparison, &format!("{strategy},{what},"));
    let satisfied = ["best-route", "asf", "multicast"].map(|strategy| of(strategy, "viewers,satisfied,%"));
    assert!(satisfied.is_sorted() && satisfied[2] > satisfied[0], "{satisfied:?}");
    let [few, many] = ["best-route", "multicast"].map(|strategy| of(strategy, "network,frames sent,frames"));
    assert!(many > 5.0 * few, "{few} {many}");
    assert!(folder.join("index.html").is_file());
}

#[test]
fn the_other_examples_run() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 4);
    for block in &blocks[1..] {
        let dir = tempfile::tempdir().expect("a directory");
        let output = run(&block.replace("--duration 10min", "--duration 1min"), dir.path());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("index.html"), "{text}");
    }
}

/// The car is served while it passes, and not before and after.
#[test]
fn the_car_hears_the_units_that_it_passes() {
    let dir = tempfile::tempdir().expect("a directory");
    run(blocks()[2], dir.path());
    let timeline = std::fs::read_to_string(dir.path().join("out/drive/timeline.csv")).expect("a timeline");
    let satisfied: Vec<u64> =
        timeline.lines().skip(1).filter_map(|line| line.split(',').nth(3)?.parse().ok()).collect();
    let share = |seconds: std::ops::Range<usize>| {
        satisfied[seconds.clone()].iter().sum::<u64>() as f64 / (10 * seconds.len()) as f64
    };
    assert!(share(6..48) > 0.5, "{satisfied:?}");
    assert!(share(55..59) < 0.05, "{satisfied:?}");
}

#[test]
fn a_strategy_of_ones_own_is_named_in_a_scenario() {
    let programs = Path::new(env!("CARGO_BIN_EXE_namewire-sim")).parent().expect("a folder");
    let dir = tempfile::tempdir().expect("a directory");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/failover.toml");
    let own = |arguments: &[&str]| {
        let mut command = Command::new(programs.join("examples/own_simulator"));
        command.args(["run", scenario, "--set", "node=[]", "--set", "duration=12s"]).args(arguments);
        command.current_dir(&dir).output().expect("cargo builds the examples with the tests")
    };
    let compared = own(&["--vary", "strategy=two-copies,best-route"]);
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let comparison = std::fs::read_to_string(dir.path().join("out/failover/comparison.csv")).expect("a comparison");
    let frames = |strategy: &str| mean(&comparison, &format!("{strategy},network,frames sent,frames,"));
    assert!(frames("two-copies") > 1.5 * frames("best-route"), "{comparison}");
    let plain = Command::new(env!("CARGO_BIN_EXE_namewire-sim"))
        .args(["run", scenario, "--set", "strategy=two-copies", "--set", "node=[]"])
        .current_dir(&dir)
        .output()
        .expect("the simulator starts");
    assert!(String::from_utf8_lossy(&plain.stderr).contains("two-copies"), "our own program does not know it");
}
