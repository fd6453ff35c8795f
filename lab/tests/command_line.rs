//! The contract of `namewire-lab`, and every experiment at smoke scale so that none breaks unnoticed.
//!
//! Needs the router: `cargo build -p namewire-cli` first (`make test` does), or
//! NAMEWIRE set to one.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use namewire_lab::experiment::Experiment;
use namewire_lab::experiments;
use namewire_lab::record::Record;

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_namewire-lab")).args(arguments).output().expect("the lab starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_experiment_runs_at_smoke_scale_and_the_records_make_a_page() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a UTF-8 path");
    let options = ["--scale", "smoke", "--workers", "1,4", "--out", out];
    // Two at a time: half of the time is waiting.
    let next = AtomicUsize::new(0);
    let run_rest = || {
        while let Some(experiment) = experiments::TABLE.get(next.fetch_add(1, Ordering::Relaxed)) {
            run_at_smoke_scale(experiment, &options, dir.path());
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(run_rest);
        run_rest();
    });
    let report = lab(&["report", out]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let page = std::fs::read_to_string(dir.path().join("report.html")).expect("the page is there");
    let mut without_plot = Vec::new();
    for experiment in experiments::TABLE.iter() {
        let section = page.split("<section id=\"").find(|part| part.starts_with(&format!("{}\"", experiment.id)));
        let section = section.unwrap_or_else(|| panic!("{} has no section", experiment.id));
        if !section.contains("<svg") {
            without_plot.push(experiment.id);
        }
    }
    // At this scale the clock does not resolve some measurements, and they are refused.
    assert!(without_plot.len() * 5 <= experiments::TABLE.len(), "{without_plot:?}");
    // All records are there already, but for one.
    std::fs::remove_file(dir.path().join("pit-model.json")).expect("it was there");
    let rest = lab(&[&["run", "all"], &options[..]].concat());
    assert!(rest.status.success(), "{}", text(&rest.stderr));
    assert!(text(&rest.stdout).contains(&format!("1 of {} experiments are left", experiments::TABLE.len())));
    assert!(text(&rest.stdout).contains("pit-model: ") && dir.path().join("pit-model.json").exists());
    let record = dir.path().join("pit-model.json");
    let record = record.to_str().expect("a UTF-8 path");
    let same = lab(&["compare", record, record]);
    assert!(same.status.success() && text(&same.stdout).contains("0 rows differ"), "{}", text(&same.stdout));
}

fn run_at_smoke_scale(experiment: &Experiment, options: &[&str], out: &Path) {
    let run = lab(&[&["run", experiment.id, "--json"], options].concat());
    assert!(run.status.success(), "{}: {}", experiment.id, text(&run.stderr));
    let printed: Record = serde_json::from_slice(&run.stdout).expect("--json prints the record");
    let written = Record::read(&out.join(format!("{}.json", experiment.id))).expect("the record is there");
    assert_eq!(printed, written);
    // Of so few repetitions, headlines may be refused.
    assert!(written.rows.iter().any(|row| row.value.is_some()), "{}: nothing was measured", experiment.id);
    assert_eq!(written.headline.get("lost").copied().unwrap_or(0.0), 0.0, "{}", experiment.id);
    assert!(written.headline.values().all(|value| value.is_finite()));
}

/// The baseline is this program itself, so both sides of each row agree where the result is a computation.
#[test]
fn an_earlier_program_is_measured_beside_this_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().to_str().expect("a UTF-8 path");
    let lab_itself = env!("CARGO_BIN_EXE_namewire-lab");
    let run = lab(&["run", "pit-model", "--scale", "smoke", "--out", out, "--baseline", lab_itself]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let record = Record::read(&dir.path().join("pit-model.json")).expect("the record is there");
    let (ours, theirs) = record.rows.split_at(record.rows.len() / 2);
    assert!(!ours.is_empty());
    for (row, baseline) in ours.iter().zip(theirs) {
        assert_eq!((&row.case, &row.value), (&baseline.case, &baseline.value));
        assert!(baseline.subject.starts_with(&format!("{} of namewire-lab", row.subject)), "{}", baseline.subject);
    }
    assert_eq!(record.headline.keys().filter(|name| name.starts_with("baseline_")).count() * 2, record.headline.len());
    let run = lab(&["run", "pit-model", "--scale", "smoke", "--out", out, "--baseline", "/bin/false"]);
    assert!(text(&run.stderr).contains("/bin/false failed"), "{}", text(&run.stderr));
}

#[test]
fn list_names_every_experiment() {
    let list = lab(&["list"]);
    assert!(list.status.success());
    for experiment in experiments::TABLE.iter() {
        assert!(text(&list.stdout).contains(experiment.id) && text(&list.stdout).contains(experiment.question));
    }
}

#[test]
fn wrong_use_is_refused_with_a_reason() {
    let empty = tempfile::tempdir().expect("a directory");
    let empty = empty.path().to_str().expect("a UTF-8 path");
    for (arguments, reason) in [
        (vec!["run", "no-such-experiment"], "no experiment is called"),
        (vec!["run", "router-sockets", "--names", "Cargo.toml"], "none of these experiments uses"),
        (vec!["run", "router-sockets", "--workers", "0"], "a worker count is"),
        (vec!["report", empty], "no records in"),
    ] {
        let refused = lab(&arguments);
        assert!(!refused.status.success(), "{arguments:?}");
        assert!(text(&refused.stderr).contains(reason), "{arguments:?}: {}", text(&refused.stderr));
    }
}

#[test]
fn a_missing_router_is_named_with_how_to_build_it() {
    let run = Command::new(env!("CARGO_BIN_EXE_namewire-lab"))
        .args(["run", "router-sockets", "--scale", "smoke"])
        .env("NAMEWIRE", "/nonexistent/namewire")
        .output()
        .expect("the lab starts");
    assert!(!run.status.success() && text(&run.stderr).contains("/nonexistent/namewire"), "{}", text(&run.stderr));
}

#[test]
fn an_interrupt_ends_the_run_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let out = dir.path().join("records");
    let mut run = Command::new(env!("CARGO_BIN_EXE_namewire-lab"))
        .args(["run", "router-sockets", "--scale", "quick", "--out"])
        .arg(&out)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the lab starts");
    let pid = rustix::process::Pid::from_child(&run);
    std::thread::sleep(Duration::from_millis(1_500));
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut children = children_of(run.id());
    // Between two measurements there is no router for a moment.
    while children.is_empty() {
        assert!(Instant::now() < deadline, "a router should be running by now");
        std::thread::sleep(Duration::from_millis(10));
        children = children_of(run.id());
    }
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it can be signalled");
    let status = run.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(!out.exists(), "an interrupted run wrote something");
    for child in children {
        assert!(!Path::new(&format!("/proc/{child}")).exists(), "process {child} outlived the run");
    }
}

fn children_of(parent: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).expect("it lives");
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}
