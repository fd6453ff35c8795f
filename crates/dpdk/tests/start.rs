//! The start and the end of DPDK, invalid devices, and devices that only receive.
#![cfg(feature = "dpdk")]

mod dpdk_process;

use std::io::ErrorKind;
use std::sync::Arc;

use namewire_dpdk::{Eal, Port, PortOptions};

#[test]
fn dpdk_starts_once_and_refuses_with_a_reason() {
    wrong_options_are_errors();
    let cpus = rustix::thread::sched_getaffinity(None).expect("the CPUs");
    let Some(eal) = dpdk_process::start() else { return };
    assert_eq!(rustix::thread::sched_getaffinity(None).expect("the CPUs"), cpus, "as before");
    assert_eq!(Eal::init(&[]).expect_err("DPDK runs").kind(), ErrorKind::AlreadyExists);

    wrong_devices_are_errors(&eal);
    a_device_that_only_receives(&eal);
    frames_with_impossible_lengths_are_dropped(&eal);
    a_pool_is_used_again(&eal);
    drop(eal);
    assert_eq!(Eal::init(&[]).expect_err("DPDK does not start twice").kind(), ErrorKind::AlreadyExists);
}

fn wrong_options_are_errors() {
    for wrong in [vec!["--help"], vec!["--no-such-option"], vec!["--lcores=x"]] {
        let args: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        let error = Eal::init(&args).expect_err("refused");
        println!("{wrong:?}: {error}");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong:?}");
    }
}

fn wrong_devices_are_errors(eal: &Arc<Eal>) {
    for wrong in ["", ",", "nonsense", "net_nonsense0", "0000:ff:1f.7", "net_null0,size=x", "net_null0\0"] {
        let error = Port::open(eal, wrong, &PortOptions::default()).expect_err(wrong);
        println!("{wrong:?}: {error}");
    }
    let few = PortOptions { buffers: 100, ..PortOptions::default() };
    assert_eq!(Port::open(eal, "net_null0", &few).expect_err("few").kind(), ErrorKind::InvalidInput);
    let much = PortOptions { buffers: 1 << 20, ..PortOptions::default() };
    let error = Port::open(eal, "net_null0", &much).expect_err("more than there is");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
}

fn a_device_that_only_receives(eal: &Arc<Eal>) {
    let mut port = Port::open(eal, "net_null0,size=100", &dpdk_process::small()).expect("net_null");
    assert_eq!(port.driver(), "net_null");
    let busy = Port::open(eal, "net_null0", &dpdk_process::small()).expect_err("it is open");
    assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
    let mut other = Port::open(eal, "net_null1,size=64", &dpdk_process::small()).expect("another");
    for at_most in [0, 1, 32, 64, 1_000] {
        assert_eq!(port.receive(at_most, |frame| assert_eq!(frame.len(), 100)), at_most.min(64));
        assert_eq!(other.receive(at_most, |frame| assert_eq!(frame.len(), 64)), at_most.min(64));
    }
    port.hear_group([0x01, 0, 0x5e, 0, 0x17, 0xaa]).expect("it receives everything");
    port.hear_group([0x01, 0, 0x5e, 0, 0x17, 0xaa]).expect("again");
    for _ in 0..1_000 {
        while port.send(&[&[7; 1_000]]) {}
        assert_eq!(port.flush(), 64);
    }
    assert_eq!(port.counters().transmit_no_buffer, 0);
}

/// The driver gives frames of 30,000 bytes in buffers that have 9,344.
fn frames_with_impossible_lengths_are_dropped(eal: &Arc<Eal>) {
    let mut port = Port::open(eal, "net_null0,size=30000", &dpdk_process::small()).expect("net_null");
    for _ in 0..100 {
        assert_eq!(port.receive(64, |_| panic!("a frame")), 0);
    }
    assert_eq!(port.counters().receive_malformed, 6_400);
}

/// All buffers together would exceed DPDK's memory.
fn a_pool_is_used_again(eal: &Arc<Eal>) {
    let _open = Port::open(eal, "net_null0", &dpdk_process::small()).expect("net_null");
    for _ in 0..50 {
        let mut port = Port::open(eal, "net_null1", &dpdk_process::small()).expect("net_null");
        port.receive(64, |_| ());
        assert!(port.send(&[&[1; 60]]));
    }
}
