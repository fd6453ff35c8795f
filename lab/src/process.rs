//! A child process under measurement: its processor, its resources, and its end.
//!
//! Source of the figures: `/proc/PID/task/*/schedstat` (nanoseconds on a
//! processor, user and system together, per thread) and `/proc/PID/status`
//! (resident memory). Limits: threads that ended before a reading are not counted, and the account of a running thread
//! lags by up to one timer tick (see [`crate::clock::resolve_cpu_account`]).

use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::interrupt;

/// Time between two looks of a waiting loop.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// A child process that ends with this value.
#[derive(Debug)]
pub struct BoundProcess {
    child: Child,
}

impl BoundProcess {
    /// Starts `command`, pinned to processor `cpu` if given.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(command: &mut Command, cpu: Option<usize>) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut start = || command.spawn().with_context(|| format!("cannot start {program}"));
        let child = match cpu {
            Some(cpu) => on_cpu(cpu, start)?,
            None => start(),
        }?;
        Ok(Self { child })
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, once the process has ended.
    ///
    /// # Errors
    /// If the system cannot say.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for the end and returns the output; only pipes are collected.
    ///
    /// # Errors
    /// After `limit`, or on an interrupt; the process is killed then.
    pub fn output(mut self, limit: Duration) -> anyhow::Result<Output> {
        let deadline = Instant::now() + limit;
        let (mut stdout, mut stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let collect = |pipe: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // A broken pipe has already delivered everything.
                let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
                bytes
            })
        };
        let stdout = collect(stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = collect(stderr.take().map(|pipe| Box::new(pipe) as _));
        let status = loop {
            interrupt::check()?;
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            anyhow::ensure!(Instant::now() < deadline, "process {} ran longer than {limit:?}", self.id());
            std::thread::sleep(POLL_INTERVAL);
        };
        let joined = |reader: std::thread::JoinHandle<Vec<u8>>| {
            reader.join().map_err(|_| anyhow::anyhow!("the reader of a pipe failed"))
        };
        Ok(Output { status, stdout: joined(stdout)?, stderr: joined(stderr)? })
    }
}

impl Drop for BoundProcess {
    /// Sends SIGTERM, so that the process can remove its sockets, then SIGKILL.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let deadline = Instant::now() + GRACE;
            while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(POLL_INTERVAL);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processors for the process under test and for the load; `None` if there is only one.
pub fn processors_to_pin() -> Option<(usize, usize)> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    Some((cpus.next()?, cpus.next()?))
}

/// Pins this thread to processor number `place` of the allowed ones, modulo their number. If the kernel refuses, the
/// thread stays where it is.
pub fn run_on_processor(place: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let mut only = CpuSet::new();
    only.set(cpus[place % cpus.len()]);
    let _ = sched_setaffinity(None, &only);
}

/// Runs `start` while this thread is pinned to processor `cpu`. A child inherits the pin before its first instruction;
/// pinning it later would miss the first ones.
pub(crate) fn on_cpu<T>(cpu: usize, start: impl FnOnce() -> T) -> anyhow::Result<T> {
    let before = sched_getaffinity(None)?;
    stay_on(cpu)?;
    let result = start();
    sched_setaffinity(None, &before)?;
    Ok(result)
}

/// Pins the calling thread to processor `cpu`.
///
/// # Errors
/// If the system does not allow it.
pub fn stay_on(cpu: usize) -> anyhow::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Nanoseconds that all living threads of process `pid` spent on processors.
pub fn cpu_time_ns(pid: u32) -> Option<u64> {
    let mut total_ns = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // A thread may end between the listing and the reading.
        let Ok(text) = std::fs::read_to_string(task.ok()?.path().join("schedstat")) else { continue };
        total_ns += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(total_ns)
}

/// Resident memory of process `pid` now, in KiB.
pub fn resident_kib(pid: u32) -> Option<u64> {
    status_field_kib(pid, "VmRSS:")
}

/// Highest resident memory of process `pid` so far, in KiB.
pub fn resident_kib_max(pid: u32) -> Option<u64> {
    status_field_kib(pid, "VmHWM:")
}

/// Explicit huge pages that the process has; `None` if the system does not say.
pub fn huge_pages_kib(pid: u32) -> Option<u64> {
    status_field_kib(pid, "HugetlbPages:")
}

fn status_field_kib(pid: u32, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures a child with one thread: in the test process, other tests start and end threads.
    #[test]
    fn the_account_of_a_process_grows_with_work() -> anyhow::Result<()> {
        let process = BoundProcess::start(Command::new("sh").args(["-c", "while :; do :; done"]), None)?;
        let pid = process.id();
        let before_ns = cpu_time_ns(pid).expect("Linux keeps schedstat");
        let started = Instant::now();
        let worked = || cpu_time_ns(pid).is_some_and(|after_ns| after_ns >= before_ns + 10_000_000);
        while !worked() {
            assert!(started.elapsed() < Duration::from_secs(20), "{before_ns} then {:?}", cpu_time_ns(pid));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(resident_kib(pid).is_some_and(|kib| kib > 100));
        assert!(resident_kib_max(pid) >= resident_kib(pid));
        Ok(())
    }

    #[test]
    fn a_dropped_process_is_gone() -> anyhow::Result<()> {
        let process = BoundProcess::start(Command::new("sleep").arg("60"), None)?;
        let pid = process.id();
        assert!(resident_kib(pid).is_some());
        drop(process);
        assert!(resident_kib(pid).is_none());
        Ok(())
    }

    #[test]
    fn output_is_collected_and_a_late_process_is_killed() -> anyhow::Result<()> {
        let mut echo = Command::new("echo");
        echo.arg("seen").stdout(std::process::Stdio::piped());
        let output = BoundProcess::start(&mut echo, None)?.output(Duration::from_secs(5))?;
        assert_eq!(output.stdout, b"seen\n");
        let late = BoundProcess::start(Command::new("sleep").arg("60"), None)?;
        assert!(late.output(Duration::from_millis(20)).is_err());
        Ok(())
    }
}
