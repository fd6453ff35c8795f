//! Every example of docs/lab.md runs unchanged and leaves a record; the example of docs/papers.md prints its table.

use std::path::Path;
use std::process::{Command, Output};

use namewire_lab::record::Record;

const GUIDE: &str = include_str!("../../docs/lab.md");
const PAPERS: &str = include_str!("../../docs/papers.md");

/// The blocks of a page with this fence.
fn fenced(page: &'static str, fence: &str) -> Vec<&'static str> {
    page.split(&format!("```{fence}\n")).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Runs a block in a folder, with our programs.
fn run(block: &str, folder: &Path) -> Output {
    let programs = Path::new(env!("CARGO_BIN_EXE_namewire-lab")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", block]).current_dir(folder).env("PATH", format!("{}:{path}", programs.display()));
    let run = command.output().expect("a shell");
    assert!(run.status.success(), "{block}\n{}", String::from_utf8_lossy(&run.stderr));
    run
}

/// The blocks that a shell can run, and the record that each leaves.
fn blocks() -> Vec<(&'static str, &'static str)> {
    fenced(GUIDE, "sh")
        .into_iter()
        .map(|block| {
            let last = block.trim_end().lines().last().unwrap_or_default();
            let name = last.split(' ').nth(2).unwrap_or_default();
            (block, name.trim_end_matches(".toml"))
        })
        .collect()
}

#[test]
fn each_example_of_the_guide_leaves_a_record() {
    let blocks = blocks();
    assert_eq!(blocks.len(), 4);
    for (block, record) in blocks {
        let dir = tempfile::tempdir().expect("a directory");
        run(block, dir.path());
        let record = Record::read(&dir.path().join("out").join(format!("{record}.json"))).expect("a record");
        assert!(!record.rows.is_empty() && !record.headline.is_empty(), "{block}");
    }
}

#[test]
fn a_design_of_ones_own_is_measured() {
    let programs = Path::new(env!("CARGO_BIN_EXE_namewire-lab")).parent().expect("a folder");
    let dir = tempfile::tempdir().expect("a directory");
    let run = Command::new(programs.join("examples/own_design")).arg("smoke").current_dir(&dir).output();
    let run = run.expect("cargo builds the examples with the tests");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let record = Record::read(&dir.path().join("out/own-design.json")).expect("a record");
    for subject in ["longest-first-map", "one-bucket"] {
        assert!(record.rows.iter().any(|row| row.subject == subject && row.metric == "look-up"), "{subject}");
    }
    assert!(record.headline["longest-first-map_memory_over_default_real"] > 0.0);
}

#[test]
fn a_table_of_a_paper_is_printed_as_the_page_shows() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let printed =
        fenced(PAPERS, "sh").into_iter().map(|block| run(block, &checkout).stdout).collect::<Vec<_>>().concat();
    let one_blank = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = String::from_utf8_lossy(&printed).lines().map(one_blank).collect::<Vec<_>>();
    for line in fenced(PAPERS, "output").into_iter().flat_map(str::lines) {
        assert!(printed.contains(&one_blank(line)), "{line:?} in {printed:?}");
    }
}
