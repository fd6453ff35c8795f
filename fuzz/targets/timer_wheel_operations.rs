//! Question: does the timer wheel fire every timer, none early and none more than one tick late?
//!
//! Input: a tick, and a list of operations on sixteen timers. A map is the model.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::{
    arbitrary::{self, Arbitrary},
    fuzz_target,
};
use namewire_tables::{PageSize, TimerWheel};

#[derive(Arbitrary, Debug)]
enum Operation {
    Arm {
        id: u8,
        after_ns: u16,
    },
    ArmFar {
        id: u8,
        after_ns: u32,
    },
    ArmPast {
        id: u8,
        before_ns: u16,
    },
    Disarm {
        id: u8,
    },
    Advance {
        by_ns: u16,
    },
    Jump {
        by_ns: u32,
    },
    /// Looks at and fires only some of the timers, then arms another in between.
    Interrupted {
        by_ns: u16,
        pops: u8,
        id: u8,
        after_ns: u8,
    },
}

const TIMERS: u32 = 16;

struct Checked {
    wheel: TimerWheel,
    deadlines: BTreeMap<u32, u64>,
    tick_ns: u64,
    now_ns: u64,
}

impl Checked {
    fn arm(&mut self, id: u8, deadline_ns: u64) {
        let id = u32::from(id) % TIMERS;
        self.wheel.arm(id, deadline_ns);
        self.deadlines.insert(id, deadline_ns);
        assert!(self.wheel.is_armed(id));
    }

    fn fire_one(&mut self, visits: &mut u32) -> bool {
        let Some(id) = self.wheel.pop_expired(self.now_ns, visits) else { return false };
        let deadline_ns = self.deadlines.remove(&id).expect("fired, but was not armed");
        assert!(deadline_ns <= self.now_ns, "timer {id} fired early");
        true
    }

    fn fire_all(&mut self) {
        let mut visits = u32::MAX;
        while self.fire_one(&mut visits) {}
        let this_tick = self.now_ns / self.tick_ns;
        for (id, deadline_ns) in &self.deadlines {
            assert!(deadline_ns.div_ceil(self.tick_ns) > this_tick, "timer {id} did not fire");
        }
    }

    fn check(&self) {
        assert_eq!(self.wheel.len(), self.deadlines.len());
        let first_due = self.deadlines.values().map(|ns| ns.div_ceil(self.tick_ns).saturating_mul(self.tick_ns)).min();
        match (self.wheel.next_deadline(), first_due) {
            (None, None) => {}
            (Some(next), Some(due)) => assert!(next <= due.max(self.now_ns), "next deadline {next} is after {due}"),
            (next, due) => panic!("next deadline {next:?}, first timer {due:?}"),
        }
    }
}

fuzz_target!(|input: (u8, Vec<Operation>)| {
    let (tick, operations) = input;
    let tick_ns = u64::from(tick) + 1;
    let wheel = TimerWheel::new(tick_ns, 0, TIMERS, PageSize::Base).unwrap();
    let mut checked = Checked { wheel, deadlines: BTreeMap::new(), tick_ns, now_ns: 0 };
    for operation in operations {
        let now_ns = checked.now_ns;
        match operation {
            Operation::Arm { id, after_ns } => checked.arm(id, now_ns + u64::from(after_ns)),
            Operation::ArmFar { id, after_ns } => checked.arm(id, now_ns + u64::from(after_ns)),
            Operation::ArmPast { id, before_ns } => checked.arm(id, now_ns.saturating_sub(u64::from(before_ns))),
            Operation::Disarm { id } => {
                let id = u32::from(id) % TIMERS;
                assert_eq!(checked.wheel.disarm(id), checked.deadlines.remove(&id).is_some());
            }
            Operation::Advance { by_ns } => {
                checked.now_ns += u64::from(by_ns);
                checked.fire_all();
            }
            Operation::Jump { by_ns } => {
                checked.now_ns += u64::from(by_ns);
                checked.fire_all();
            }
            Operation::Interrupted { by_ns, pops, id, after_ns } => {
                checked.now_ns += u64::from(by_ns);
                let mut visits = u32::from(pops >> 2);
                for _ in 0..pops % 4 {
                    checked.fire_one(&mut visits);
                }
                checked.arm(id, checked.now_ns + u64::from(after_ns));
            }
        }
        checked.check();
    }
    checked.now_ns += u64::from(u32::MAX) + 256;
    checked.fire_all();
    assert!(checked.wheel.is_empty());
});
