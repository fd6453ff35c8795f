//! `cs/erase`: Data reported as erased is not served any more, whichever worker had it.

use crate::application::{Application, eventually, name, start};
use namewire_packet::{
    DataBuilder,
    nfd::{ControlParameters, CsInfo},
};

/// Puts `count` Data into the store: `/a/<group>/<number>`.
fn fill(consumer: &mut Application, producer: &mut Application, group: &str, count: usize) {
    for number in 0..count {
        let interest = consumer.interest(name(&format!("/a/{group}/{number}"))).build();
        consumer.send(&interest);
        producer.serve(1, b"kept");
        assert_eq!(consumer.receive().expect("Data").data().content(), b"kept");
    }
}

fn erase(operator: &mut Application, prefix: &str, count: Option<u64>) -> (u64, Option<u64>) {
    let prefix = Some(name(prefix));
    let body = operator.succeed("/cs/erase", ControlParameters { name: prefix.clone(), count, ..Default::default() });
    assert_eq!(body.name, prefix);
    (body.count.expect("how many"), body.capacity)
}

fn entries(operator: &mut Application) -> u64 {
    operator.dataset::<CsInfo>("/cs/info")[0].n_cs_entries
}

#[test]
fn what_was_erased_comes_from_the_producer_again() {
    for workers in [1, 3] {
        let (router, _directory) = start(workers);
        let (mut operator, mut consumer) = (Application::connect(&router), Application::connect(&router));
        let mut producer = Application::connect(&router);
        producer.register("/a");
        fill(&mut consumer, &mut producer, "x", 20);
        fill(&mut consumer, &mut producer, "y", 5);
        // From now on they are found by a prefix: the store remembers the Data that answered it.
        let by_prefix = |consumer: &mut Application| {
            let interest = consumer.interest(name("/a/y")).can_be_prefix(true).build();
            consumer.send(&interest);
        };
        by_prefix(&mut consumer);
        let asked = producer.receive().expect("the Interest").interest().name().to_buf();
        producer.send(&DataBuilder::new(name("/a/y/first")).content(b"kept").sign_digest());
        assert_eq!((asked, consumer.receive().expect("Data").data().content()), (name("/a/y"), &b"kept"[..]));
        by_prefix(&mut consumer);
        assert_eq!(consumer.receive().expect("from the store").data().name().to_buf(), name("/a/y/first"));
        // A worker publishes its numbers some milliseconds late. Two workers may keep Data found by a prefix.
        eventually("all are counted", || entries(&mut operator) >= 26);

        assert_eq!(erase(&mut operator, "/a/x", Some(3)), (3, None), "{workers} workers");
        let (erased, more) = erase(&mut operator, "/a", None);
        assert!((23..=24).contains(&erased) && more.is_none(), "{erased}, {more:?}, {workers} workers");
        assert_eq!(erase(&mut operator, "/a", None), (0, None));
        eventually("all are off the count", || entries(&mut operator) == 0);

        for uri in ["/a/x/7", "/a/y/1"] {
            let interest = consumer.interest(name(uri)).build();
            consumer.send(&interest);
            producer.serve(1, b"new");
            assert_eq!(consumer.receive().expect("Data").data().content(), b"new", "{uri}, {workers} workers");
        }
        assert!(erase(&mut operator, "/a/y", None).0 >= 1);
        by_prefix(&mut consumer);
        let asked = producer.receive().expect("the Interest, because the store has nothing").interest().name().to_buf();
        assert_eq!(asked, name("/a/y"));
    }
}

#[test]
fn more_than_one_command_may_erase_takes_several() {
    let (router, _directory) = start(3);
    let mut operator = Application::connect(&router);
    let (mut consumer, mut producer) = (Application::connect(&router), Application::connect(&router));
    producer.register("/a");
    fill(&mut consumer, &mut producer, "z", 300);
    eventually("all are counted", || entries(&mut operator) >= 300);
    let held = entries(&mut operator);
    let (mut total, mut commands) = (0, 0);
    loop {
        let (erased, more) = erase(&mut operator, "/a", None);
        (total, commands) = (total + erased, commands + 1);
        if more.is_none() {
            break;
        }
        assert_eq!((erased, more), (256, Some(256)));
    }
    assert_eq!(total, held);
    assert!(commands >= 2);
}
