//! Which processors do the workers run on, and does another thread want the one of this thread?
//!
//! A worker that looks for packets instead of sleeping holds a processor that another thread may need. So looks are off
//! where a worker surely shares its processor ([`why_not_to_look`]). Elsewhere, the kernel's count of involuntary
//! switches shows whether another thread took the processor ([`Switches`]).
//!
//! Limits: a quota or an affinity that changes later is not noticed, but a thread that the kernel throttles is switched
//! involuntarily too.

use nix::sys::resource::{UsageWho, getrusage};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::{fmt, fs, thread};

/// Why workers do not look for packets, unless a setting says for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// The machine has one processor: while a worker looks, no application can send.
    OneProcessor,
    /// The process has a quota of processor time (cgroups), which looking would use up.
    Quota,
    /// Several workers share a processor.
    SharedByWorkers,
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WhyNot::OneProcessor => "the machine has one processor",
            WhyNot::Quota => "this process has a quota of processor time",
            WhyNot::SharedByWorkers => "workers share a processor",
        })
    }
}

/// What the system says of processors.
#[derive(Clone, Copy, Debug)]
struct Processors {
    /// The machine has several.
    are_several: bool,
    /// Those that this process may use.
    usable: usize,
    /// For how many of them its quota is enough.
    affordable: usize,
}

impl Processors {
    fn of_this_process() -> Self {
        let usable = sched_getaffinity(None)
            .map_or(1, |usable| (0..CpuSet::MAX_CPU).filter(|&processor| usable.is_set(processor)).count());
        // The standard library reads the quotas of cgroups, versions 1 and 2.
        let affordable = thread::available_parallelism().map_or(usable, usize::from);
        // As `0-3`, or `0,2`. Where it cannot be read, other limits protect the other threads.
        let online = fs::read_to_string("/sys/devices/system/cpu/online");
        let are_several = online.map_or(true, |online| online.contains(['-', ',']));
        Processors { are_several, usable, affordable }
    }

    fn why_not_to_look(self, workers: usize, pin: &[usize]) -> Option<WhyNot> {
        let shares_pin = pin.iter().enumerate().any(|(worker, processor)| pin[..worker].contains(processor));
        match () {
            () if !self.are_several => Some(WhyNot::OneProcessor),
            () if self.affordable < self.usable => Some(WhyNot::Quota),
            () if shares_pin || workers > self.usable => Some(WhyNot::SharedByWorkers),
            () => None,
        }
    }
}

/// Why `workers` workers, on the processors `pin` if there are any, should sleep as soon as they have no packets.
/// `None` if nothing speaks against looking.
///
/// N.B. A process that may use one processor of several does look: its applications may run on the others, as with
/// `taskset`, and with a load generator beside it. If they share the processor, looks find nothing and cease.
pub(crate) fn why_not_to_look(workers: usize, pin: &[usize]) -> Option<WhyNot> {
    Processors::of_this_process().why_not_to_look(workers, pin)
}

/// The switches of the calling thread to another one while it could have gone on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches(i64);

impl Switches {
    /// True if there were some since the last call. One system call.
    pub(crate) fn are_new(&mut self) -> bool {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return false };
        let now = usage.involuntary_context_switches();
        std::mem::replace(&mut self.0, now) != now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Processors = Processors { are_several: true, usable: 4, affordable: 4 };

    #[test]
    fn workers_look_where_each_has_a_processor() {
        assert_eq!(FREE.why_not_to_look(4, &[]), None);
        assert_eq!(FREE.why_not_to_look(2, &[3, 1]), None);
        let on_one_of_several = Processors { usable: 1, affordable: 1, ..FREE };
        assert_eq!(on_one_of_several.why_not_to_look(1, &[]), None);
    }

    #[test]
    fn workers_do_not_look_where_they_share() {
        let alone = Processors { are_several: false, usable: 1, affordable: 1 };
        assert_eq!(alone.why_not_to_look(1, &[]), Some(WhyNot::OneProcessor));
        assert_eq!(FREE.why_not_to_look(5, &[]), Some(WhyNot::SharedByWorkers));
        assert_eq!(FREE.why_not_to_look(3, &[2, 0, 2]), Some(WhyNot::SharedByWorkers));
        assert_eq!(Processors { affordable: 3, ..FREE }.why_not_to_look(1, &[]), Some(WhyNot::Quota));
    }

    /// Whatever the machine does, the count only grows, and a thread that gives way to another is counted.
    #[test]
    fn a_thread_that_another_one_displaces_notices() {
        let pinned = thread::spawn(|| {
            let usable = sched_getaffinity(None).expect("Linux");
            let first = (0..CpuSet::MAX_CPU).find(|&processor| usable.is_set(processor)).expect("it runs");
            let mut only = CpuSet::new();
            only.set(first);
            rustix::thread::sched_setaffinity(None, &only).expect("one of the usable ones");
            let mut switches = Switches::default();
            switches.are_new();
            // Started here, the other thread has the same processor.
            let other =
                thread::spawn(|| (0..200_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number)));
            while !switches.are_new() && !other.is_finished() {
                thread::yield_now();
            }
            let is_noticed = !other.is_finished();
            other.join().expect("it only counts");
            is_noticed
        });
        assert!(pinned.join().expect("no assertion inside"));
    }
}
