//! A router at rest rests. A file of its own: other tests would use processor time too.

mod application;

use application::{Application, name, start};
use std::{fs, time::Duration};

/// Nanoseconds that the router's threads have run.
fn router_time_ns() -> u64 {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let is_ours = fs::read_to_string(task.join("comm")).unwrap_or_default().starts_with("nw-");
        let stat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        if is_ours {
            sum += stat.split(' ').next().and_then(|field| field.parse::<u64>().ok()).expect("schedstat");
        }
    }
    sum
}

#[test]
fn a_router_at_rest_uses_next_to_no_processor_time() {
    let (router, _directory) = start(4);
    let mut silent = Application::connect(&router);
    silent.register("/silent");
    let mut consumer = Application::connect(&router);
    // Pending for longer than one turn of the timer wheel, and for less.
    for index in 0..64 {
        let lifetime_ms = if index % 2 == 0 { 60_000 } else { 7_000 };
        let interest = consumer.interest(name(&format!("/silent/{index}"))).lifetime_ms(lifetime_ms).build();
        consumer.send(&interest);
    }
    for _ in 0..64 {
        silent.receive().expect("an Interest");
    }
    std::thread::sleep(Duration::from_millis(200));
    let before = router_time_ns();
    assert!(before > 0, "the kernel does not count");
    std::thread::sleep(Duration::from_secs(2));
    let used_us = (router_time_ns() - before) / 1000;
    println!("{used_us} microseconds in 2 s");
    assert!(used_us < 2_000, "{used_us} microseconds of processor time in 2 s of rest");
}
