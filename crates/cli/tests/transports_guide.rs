//! The commands of docs/transports.md that turn on AF_XDP, DPDK and shared memory. The test runs each line unchanged,
//! on a separate machine: a network namespace with a cable `eth1` and an empty `/run`. This needs root; without it, the
//! test prints this and passes. For DPDK, `NAMEWIRE_DPDK` must name a build with DPDK (`make system`).

use std::{
    path::Path,
    process::{Command, Output},
};

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

impl Machine {
    /// `None`, with a line that says so, where namespaces cannot be made.
    fn new(name: &str) -> Option<Machine> {
        let machine = Machine { namespace: format!("nwg{name}{}", std::process::id()) };
        if !ip(&format!("netns add {}", machine.namespace)) {
            println!("skipped: namespaces cannot be made");
            return None;
        }
        Some(machine)
    }

    /// Runs lines of the guide, with the programs in `binaries`. The first one that ends in `&` is the router, in the
    /// background. A reader types the next line a little later than a shell does, so the others are tried until they
    /// work.
    fn run(&self, lines: &[&str], binaries: &Path) -> Output {
        // `ip netns exec` gives the shell mounts of its own.
        let mut script = String::from("mount -t tmpfs tmpfs /run\n");
        let mut is_running = false;
        for line in lines {
            let until_it_works = |line: &str| {
                format!("(tries=0; until {line}; do tries=$((tries+1)); [ $tries -lt 300 ] || exit 1; sleep 0.1; done)")
            };
            script += &match line.strip_suffix('&') {
                // It answers before it prints that it runs. It must not end in between.
                Some(line) if !is_running => format!(
                    "{line} >/run/router &\npids=$!\n{} || {{ kill $pids; exit 1; }}\n",
                    until_it_works("grep -qs 'is running' /run/router")
                ),
                // An application that serves says so; the next line finds its routes.
                Some(line) => format!(
                    "{} 2>/run/said &\npids=\"$pids $!\"\n{} || {{ kill $pids; exit 1; }}\n",
                    until_it_works(line),
                    until_it_works("grep -qs serving /run/said")
                ),
                None => format!("{} || {{ kill $pids; exit 1; }}\n", until_it_works(line)),
            };
            is_running |= line.ends_with('&');
        }
        script += "kill $pids; wait; cat /run/router\n";
        let home = tempfile::tempdir().expect("a folder");
        Command::new("ip")
            .args(["netns", "exec", &self.namespace, "sh", "-c", &script])
            .env("PATH", format!("{}:{}", binaries.display(), std::env::var("PATH").expect("a path")))
            .env("HOME", home.path())
            .env_remove("NDN_CLIENT_TRANSPORT")
            .output()
            .expect("ip")
    }
}

fn binaries() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_namewire")).parent().expect("a folder")
}

#[test]
fn each_line_that_turns_af_xdp_on_works() {
    let Some(machine) = Machine::new("x") else { return };
    let namespace = &machine.namespace;
    assert!(ip(&format!("-n {namespace} link add eth1 type veth peer name far")));
    assert!(ip(&format!("-n {namespace} link set far up")));
    let output = machine.run(&commands("### AF_XDP"), binaries());
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

#[test]
fn each_line_that_shares_memory_works() {
    let Some(machine) = Machine::new("m") else { return };
    let output = machine.run(&commands("## Shared memory"), binaries());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1000 received"), "{output:?}");
}

/// The lines that install and build have been run already.
#[test]
fn each_line_that_turns_dpdk_on_works() {
    let Some(folder) = std::env::var_os("NAMEWIRE_DPDK") else {
        println!("skipped: NAMEWIRE_DPDK names no folder with a build with DPDK");
        return;
    };
    let Some(machine) = Machine::new("d") else { return };
    let lines: Vec<String> = commands("### DPDK")
        .iter()
        .filter(|line| !line.starts_with("apt-get") && !line.starts_with("make"))
        .map(|line| line.replace("target/dpdk/release/", ""))
        .collect();
    let output = machine.run(&lines.iter().map(String::as_str).collect::<Vec<_>>(), Path::new(&folder));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("dev://net_af_packet0: DPDK, driver net_af_packet"), "{output:?}");
    assert!(text.contains("ether://[02:00:00:00:00:02]"), "{output:?}");
}
