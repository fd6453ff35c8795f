//! Congestion marks on the way to a consumer that does not keep up.

use crate::application::{Application, name, start, start_with};
use namewire_packet::{DataBuilder, lp::LpHeaders, nfd::ControlParameters, nfd::face_flags};
use namewire_router::RouterHandle;
use std::time::Duration;

/// The first marked packet leaves at least this long after the queue was first seen long.
const INTERVAL: Duration = Duration::from_millis(100);

/// Half a megabyte; the kernel takes less.
const BURST: usize = 64;

/// Asks for a burst of large Data and reads no Data.
fn ask(consumer: &mut Application, producer: &mut Application, round: usize) {
    for number in 0..BURST {
        let interest = consumer.interest(name(&format!("/example/{round}/{number}"))).lifetime_ms(20_000).build();
        consumer.send(&interest);
    }
    producer.serve(BURST, &[7; 8000]);
    // The answer to a later request shows that the router has handled the Data.
    producer.faces();
}

fn marks(consumer: &mut Application, packets: usize) -> usize {
    (0..packets).filter(|_| consumer.receive().expect("Data").headers.congestion_mark == 1).count()
}

fn slow_consumer(router: &RouterHandle, before: impl FnOnce(&mut Application)) -> (usize, u64) {
    let mut producer = Application::connect(router);
    producer.register("/example");
    let mut consumer = Application::connect(router);
    before(&mut consumer);
    ask(&mut consumer, &mut producer, 0);
    ask(&mut consumer, &mut producer, 1);
    std::thread::sleep(INTERVAL);
    ask(&mut consumer, &mut producer, 2);
    let marked = marks(&mut consumer, 3 * BURST);
    // A consumer that has read everything gets no more marks.
    ask(&mut consumer, &mut producer, 3);
    let after: usize = (0..BURST).map(|_| marks(&mut consumer, 1)).sum();
    assert_eq!(after, 0);
    let counted = producer.drops("congestion.marked");
    (marked, counted)
}

#[test]
fn a_slow_consumer_sees_marks_until_it_has_caught_up() {
    let (router, _directory) = start(1);
    let (marked, counted) = slow_consumer(&router, |_| ());
    assert!(marked >= 1, "no mark");
    assert_eq!(marked as u64, counted);
}

#[test]
fn marks_can_be_turned_off_for_a_face_and_for_all() {
    let (router, _directory) = start(1);
    let turn_off = |consumer: &mut Application| {
        let mask = Some(face_flags::CONGESTION_MARKING);
        let body = consumer.succeed("/faces/update", ControlParameters { flags: Some(0), mask, ..Default::default() });
        assert_eq!(body.flags, Some(0));
    };
    assert_eq!(slow_consumer(&router, turn_off), (0, 0));
    let (router, _directory) = start_with(1, |config| config.settings.faces.congestion_marking = false);
    assert_eq!(slow_consumer(&router, |_| ()), (0, 0));
}

#[test]
fn cached_data_has_lost_its_mark() {
    let (router, _directory) = start(2);
    let mut producer = Application::connect(&router);
    producer.register("/example");
    let mut consumer = Application::connect(&router);
    let interest = consumer.interest(name("/example/a")).build();
    consumer.send(&interest);
    let packet = producer.receive().expect("an Interest");
    let data = DataBuilder::new(packet.interest().name()).content(b"a").freshness_ms(10_000).sign_digest();
    let marked = LpHeaders { congestion_mark: 1, pit_token: packet.headers.pit_token, ..LpHeaders::default() };
    producer.send_with(&marked, &data);
    assert_eq!(consumer.receive().expect("Data").headers.congestion_mark, 1, "forwarded as it came");
    let cached = Application::connect(&router).express("/example/a").expect("cached Data");
    assert_eq!(cached.headers.congestion_mark, 0);
}
