//! The committed object `bpf/steer.o` equals the output of the compiler for `bpf/steer.c`.
//!
//! Compares the instructions of the program and the definition of the map, not whole files: other parts name the
//! compiler. Without clang, or with a version other than that of the object, the test prints this and passes: versions
//! choose different instructions for the same program.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};

/// The version that made the object, as `bpf/steer.c` says.
const CLANG: &str = "clang version 14.";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

fn section(object: &[u8], name: &str) -> Vec<u8> {
    let file = object::File::parse(object).expect("an ELF file");
    file.section_by_name(name).unwrap_or_else(|| panic!("no section {name}")).data().expect("its bytes").to_vec()
}

#[test]
fn the_object_is_that_of_the_source() {
    let Ok(version) = Command::new("clang").arg("--version").output() else {
        println!("skipped, because clang is not installed");
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let fresh = directory.path().join("steer.o");
    let output = Command::new("clang")
        .args(["-O2", "-g0", "-target", "bpfel", "-mcpu=v2", "-Wall", "-Wextra", "-Werror", "-c", "steer.c", "-o"])
        .arg(&fresh)
        .current_dir(folder())
        .output()
        .expect("clang is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("No available targets") {
        println!("skipped, because this clang cannot compile for BPF");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let version = String::from_utf8_lossy(&version.stdout);
    if !version.contains(CLANG) {
        println!("skipped, because the object was made by {CLANG}x and this is {version}");
        return;
    }
    let (fresh, committed) = (std::fs::read(fresh).expect("made"), std::fs::read(folder().join("steer.o")));
    let committed = committed.expect("committed");
    for name in ["xdp", ".relxdp", "maps", "license"] {
        assert_eq!(section(&committed, name), section(&fresh, name), "section {name}: compile bpf/steer.c again");
    }
}
