//! Streams between workers: a stream that writes as fast as it can is held back, and loses nothing.

use crate::application::{Application, eventually, name, start};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

/// Sends Interests without a route as fast as the router takes them, until told to stop. `nacks` counts the answers.
fn flood(mut client: Application, stop: Arc<AtomicBool>, nacks: Arc<AtomicU64>) -> std::thread::JoinHandle<u64> {
    let mut reader = client.split();
    std::thread::spawn(move || {
        while reader.receive_within(Duration::from_secs(5)).is_some() {
            nacks.fetch_add(1, Ordering::Relaxed);
        }
    });
    std::thread::spawn(move || {
        let mut sent = 0;
        while !stop.load(Ordering::Relaxed) {
            let mut wire = Vec::new();
            for _ in 0..200 {
                wire.extend(client.interest(name(&format!("/flood/{sent}"))).lifetime_ms(4000).build());
                sent += 1;
            }
            client.send(&wire);
        }
        sent
    })
}

/// The story: with two or more workers, one stream application that wrote as fast as it could filled the rings. 131
/// million packets were dropped, also those of others, whose rounds fell to a fiftieth.
#[test]
fn a_stream_that_writes_as_fast_as_it_can_is_held_back_and_costs_others_nothing() {
    const ROUNDS_LEAST: usize = 100;
    const FLOOD_LEAST: u64 = 20_000;
    for workers in [2, 4] {
        let (router, _directory) = start(workers);
        // Faces go to workers in turn, so that there is a consumer and a producer on each.
        let mut pairs: Vec<_> = (0..workers)
            .map(|pair| {
                let (consumer, mut producer) = (Application::connect(&router), Application::connect(&router));
                producer.register(&format!("/honest/{pair}"));
                (consumer, producer)
            })
            .collect();
        let mut operator = Application::connect(&router);
        let (stop, nacks) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let flooding = flood(Application::connect(&router), Arc::clone(&stop), Arc::clone(&nacks));
        eventually("the flood has begun", || nacks.load(Ordering::Relaxed) > 1000);

        let (mut answered, mut rounds) = (0, 0);
        while rounds < ROUNDS_LEAST || nacks.load(Ordering::Relaxed) < FLOOD_LEAST {
            rounds += 1;
            for (pair, (consumer, producer)) in pairs.iter_mut().enumerate() {
                let interest = consumer.interest(name(&format!("/honest/{pair}/{rounds}"))).lifetime_ms(20_000).build();
                consumer.send(&interest);
                if producer.receive_within(Duration::from_secs(20)).is_some_and(|interest| {
                    producer.answer(&interest, b"hello");
                    true
                }) {
                    answered += usize::from(consumer.receive_within(Duration::from_secs(20)).is_some());
                }
            }
        }
        // A command is served meanwhile.
        assert!(operator.status().packets.in_interests > 0);
        stop.store(true, Ordering::Relaxed);
        let sent = flooding.join().unwrap();
        assert!(answered * 10 >= rounds * workers * 8, "{answered} of {} rounds", rounds * workers);
        // Nothing of the stream was lost between workers: each Interest has its Nack, or its own queue was full.
        assert_eq!(operator.drops("router.ring-full"), 0, "{workers} workers");
        let mut counted = 0;
        eventually("every Interest is accounted for", || {
            let drops = ["link.queue-full", "link.queues-full", "link.queue-share", "engine.face-share-used"];
            counted = nacks.load(Ordering::Relaxed) + drops.iter().map(|drop| operator.drops(drop)).sum::<u64>();
            counted >= sent
        });
        assert_eq!(counted, sent);
    }
}
