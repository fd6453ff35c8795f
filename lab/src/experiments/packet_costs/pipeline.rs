//! In which part of the processor's pipeline does a packet lose its cycles?
//!
//! Source: Takemasa19 §3.2.1 and Tables 3.2-3.5, after Yasin's top-down analysis. In each cycle a core has a number of
//! slots for instructions. A slot is lost in the frontend (no instruction came), in the backend (the instruction waits)
//! or to speculation (the instruction was in vain), or an instruction retires in it. A stage's cycles are its share of
//! the slots times the cycles of the core. Codes are those of Linux' event lists (`tools/perf/pmu-events`).
//!
//! | processor | stages | waits for data | accesses by level |
//! | --- | --- | --- | --- |
//! | Intel since Ice Lake | topdown events | stalls while a load misses each level | retired loads |
//! | Intel Core before | slots issued and retired, fetch bubbles | not counted | retired loads |
//! | AMD since Zen 4 | dispatch slots | nothing retires, loads and others | fills by demand |
//!
//! Each group of events is requested separately: if the kernel or the processor refuses one group, the others are still
//! counted. Limits: never run on hardware counters by us, because our machines show none; the formulas are tested with
//! the thesis' numbers, the mechanism with software events. Timers that are due are not part of a batch here. A second
//! thread on the same core takes slots from what is counted on Intel before Ice Lake.

use std::path::Path;

use perf_event::events::Raw;

use namewire_engine::{BATCH_PACKETS, Frame, Schedule};
use namewire_tables::Fib;
use namewire_testbed::Worker;

use super::super::prefetch::forwarder::{Finding, Forwarder};
use super::{BATCHES_BY_NAME, BATCHES_OF_HITS, DATA, HIT, MISS, age_of_hits};
use crate::hardware_counters::{CounterGroup, EVENTS_MAX};
use crate::sample_table::SampleTable;

const SCHEDULES: [Schedule; 2] = [Schedule::Naive, Schedule::Vector];
const CYCLES: &str = "core cycles per packet";
const ACCESSES: &str = "accesses per packet";

/// Events that are counted at the same time, and what follows from them.
struct Question {
    /// The first one leads the group.
    events: &'static [u64],
    unit: &'static str,
    parts: &'static [&'static str],
    /// A value for each of the parts, of as many packets as were counted.
    values: fn(&[f64; EVENTS_MAX]) -> [f64; PARTS_MAX],
}

const PARTS_MAX: usize = 5;
const STAGES: &[&str] =
    &["pipeline: total", "pipeline: frontend", "pipeline: backend", "pipeline: speculation", "pipeline: retirement"];

/// Slots; of these retiring, in vain, lost in the frontend, lost in the backend; cycles.
const INTEL_TOPDOWN: Question = Question {
    events: &[0x0400, 0x8000, 0x8100, 0x8200, 0x8300, 0x003c],
    unit: CYCLES,
    parts: STAGES,
    values: |&[_, retired, in_vain, frontend, backend, cycles, ..]| {
        stages(cycles, [frontend, backend, in_vain, retired])
    },
};

/// Cycles, slots issued, slots retired, fetch bubbles, cycles of recovery.
const INTEL_SLOTS: Question = Question {
    events: &[0x003c, 0x010e, 0x02c2, 0x019c, 0x0100_030d],
    unit: CYCLES,
    parts: STAGES,
    values: |&[cycles, issued, retired, bubbles, recovery, ..]| {
        const WIDTH: f64 = 4.0;
        let in_vain = (issued - retired + WIDTH * recovery).max(0.0);
        let backend = (WIDTH * cycles - bubbles - in_vain - retired).max(0.0);
        stages(cycles, [bubbles, backend, in_vain, retired])
    },
};

/// Nothing executes while a load misses L1D, L2, L3.
const INTEL_STALLS: Question = Question {
    events: &[0x0c00_0ca3, 0x0500_05a3, 0x0600_06a3],
    unit: CYCLES,
    parts: &["stalls: L2", "stalls: L3", "stalls: DRAM"],
    values: |&[l1d_missed, l2_missed, l3_missed, ..]| {
        let of = |more: f64, less: f64| (more - less).max(0.0);
        [of(l1d_missed, l2_missed), of(l2_missed, l3_missed), l3_missed, 0.0, 0.0]
    },
};

/// Nothing executes while the store buffer is full and no load waits.
const INTEL_STORES: Question = Question {
    events: &[0x0200_40a6],
    unit: CYCLES,
    parts: &["stalls: store"],
    values: |&[stores, ..]| [stores, 0.0, 0.0, 0.0, 0.0],
};

/// Retired loads: found in L1D, L2, L3.
const INTEL_HITS: Question = Question {
    events: &[0x01d1, 0x02d1, 0x04d1],
    unit: ACCESSES,
    parts: &["loads: L1D", "loads: L2", "loads: L3"],
    values: |&[l1d, l2, l3, ..]| [l1d, l2, l3, 0.0, 0.0],
};

