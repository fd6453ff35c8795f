//! Question: can sync Interests of anybody make a member of a sync group panic, exceed its limits, or say something
//! that it would not understand itself? And does a backlog keep its window, whatever numbers they announce?
//!
//! Input: the version and the number of members' sync Interests, each with its time and its parameters.
#![no_main]

use libfuzzer_sys::{arbitrary::Unstructured, fuzz_target};
use namewire_client::sync::{
    Version,
    backlog::{Backlog, WINDOW},
    group::{Group, Limits, Now},
    vector::StateVector,
    wire::{read_parameters, read_vector, write_vector},
};

const PRODUCERS_MAX: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let version = if input.arbitrary().unwrap_or(false) { Version::V3 } else { Version::V2 };
    let mut now = Now { monotonic_ms: 0, unix_s: 1_700_000_000 };
    let mut group = Group::new(version, Limits::of(version), StateVector::default(), now);
    let (mut packet, mut producers) = (0, 0);
    // Without input, numbers are 0 for ever.
    while !input.is_empty() {
        let Ok(length) = input.arbitrary::<u16>() else { return };
        let Ok(wait_ms) = input.arbitrary::<u16>() else { return };
        let length = usize::from(length).min(input.len());
        let Ok(parameters) = input.bytes(length) else { return };
        now.monotonic_ms += u64::from(wait_ms);
        packet += 1;
        let admit = || {
            producers += 1;
            producers <= PRODUCERS_MAX
        };
        if let Ok(received) = group.on_interest(parameters, now, f64::from(packet % 10) / 10.0, admit) {
            let theirs = read_parameters(version, parameters).expect("it was taken");
            let mut written = Vec::new();
            write_vector(version, &theirs, &mut written);
            assert_eq!(read_vector(version, &written), Ok(theirs));
            for news in received.news {
                assert!(news.first >= 1 && news.first <= news.last);
                let mut backlog = Backlog::new(news.first - 1);
                backlog.learn(news.last);
                assert!(std::iter::from_fn(|| backlog.next(0)).count() as u64 <= WINDOW);
            }
        }
        assert!(group.vector().len() <= PRODUCERS_MAX);
        if now.monotonic_ms >= group.timer_ms() {
            for ours in group.on_timer(now, 0.5) {
                assert!(read_parameters(version, &ours).is_ok());
            }
        }
    }
});
