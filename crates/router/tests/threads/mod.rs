//! The kernel's counts of this process's threads.

use std::{fs, ops::AddAssign, path::PathBuf, time::Duration};

/// What threads have done since they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Times that they went to sleep. Unlike time, it is the same on a loaded machine.
    pub(crate) wake_ups: u64,
    /// Time that they have run.
    pub(crate) time: Duration,
}

/// The `/proc` directories of threads whose names begin with `name`.
pub(crate) fn tasks(name: &str) -> Vec<PathBuf> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with(name))).collect()
}

impl Work {
    /// The sum over all threads whose names begin with `name`; none may end meanwhile.
    pub(crate) fn of(name: &str) -> Self {
        let mut sum = Work::default();
        for task in tasks(name) {
            let status = fs::read_to_string(task.join("status")).unwrap();
            let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum.wake_ups += switches.and_then(|count| count.trim().parse::<u64>().ok()).expect("switches");
            let stat = fs::read_to_string(task.join("schedstat")).unwrap();
            let ns = stat.split(' ').next().and_then(|field| field.parse().ok()).expect("schedstat");
            sum.time.add_assign(Duration::from_nanos(ns));
        }
        sum
    }

    /// The work since `before`.
    pub(crate) fn since(self, before: Work) -> Work {
        Work { wake_ups: self.wake_ups - before.wake_ups, time: self.time - before.time }
    }
}