/// Retired loads: not found in L3; found on their way to L1D, because a prefetch or another load had asked.
const INTEL_MISSES: Question = Question {
    events: &[0x20d1, 0x40d1],
    unit: ACCESSES,
    parts: &["loads: DRAM", "loads: on their way"],
    values: |&[dram, on_their_way, ..]| [dram, on_their_way, 0.0, 0.0, 0.0],
};

/// Cycles, operations retired, operations dispatched, slots that the frontend and that the backend left empty. Slots
/// that the other thread of the core took are none of ours.
const AMD_SLOTS: Question = Question {
    events: &[0x0076, 0x00c1, 0x07aa, 0x1_0000_01a0, 0x1_0000_1ea0],
    unit: CYCLES,
    parts: STAGES,
    values: |&[cycles, retired, dispatched, frontend, backend, ..]| {
        stages(cycles, [frontend, backend, (dispatched - retired).max(0.0), retired])
    },
};

/// Cycles in which nothing retires because an operation has not finished; the same if it is a load.
const AMD_STALLS: Question = Question {
    events: &[0x02d6, 0xa2d6],
    unit: CYCLES,
    parts: &["nothing retires", "nothing retires: load"],
    values: |&[all, loads, ..]| [all, loads, 0.0, 0.0, 0.0],
};

/// Lines that a load or store brought into L1D: from L2, from L3 or another cache, from memory.
const AMD_FILLS: Question = Question {
    events: &[0x0143, 0x1643, 0x4843],
    unit: ACCESSES,
    parts: &["fills: L2", "fills: L3 or other caches", "fills: DRAM"],
    values: |&[l2, caches, dram, ..]| [l2, caches, dram, 0.0, 0.0],
};

/// Total cycles, then each stage's share of the slots.
fn stages(cycles: f64, slots: [f64; 4]) -> [f64; PARTS_MAX] {
    let all: f64 = slots.iter().sum();
    let [frontend, backend, speculation, retirement] = slots.map(|slots| cycles * slots / all.max(1.0));
    [cycles, frontend, backend, speculation, retirement]
}

/// What this processor can answer; nothing if we know no events of it.
fn questions() -> &'static [Question] {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // Of hybrid processors, the unit has another name; their smaller cores have other codes.
    let events = Path::new("/sys/bus/event_source/devices/cpu/events");
    questions_of(&processor, |event| std::fs::read_to_string(events.join(event)).ok())
}

/// `code` is what the kernel says of an event of that name.
fn questions_of(processor: &str, code: impl Fn(&str) -> Option<String>) -> &'static [Question] {
    let is = |event: &str, expected: &str| code(event).is_some_and(|code| code.trim() == expected);
    if is("slots", "event=0x00,umask=0x4") {
        return &[INTEL_TOPDOWN, INTEL_STALLS, INTEL_STORES, INTEL_HITS, INTEL_MISSES];
    }
    if is("topdown-slots-issued", "event=0xe,umask=0x1") && is("topdown-slots-retired", "event=0xc2,umask=0x2") {
        return &[INTEL_SLOTS, INTEL_HITS, INTEL_MISSES];
    }
    if processor.contains("AuthenticAMD") && processor.contains(" perfmon_v2") {
        return &[AMD_SLOTS, AMD_STALLS, AMD_FILLS];
    }
    &[]
}

/// Adds the parts of each kind of packet, in both schedules; rows that cannot be counted say why. Returns the first
/// reason.
///
/// # Errors
/// If an engine fails.
pub(super) fn measure(
    forwarder: &mut Forwarder,
    fib: &Fib,
    slices: usize,
    table: &mut SampleTable,
) -> anyhow::Result<Option<String>> {
    let questions = questions();
    if questions.is_empty() {
        let reason = "the kernel describes no pipeline events of this processor that we know".to_owned();
        refuse(&[STAGES[0]], CYCLES, &reason, table);
        return Ok(Some(reason));
    }
    let mut first_reason = None;
    for question in questions {
        if let Err(reason) = ask(question, forwarder, fib, slices, table)? {
            refuse(question.parts, question.unit, &reason, table);
            first_reason.get_or_insert(reason);
        }
    }
    Ok(first_reason)
}

