//! Keeper: the newest snapshot and the settings in force, shared by all clients.
//!
//! Contract: clients together cause few copies ([`Latest`]). While a stream is open, or if a client asked for the
//! status within the last [`ASKED_RECENTLY`], the keeper takes a snapshot once a second: the streams show it, and the
//! source computes rates from it. Otherwise it sleeps until the [timeline](crate::timeline) is due. It asks for
//! settings only when a client does.
//!
//! All of it runs on the observer's thread. Limits: the source decides how many streams there may be.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::document;
use crate::latest::{Current, Latest, Unavailable};
use crate::snapshot::Snapshot;
use crate::source::{Admitted, SettingsInForce, Source};
use crate::timeline::Timeline;

/// For how long after a question the keeper takes a snapshot per second.
const ASKED_RECENTLY: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_secs(1);

/// The newest snapshot and what is made of the last ones.
pub(crate) struct Keeper<S> {
    pub(crate) source: S,
    started: Instant,
    snapshot: Latest<Snapshot>,
    settings: Latest<SettingsInForce>,
    timeline: RefCell<Timeline>,
    asked: Cell<Option<Instant>>,
    asking: Notify,
    /// The newest message for streams.
    messages: watch::Sender<Bytes>,
}

impl<S: Source> Keeper<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            started: Instant::now(),
            snapshot: Latest::default(),
            settings: Latest::default(),
            timeline: RefCell::default(),
            asked: Cell::new(None),
            asking: Notify::new(),
            messages: watch::Sender::default(),
        }
    }

    /// The present state.
    pub(crate) async fn current(&self) -> Current<Snapshot> {
        self.snapshot.get(self.source.snapshot()).await
    }

    /// The settings in force.
    pub(crate) async fn settings(&self) -> Current<SettingsInForce> {
        self.settings.get(self.source.settings()).await
    }

    /// The present state with rates. From now on the source can tell them.
    pub(crate) async fn status(&self) -> Result<Vec<u8>, Unavailable> {
        self.measure();
        let snapshot = self.current().await?;
        Ok(document::status(&snapshot))
    }

    /// Means since the start, as JSON.
    pub(crate) fn past(&self) -> Vec<u8> {
        document::past(&self.timeline.borrow().past())
    }

    /// A stream of messages, one per second. It has the place until its client leaves.
    pub(crate) fn stream(self: &Rc<Self>, place: Admitted) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(1);
        self.measure();
        tokio::task::spawn_local(Rc::clone(self).feed(sender, place));
        receiver
    }

    /// Takes a snapshot per second while it is wanted. Never ends.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if self.is_idle() {
                let due = self.started + self.timeline.borrow().due();
                tokio::select! { () = self.asking.notified() => (), () = sleep_until(due) => () }
            }
            ticks.tick().await;
            let message = match self.current().await {
                Ok(snapshot) => {
                    self.timeline.borrow_mut().push(self.started.elapsed(), &snapshot);
                    (self.messages.receiver_count() > 0).then(|| message(&snapshot))
                }
                Err(unavailable) => Some(trouble(unavailable)),
            };
            if let Some(message) = message {
                self.messages.send_replace(message);
            }
        }
    }

    /// Sends the present state, then each new message. A client that is slow misses some. Ends with the client.
    async fn feed(self: Rc<Self>, sender: mpsc::Sender<Bytes>, _place: Admitted) {
        let mut messages = self.messages.subscribe();
        let mut message = match self.current().await {
            Ok(snapshot) => message(&snapshot),
            Err(unavailable) => trouble(unavailable),
        };
        while sender.send(message).await.is_ok() {
            tokio::select! {
                changed = messages.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
            message = messages.borrow_and_update().clone();
        }
    }

    /// Takes snapshots for rates from now on, for a while.
    pub(crate) fn measure(&self) {
        self.asked.set(Some(Instant::now()));
        self.asking.notify_one();
    }

    fn is_idle(&self) -> bool {
        let asked_recently = self.asked.get().is_some_and(|asked| asked.elapsed() < ASKED_RECENTLY);
        !asked_recently && self.messages.receiver_count() == 0
    }
}

fn message(snapshot: &Snapshot) -> Bytes {
    [b"data: ".as_slice(), &document::event(snapshot), b"\n\n"].concat().into()
}

