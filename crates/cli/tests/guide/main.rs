//! The guide: each test runs every command of a page as a reader types it, and compares the output with the page.

mod machines;
mod page;
mod quotes;
mod reference;
#[path = "../router_process/mod.rs"]
mod router_process;

use machines::Machines;
use page::{Kind, blocks};
use router_process::make_identity;
use std::{fs, path::Path};

/// Blocks of commands that no test runs, by the first line of the block, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("tutorial", "make build", "the program that the test has is built already"),
    ("replacing-nfd", "cd /etc/ndn", "the test puts a configuration of NFD there"),
    ("replacing-nfd", "nfdc status report > before.txt", NEEDS_NFD),
    ("replacing-nfd", "systemctl disable --now nfd", NEEDS_NFD),
    ("replacing-nfd", "systemctl enable --now namewire", "no systemd runs in a namespace"),
    ("replacing-nfd", "systemctl restart nlsr", "NLSR is in no package registry"),
    ("replacing-nfd", "systemctl disable --now namewire", NEEDS_NFD),
    ("routing", "nlsr -f nlsr.conf", "NLSR is in no package registry"),
    ("routing", "ndnd dv run dv.yml", "ndnd is in no package registry"),
    ("routing", "ndnd put --expose /app/x < file", "ndnd is in no package registry"),
    ("tuning", "echo 160 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "it takes the machine's memory"),
    ("extending", "cargo run --release -p namewire-sim --example own_strategy", TESTED_IN_ITS_CRATE),
    ("extending", "cargo run --release -p namewire-designs --example own_policy", TESTED_IN_ITS_CRATE),
    ("extending", "cargo run --release -p namewire-lab --example own_design -- smoke", TESTED_IN_ITS_CRATE),
];
const NEEDS_NFD: &str = "NFD is in no package registry";
const TESTED_IN_ITS_CRATE: &str = "cargo builds the example and tests it with its crate";

fn text_of(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page).with_extension("md");
    fs::read_to_string(path).expect("a page")
}

/// Types every block of a page, on machines that have these files.
fn follow(page: &str, files: &[(&str, String)]) {
    let text = text_of(page);
    let blocks = blocks(&text);
    let mut names: Vec<&str> = Vec::new();
    for block in &blocks {
        if let Kind::Commands { machine } = &block.kind {
            names.extend((!names.contains(&machine.as_str())).then_some(machine.as_str()));
        }
    }
    let Some(mut last) = names.first().copied() else { return };
    let Some(mut machines) = Machines::new(page, &names, files) else { return };
    for block in &blocks {
        match &block.kind {
            Kind::Commands { machine } => {
                machines.type_block(machine, &block.text);
                last = machine;
            }
            Kind::Output => machines.must_show(last, &block.text),
            Kind::NotRun => {}
        }
    }
}

macro_rules! pages {
    ($($test:ident: $page:literal, $files:expr;)+) => {
        const PAGES: &[&str] = &[$($page),+];
        $(#[test]
        fn $test() {
            follow($page, &$files);
        })+
    };
}

pages! {
    tutorial: "tutorial", [];
    two_machines: "two-machines", [];
    failover: "failover", [];
    in_the_place_of_nfd: "replacing-nfd", files_of_nfd();
    routing_daemons: "routing", [];
    choosing: "choosing", [];
    tuning: "tuning", [];
    troubleshooting: "troubleshooting", [];
    concepts: "concepts", [];
    extending: "extending", [];
}

/// A configuration as NFD has it, and the certificate that it trusts. This machine may have no user `ndn`.
fn files_of_nfd() -> [(&'static str, String); 2] {
    let home = tempfile::tempdir().expect("a folder");
    let certificate = home.path().join("certificate");
    make_identity(home.path(), "/operator", &certificate);
    let sample = include_str!("../../../configuration/tests/nfd.conf");
    let configuration = sample.replace("  user ndn ", "  ; ").replace("  group ndn", "  ; no group");
    [("nfd.conf", configuration), ("keys/default.ndncert", fs::read_to_string(certificate).expect("a certificate"))]
}

#[test]
fn what_no_test_runs_is_listed_with_the_reason() {
    let not_run = |page: &str| {
        let blocks = blocks(&text_of(page)).into_iter().filter(|block| block.kind == Kind::NotRun);
        blocks.map(|block| block.text.lines().next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    for page in PAGES {
        let listed = NOT_RUN.iter().filter(|(of, _, _)| of == page).map(|(_, line, _)| *line);
        assert_eq!(not_run(page), listed.collect::<Vec<_>>(), "{page}");
    }
}
