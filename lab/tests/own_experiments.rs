//! Every example of docs/lab.md runs as it stands, and leaves a record.

use std::path::Path;
use std::process::Command;

use namewire_lab::record::Record;

const GUIDE: &str = include_str!("../../docs/lab.md");

/// The blocks that a shell can run, and the record that each leaves.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let shell = GUIDE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    shell
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
    assert_eq!(blocks.len(), 5);
    let programs = Path::new(env!("CARGO_BIN_EXE_namewire-lab")).parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    for (block, record) in blocks {
        let dir = tempfile::tempdir().expect("a directory");
        let run = Command::new("sh")
            .args(["-eu", "-c", block])
            .current_dir(&dir)
            .env("PATH", format!("{}:{path}", programs.display()))
            .output()
            .expect("a shell");
        assert!(run.status.success(), "{block}\n{}", String::from_utf8_lossy(&run.stderr));
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
