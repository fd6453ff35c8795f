//! The kernel refuses memory to a FIB of every design. The test runs in a separate process, because the limit holds for
//! the whole process.

use namewire_designs::fib::catalogue::{FibDesign, FibDesignOptions};
use namewire_tables::{FibConfig, FibRefusal, HashKey, NextHop, head_room::RESERVE_BYTES};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The memory left for the table, beside the reserve.
const SPARE_BYTES: u64 = 6 << 20;
const MANY: u64 = 200_000;

fn name(number: u64) -> Vec<u8> {
    [&[8, 3][..], &number.to_be_bytes()[5..], &[8, 8], &number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()]
        .concat()
}

fn hop(number: u64) -> [NextHop; 1] {
    [NextHop { face: number % 3000, cost: 0 }] // sets grow as well
}

fn address_space_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

/// Without the check, sbpt, fpt and fht ended the process.
#[test]
fn every_design_refuses_by_name_and_goes_on() {
    let before = getrlimit(Resource::As);
    for design in FibDesign::ALL {
        let key = HashKey::from_seed(1);
        let mut fib = design.fib(&FibDesignOptions::default(), FibConfig::new(MANY as usize), key).unwrap();
        let limit = address_space_bytes() + RESERVE_BYTES as u64 + SPARE_BYTES;
        setrlimit(Resource::As, Rlimit { current: Some(limit), ..before }).unwrap();
        let mut refused = None;
        for number in 0..MANY {
            if let Err(refusal) = fib.insert(&name(number), &hop(number), 7, false) {
                refused = Some((number, refusal));
                break;
            }
        }
        let again = fib.insert(&name(MANY), &hop(0), 7, false);
        let (taken, refusal) = refused.unwrap_or((MANY, FibRefusal::Full));
        let removed = fib.remove(&name(0));
        // A rule above all others moves every rule of a lossy design.
        let above = design.is_lossless() || fib.insert(&[], &hop(1), 7, false) == Err(FibRefusal::NoMemory);
        setrlimit(Resource::As, before).expect("the hard limit was not touched");
        eprintln!("{}: {taken} prefixes, then {refusal:?}", design.name());
        // The router's own tables have all their room from the start, except the index, which is small
        // here.
        if design.search().is_none() {
            assert_eq!((refusal, again), (FibRefusal::NoMemory, Err(FibRefusal::NoMemory)), "{}", design.name());
            assert!(taken > 100 && above, "{}: {taken}", design.name());
        }
        assert_eq!(removed, Ok(true), "{}", design.name());
        for number in 1..taken {
            let found = fib.get(&name(number)).map(|found| found.nexthops[0]);
            assert_eq!(found, Some(hop(number)[0]), "{} {number}", design.name());
        }
        if taken < MANY {
            assert!(fib.insert(&name(taken), &hop(taken), 7, false).is_ok(), "{}: with memory", design.name());
        }
    }
}