/// The inner error is the reason why the processor did not count.
fn ask(
    question: &Question,
    forwarder: &mut Forwarder,
    fib: &Fib,
    slices: usize,
    table: &mut SampleTable,
) -> anyhow::Result<Result<(), String>> {
    let events: Vec<Raw> = question.events.iter().map(|&event| Raw::new(event)).collect();
    let mut group = match CounterGroup::open(&events) {
        Ok(group) => group,
        Err(refused) => return Ok(Err(refused.to_string())),
    };
    let mut refused = None;
    for (slice, schedule) in (0..slices).flat_map(|slice| SCHEDULES.map(|schedule| (slice, schedule))) {
        forwarder.set_schedule(schedule);
        let mut decide = |mut worker: Worker<'_>, frames: &mut [Frame<'_>]| {
            let counts = group.count(|| worker.process(frames));
            Ok(counts.unwrap_or_else(|reason| {
                refused = Some(reason.to_string());
                [0; EVENTS_MAX]
            }))
        };
        forwarder.prepare(BATCHES_BY_NAME, Finding::Name);
        let by_name = forwarder.run_prepared_by(fib, BATCH_PACKETS, &mut decide)?;
        let hits =
            forwarder.hits_by(fib, BATCH_PACKETS, BATCHES_OF_HITS, age_of_hits(forwarder, slice), &mut decide)?;
        for (case, batches) in [(MISS, by_name.interests), (HIT, hits), (DATA, by_name.data)] {
            let packets = (batches.len() * BATCH_PACKETS) as f64;
            let mut sums = [0.0; EVENTS_MAX];
            for counts in &batches {
                sums.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += count as f64 / packets);
            }
            for (&part, value) in question.parts.iter().zip((question.values)(&sums)) {
                table.add(case, schedule.name(), part, question.unit, value);
            }
        }
    }
    Ok(refused.map_or(Ok(()), Err))
}

fn refuse(parts: &[&'static str], unit: &'static str, reason: &str, table: &mut SampleTable) {
    for case in [MISS, HIT, DATA] {
        for schedule in SCHEDULES {
            parts.iter().for_each(|part| table.samples(case, schedule.name(), part, unit).refuse(reason.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(question: &Question, counts: &[f64]) -> Vec<f64> {
        assert_eq!(question.events.len(), counts.len());
        let mut all = [0.0; EVENTS_MAX];
        all[..counts.len()].copy_from_slice(counts);
        (question.values)(&all)[..question.parts.len()].to_vec()
    }

    /// The first column of Takemasa19 Tables 3.2 and 3.4, counted in slots of a core that has four in a cycle.
    #[test]
    fn the_thesis_own_packet() {
        let stages = [1470.0, 161.0, 662.0, 161.0, 486.0];
        let [cycles, frontend, backend, speculation, retirement] = stages.map(|cycles| 4.0 * cycles);
        let close = |ours: Vec<f64>, paper: &[f64]| {
            assert_eq!(ours.len(), paper.len());
            assert!(ours.iter().zip(paper).all(|(ours, paper)| (ours - paper).abs() < 1e-6), "{ours:?}");
        };
        close(values(&INTEL_TOPDOWN, &[cycles, retirement, speculation, frontend, backend, 1470.0]), &stages);
        close(values(&AMD_SLOTS, &[1470.0, retirement, retirement + speculation, frontend, backend]), &stages);
        let recovery = 10.0;
        let issued = retirement + speculation - 4.0 * recovery;
        close(values(&INTEL_SLOTS, &[1470.0, issued, retirement, frontend, recovery]), &stages);
        close(values(&INTEL_STALLS, &[479.0, 479.0, 460.0]), &[0.0, 19.0, 460.0]);
    }

    #[test]
    fn each_processor_has_its_own_events() {
        let first = |processor: &str, named: &[(&str, &str)]| {
            let code = |event: &str| named.iter().find(|(name, _)| *name == event).map(|(_, code)| (*code).to_owned());
            questions_of(processor, code).first().map(|question| question.events[0])
        };
        let issued =
            [("topdown-slots-issued", "event=0xe,umask=0x1"), ("topdown-slots-retired", "event=0xc2,umask=0x2")];
        assert_eq!(first("GenuineIntel", &[("slots", "event=0x00,umask=0x4\n")]), Some(INTEL_TOPDOWN.events[0]));
        assert_eq!(first("GenuineIntel", &issued), Some(INTEL_SLOTS.events[0]));
        assert_eq!(first("AuthenticAMD\nflags: amd perfmon_v2", &[]), Some(AMD_SLOTS.events[0]));
        // Atom cores have events of these names with other codes.
        let of_atom = [("topdown-slots-issued", "event=0xc2,umask=0x00"), issued[1]];
        for (processor, named) in [("GenuineIntel", &of_atom[..]), ("AuthenticAMD\nflags: amd", &[]), ("", &[])] {
            assert_eq!(first(processor, named), None, "{processor}");
        }
    }

    #[test]
    fn a_refused_question_keeps_the_answers_to_the_others() {
        let mut table = SampleTable::default();
        table.add(MISS, "naive", STAGES[0], CYCLES, 1.0);
        refuse(INTEL_STORES.parts, CYCLES, "no such event", &mut table);
        let rows = table.rows();
        assert_eq!((rows.len(), rows[0].refused.as_deref()), (7, None));
        assert!(rows[1..].iter().all(|row| row.refused.as_deref() == Some("no such event")));
    }
}
