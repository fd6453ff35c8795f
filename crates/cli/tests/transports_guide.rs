//! The commands of docs/transports.md that turn AF_XDP on, each line as it stands there, on a machine of their own: a
//! network namespace with a cable `eth1` and an empty `/run`. It needs root; without it, the test says so and passes.

use std::{path::Path, process::Command};

const GUIDE: &str = include_str!("../../../docs/transports.md");

/// The first block of commands under a heading.
fn commands(heading: &str) -> Vec<&'static str> {
    let section = GUIDE.split_once(&format!("{heading}\n")).expect("the heading").1;
    section.split("```\n").nth(1).expect("a block").lines().collect()
}

fn ip(arguments: &str) -> bool {
    Command::new("ip")
        .args(arguments.split(' '))
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

struct Machine {
    namespace: String,
}

impl Drop for Machine {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.namespace));
    }
}

#[test]
fn each_line_that_turns_af_xdp_on_works() {
    let machine = Machine { namespace: format!("nwg{}", std::process::id()) };
    let namespace = &machine.namespace;
    if !ip(&format!("netns add {namespace}")) {
        println!("skipped: namespaces cannot be made");
        return;
    }
    assert!(ip(&format!("-n {namespace} link add eth1 type veth peer name far")));
    assert!(ip(&format!("-n {namespace} link set far up")));
    // `ip netns exec` gives the shell mounts of its own.
    let mut script = String::from("mount -t tmpfs tmpfs /run\n");
    for line in commands("### AF_XDP") {
        match line.ends_with('&') {
            true => script += &format!("{line}\n"),
            // A reader types the next line a little later than a shell does.
            false => {
                script += &format!(
                    "tries=0; until {line}; do tries=$((tries+1)); [ $tries -lt 300 ] || exit 1; sleep 0.1; done\n"
                )
            }
        }
    }
    script += "kill $!; wait\n";
    let binaries = Path::new(env!("CARGO_BIN_EXE_namewire")).parent().expect("a folder");
    let home = tempfile::tempdir().expect("a folder");
    let output = Command::new("ip")
        .args(["netns", "exec", namespace, "sh", "-c", &script])
        .env("PATH", format!("{}:{}", binaries.display(), std::env::var("PATH").expect("a path")))
        .env("HOME", home.path())
        .env_remove("NDN_CLIENT_TRANSPORT")
        .output()
        .expect("ip");
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) =
        String::from_utf8_lossy(&output.stderr).lines().find(|line| line.contains("cannot open dev://eth1"))
    {
        println!("skipped: AF_XDP does not work on this machine: {line}");
        return;
    }
    assert!(text.contains("dev://eth1: AF_XDP, "), "{output:?}");
    assert!(text.contains("dev://eth1 by AF_XDP"), "{output:?}");
}
