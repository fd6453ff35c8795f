//! An idle router uses almost no processor time. This is a separate file, because other tests would use processor time
//! too.

mod application;
mod threads;

use application::{Application, name, start_with};
use namewire_configuration::log_levels::LogLevels;
use namewire_logging::Log;
use namewire_node_model::log_line::LineForm;
use std::time::Duration;
use threads::Work;

/// An idle router sleeps until something happens. A tick of 100 ms in one of its threads would wake it 20 times. A
/// thread that polls gets 100 ms or more even where 15 others want the same two processors.
#[test]
fn a_router_at_rest_is_hardly_ever_awake() {
    // With a log, control looks at counters while there is traffic, and the log has a thread.
    let _log = Log::install(LogLevels::default(), LineForm::Text, std::io::sink()).unwrap().start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let memif = folder.path().join("memif.sock");
    let (router, _directory) = start_with(4, |config| config.settings.faces.memif.path = Some(memif.clone()));
    let mut in_memory = Application::connect_memory(&memif);
    in_memory.register("/memory");
    let mut silent = Application::connect(&router);
    silent.register("/silent");
    let mut consumer = Application::connect(&router);
    // Some stay pending for longer than one turn of the timer wheel, some for less.
    for index in 0..64 {
        let lifetime_ms = if index % 2 == 0 { 60_000 } else { 7_000 };
        let interest = consumer.interest(name(&format!("/silent/{index}"))).lifetime_ms(lifetime_ms).build();
        consumer.send(&interest);
    }
    for _ in 0..64 {
        silent.receive().expect("an Interest");
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(Log::installed().unwrap().recent(0).iter().any(|line| line.message == "face up"));
    let before = Work::of("nw-");
    assert!(before.wake_ups > 0 && !before.time.is_zero(), "the kernel does not count");
    std::thread::sleep(Duration::from_secs(2));
    let done = Work::of("nw-").since(before);
    println!("{done:?} in 2 s");
    assert!(done.wake_ups < 20, "{done:?} in 2 s of rest");
    assert!(done.time < Duration::from_millis(20), "{done:?} in 2 s of rest");
}
