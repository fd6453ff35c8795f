//! The processor's event counters, read around a piece of code.
//!
//! Question answered: how often did these events happen in this thread while the code ran in user mode? All events of a
//! group are counted at the same time; a group that had to share the counters with others refuses to answer.
//!
//! Source: `perf_event_open(2)`. Event codes are those of the processor, in the form of the kernel's raw events:
//! event | unit mask << 8 | counter mask << 24. Cost: four system calls for each piece of code. Limits: most virtual
//! machines have no counters; `kernel.perf_event_paranoid` may forbid them.

use std::fmt;
use std::io;

use perf_event::events::Event;
use perf_event::{Builder, Counter, Group, ReadFormat};

/// Most events of a group.
pub const EVENTS_MAX: usize = 8;

/// Why there is no count.
#[derive(Debug)]
pub struct NotCounted(String);

impl fmt::Display for NotCounted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "perf_event_open: {}", self.0)
    }
}

impl std::error::Error for NotCounted {}

impl From<io::Error> for NotCounted {
    fn from(error: io::Error) -> Self {
        Self(match error.kind() {
            io::ErrorKind::NotFound => "this processor shows us no hardware counters".to_owned(),
            io::ErrorKind::PermissionDenied => "forbidden; see kernel.perf_event_paranoid".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// Counters that count together.
pub struct CounterGroup {
    leader: Group,
    others: Vec<Counter>,
}

impl CounterGroup {
    /// Opens counters of this thread in user mode. The first event leads the group.
    ///
    /// # Errors
    /// If the kernel refuses one of them.
    pub fn open<E: Event + Copy>(events: &[E]) -> Result<Self, NotCounted> {
        assert!((1..=EVENTS_MAX).contains(&events.len()));
        let format =
            ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        let mut leader = Builder::new(events[0]).read_format(format).build_group()?;
        let others: io::Result<Vec<Counter>> =
            events[1..].iter().map(|&event| Builder::new(event).build_with_group(&mut leader)).collect();
        let others = others?;
        Ok(Self { leader, others })
    }

    /// Runs `code`; returns the events in the order in which they were given, then zeros.
    ///
    /// # Errors
    /// If the counters were not this group's own all the time.
    pub fn count(&mut self, code: impl FnOnce()) -> Result<[u64; EVENTS_MAX], NotCounted> {
        self.leader.reset()?;
        self.leader.enable()?;
        code();
        self.leader.disable()?;
        let after = self.leader.read()?;
        if after.time_running() != after.time_enabled() {
            return Err(NotCounted("other programs use the counters".to_owned()));
        }
        let counters = std::iter::once(self.leader.as_counter()).chain(&self.others);
        let mut counts = [0; EVENTS_MAX];
        for (count, counter) in counts.iter_mut().zip(counters) {
            *count = after.get(counter).ok_or_else(|| NotCounted("a counter is missing".to_owned()))?.value();
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use perf_event::events::Software;

    use super::*;

    /// More than an allocator keeps for the next one.
    const PAGES: usize = 1 << 14;

    fn touch_new_pages() {
        let mut memory = vec![0_u8; PAGES << 12];
        memory.iter_mut().step_by(1 << 12).for_each(|byte| *byte = 1);
        std::hint::black_box(memory);
    }

    /// Software events go through the same calls, and virtual machines have them.
    #[test]
    fn a_group_counts_what_happens_in_the_code() {
        match CounterGroup::open(&[Software::PAGE_FAULTS, Software::ALIGNMENT_FAULTS]) {
            Ok(mut group) => {
                let [faults, alignment, ..] = group.count(touch_new_pages).unwrap();
                assert_eq!(alignment, 0);
                let [fewer, ..] = group.count(|| {}).unwrap();
                assert!(fewer < faults, "{fewer} and {faults}: an old count is not counted again");
            }
            Err(refused) => assert!(refused.to_string().starts_with("perf_event_open: "), "{refused}"),
        }
    }
}