/// A message that says why there is no state.
fn trouble(unavailable: Unavailable) -> Bytes {
    format!("event: trouble\ndata: {}\n\n", unavailable.text()).into()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::time::{advance, sleep, timeout};

    use super::*;
    use crate::source::{Place, SNAPSHOT_AGE_MS_MAX, SNAPSHOT_WAIT};

    /// Counts how often it is asked.
    #[derive(Default)]
    struct Counted {
        asked: AtomicU64,
    }

    impl Source for Counted {
        fn admit(&self, _client: IpAddr, _place: Place) -> Result<Admitted, String> {
            Ok(Box::new(()))
        }

        async fn snapshot(&self) -> Option<Snapshot> {
            let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            Some(Snapshot { now_unix_ms: asked, ..Default::default() })
        }

        async fn settings(&self) -> Option<SettingsInForce> {
            let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            Some(SettingsInForce { left_out: asked, ..Default::default() })
        }
    }

    impl Keeper<Counted> {
        fn asked(&self) -> u64 {
            self.source.asked.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_clients_cost_one_snapshot() {
        let keeper = Keeper::new(Counted::default());
        for _ in 0..50 {
            keeper.current().await.unwrap();
        }
        assert_eq!(keeper.asked(), 1);
        advance(Duration::from_millis(SNAPSHOT_AGE_MS_MAX)).await;
        keeper.current().await.unwrap();
        assert_eq!(keeper.asked(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn settings_are_asked_for_when_a_client_wants_them_and_shared() {
        let keeper = Keeper::new(Counted::default());
        keeper.current().await.unwrap();
        assert_eq!(keeper.asked(), 1, "no settings for those who want none");
        let (one, other) = tokio::join!(keeper.settings(), keeper.settings());
        assert_eq!((one.unwrap().left_out, other.unwrap().left_out), (2, 2));
        advance(Duration::from_millis(SNAPSHOT_AGE_MS_MAX)).await;
        assert_eq!(keeper.settings().await.unwrap().left_out, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_leave_at_once_ask_no_more_often() {
        let keeper = Keeper::new(Counted::default());
        let began = Instant::now();
        for _ in 0..1_000 {
            let _ = timeout(Duration::from_millis(1), keeper.current()).await;
            keeper.snapshot.forget().await;
        }
        let periods = began.elapsed().as_millis() as u64 / SNAPSHOT_AGE_MS_MAX + 1;
        assert!(keeper.asked() <= periods, "{} questions in {periods} periods", keeper.asked());
    }

    #[tokio::test(start_paused = true)]
    async fn the_router_is_asked_rarely_while_nobody_looks() {
        let keeper = Keeper::new(Counted::default());
        tokio::select! { () = keeper.run() => (), () = sleep(Duration::from_secs(600)) => () }
        let before = keeper.asked();
        assert!((58..=61).contains(&before), "{before}: every ten seconds");
        keeper.status().await.unwrap();
        tokio::select! { () = keeper.run() => (), () = sleep(Duration::from_secs(600)) => () }
        let after = keeper.asked() - before;
        assert!((86..=92).contains(&after), "{after}: each second for thirty, then every ten");
        let past: serde_json::Value = serde_json::from_slice(&keeper.past()).unwrap();
        let points = past["points"].as_array().unwrap().len();
        assert!((115..=120).contains(&points), "{points}: also those that nobody saw");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_and_its_place_end_with_the_client() {
        let local = tokio::task::LocalSet::new();
        let streams = async {
            let keeper = Rc::new(Keeper::new(Counted::default()));
            let place = Arc::new(());
            let mut open: Vec<_> = (0..16).map(|_| keeper.stream(Box::new(Arc::clone(&place)))).collect();
            assert!(open[0].recv().await.unwrap().starts_with(b"data: {"));
            assert_eq!(Arc::strong_count(&place), 17);
            drop(open);
            sleep(Duration::from_millis(1)).await;
            assert_eq!(Arc::strong_count(&place), 1);
        };
        local.run_until(streams).await;
    }

    /// A source that never answers.
    struct Hung;

    impl Source for Hung {
        fn admit(&self, _client: IpAddr, _place: Place) -> Result<Admitted, String> {
            Err("no place".to_owned())
        }

        async fn snapshot(&self) -> Option<Snapshot> {
            std::future::pending().await
        }

        async fn settings(&self) -> Option<SettingsInForce> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_hangs_is_slow() {
        let keeper = Keeper::new(Hung);
        let (one, other) = tokio::join!(keeper.current(), keeper.current());
        assert_eq!((one.unwrap_err(), other.unwrap_err()), (Unavailable::Slow, Unavailable::Slow));
        assert_eq!(keeper.started.elapsed(), SNAPSHOT_WAIT, "the second waits for the same answer");
    }
}
