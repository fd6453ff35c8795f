//! The machines of a page, on one cable: each is a network namespace with an empty `/run`, an empty folder and a shell.
//!
//! Making namespaces needs root; if they cannot be made, a test prints this and passes. No packet leaves them.

use crate::page::first_missing;
use crate::router_process::NAMEWIRE;
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// Longer than any block takes, also on a busy machine. A fetch of one segment at a time takes most.
const PATIENCE: Duration = Duration::from_secs(300);

/// Every machine can reach every other by its name.
pub(crate) struct Machines {
    switch: String,
    machines: Vec<Machine>,
}

struct Machine {
    name: String,
    namespace: String,
    folder: tempfile::TempDir,
    shell: Child,
    /// Blocks that were typed.
    typed: usize,
    /// Bytes on the terminal before the last block.
    read: usize,
}

fn ip(arguments: &str) -> bool {
    let ran = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status();
    ran.is_ok_and(|status| status.success())
}

impl Machines {
    /// `None`, with a line that says so, where namespaces cannot be made.
    pub(crate) fn new(page: &str, names: &[&str], files: &[(&str, String)]) -> Option<Machines> {
        let switch = format!("nwg{}-{page}", std::process::id());
        if !ip(&format!("netns add {switch}")) {
            println!("skipped: namespaces cannot be made");
            return None;
        }
        let mut machines = Machines { switch, machines: Vec::new() };
        assert!(ip(&format!("-n {} link add lan type bridge", machines.switch)));
        assert!(ip(&format!("-n {} link set lan up", machines.switch)));
        let numbered: String = (1..).zip(names).map(|(number, name)| format!("192.0.2.{number} {name}\n")).collect();
        let hosts = format!("127.0.0.1 localhost\n{numbered}");
        for (number, name) in (1..).zip(names) {
            machines.add(name, number, &hosts, files);
        }
        Some(machines)
    }

    fn add(&mut self, name: &str, number: u8, hosts: &str, files: &[(&str, String)]) {
        let (switch, namespace) = (&self.switch, format!("{}-{name}", self.switch));
        for command in [
            format!("netns add {namespace}"),
            format!("-n {namespace} link set lo up"),
            format!("-n {switch} link add to{number} type veth peer name eth0 netns {namespace}"),
            format!("-n {switch} link set to{number} master lan up"),
            format!("-n {namespace} address add 192.0.2.{number}/24 dev eth0"),
            format!("-n {namespace} link set eth0 up"),
        ] {
            assert!(ip(&command), "ip {command}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        fs::write(file("hosts"), hosts).expect("a file");
        fs::create_dir(file("home")).expect("a folder");
        for (name, text) in files {
            let path = file("home").join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let shell = start_shell(&namespace, folder.path());
        self.machines.push(Machine { name: name.to_owned(), namespace, folder, shell, typed: 0, read: 0 });
    }

    fn machine(&mut self, name: &str) -> &mut Machine {
        self.machines.iter_mut().find(|machine| machine.name == name).expect("a machine of the page")
    }

    /// Types a block, and waits until its last command is done or in the background.
    pub(crate) fn type_block(&mut self, machine: &str, block: &str) {
        self.machine(machine).type_block(block);
    }

    /// Waits until the machine's terminal shows these lines, in this order, behind the last block.
    pub(crate) fn must_show(&mut self, machine: &str, expected: &str) {
        let machine = self.machine(machine);
        let end = Instant::now() + PATIENCE;
        while let Some(missing) = first_missing(expected, &machine.shown()) {
            assert!(Instant::now() < end, "{}: no line {missing:?} in\n{}", machine.name, machine.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A shell that reads commands from its standard input and ends at the first that fails.
fn start_shell(namespace: &str, folder: &Path) -> Child {
    let terminal = File::create(folder.join("terminal")).expect("a file");
    let programs = Path::new(NAMEWIRE).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    // `ip netns exec` gives the shell mounts of its own.
    let mounts = "mount -t tmpfs tmpfs /run && mount --bind ../hosts /etc/hosts && exec bash -e";
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "sh", "-c", mounts]).current_dir(folder.join("home"));
    command.env("PATH", path).env("HOME", folder.join("home"));
    for variable in ["NDN_CLIENT_TRANSPORT", "NDN_CLIENT_PIB", "NDN_CLIENT_TPM", "XDG_RUNTIME_DIR"] {
        command.env_remove(variable);
    }
    let output = terminal.try_clone().expect("a file");
    command.stdin(Stdio::piped()).stdout(output).stderr(terminal).spawn().expect("a shell")
}

impl Machine {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn terminal(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.file("terminal")).expect("a file")).into_owned()
    }

    fn shown(&self) -> String {
        self.terminal().get(self.read..).unwrap_or_default().to_owned()
    }

    fn type_block(&mut self, block: &str) {
        self.read = self.terminal().len();
        self.typed += 1;
        let (file, done) = (self.file("block"), self.file(&format!("done-{}", self.typed)));
        fs::write(&file, block).expect("a file");
        let line = format!(". {} </dev/null\n: > {}\n", file.display(), done.display());
        let input = self.shell.stdin.as_mut().expect("a pipe");
        // A shell that has ended is noticed below.
        let _ = input.write_all(line.as_bytes());
        let end = Instant::now() + PATIENCE;
        while !done.exists() {
            let ended = self.shell.try_wait().expect("a process");
            assert!(ended.is_none(), "{}: a command failed:\n{block}{}", self.name, self.shown());
            assert!(Instant::now() < end, "{}: it does not end:\n{block}{}", self.name, self.shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The shell, and everything that the page left running.
        let found = Command::new("ip").args(["netns", "pids", &self.namespace]).output().map(|output| output.stdout);
        let found = found.unwrap_or_default();
        let _ = Command::new("kill").arg("-KILL").args(String::from_utf8_lossy(&found).split_whitespace()).status();
        let _ = self.shell.wait();
        ip(&format!("netns delete {}", self.namespace));
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.machines.clear();
        ip(&format!("netns delete {}", self.switch));
    }
}
