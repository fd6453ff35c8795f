//! The messages that wait for the control thread, taken in turns.
//!
//! Events (of faces, connections, commands of this process) arrive through a channel and are never refused. Interests
//! arrive through [`ManagementQueue`], which refuses those of a face that floods. An Interest is served after every
//! event that was sent before it. Otherwise control could receive a new face's first command before it knows the face.
//! A turn takes a bounded number of both, so that neither kind delays the other. Timers run between turns.
//!
//! Limits: [`EVENTS_PER_TURN`], [`INTERESTS_PER_TURN`].

use crate::messages::ToControl;
use namewire_worker::{ForManagement, ManagementQueue};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{sync::mpsc::UnboundedReceiver, task::yield_now, time::sleep};

/// Events served in one turn, which is a millisecond's work. Then control wakes the workers that got messages.
const EVENTS_PER_TURN: usize = 64;

/// Interests served in one turn: as many as a worker's batch.
const INTERESTS_PER_TURN: usize = 64;

/// The receiving ends of the channel and the queue.
pub(crate) struct ControlInbox {
    events: UnboundedReceiver<ToControl>,
    interests: Arc<ManagementQueue>,
    /// Interests already taken, to be served after `events_before` more events.
    waiting: Vec<ForManagement>,
    /// An upper bound on the unserved events that were sent before the last Interest of `waiting`.
    events_before: usize,
}

impl ControlInbox {
    pub(crate) fn new(events: UnboundedReceiver<ToControl>, interests: Arc<ManagementQueue>) -> Self {
        ControlInbox { events, interests, waiting: Vec::new(), events_before: 0 }
    }

    /// The next messages, in the order in which to serve them. Waits until there are some, but at most for `patience`
    /// if it is given; then there may be none.
    pub(crate) async fn turn(&mut self, patience: Option<Duration>) -> Vec<ToControl> {
        let mut turn = Vec::new();
        if self.is_empty() {
            self.wait(patience, &mut turn).await;
        } else {
            // Listeners, and connections under way, run on this thread too.
            yield_now().await;
        }
        if self.waiting.is_empty() {
            self.waiting = self.interests.take(INTERESTS_PER_TURN);
            // Everything sent before the Interests is in the queue by now.
            self.events_before = self.events.len();
        }
        while turn.len() < EVENTS_PER_TURN
            && let Ok(event) = self.events.try_recv()
        {
            turn.push(event);
            self.events_before = self.events_before.saturating_sub(1);
        }
        if self.events_before == 0 {
            turn.extend(self.waiting.drain(..).map(ToControl::Management));
        }
        turn
    }

    /// The messages that wait, in the order in which to serve them, without waiting and without letting others run.
    pub(crate) fn take_waiting(&mut self) -> Vec<ToControl> {
        let interests = std::mem::take(&mut self.waiting).into_iter().chain(self.interests.take(usize::MAX));
        let interests: Vec<ToControl> = interests.map(ToControl::Management).collect();
        self.events_before = 0;
        std::iter::from_fn(|| self.events.try_recv().ok()).chain(interests).collect()
    }

    /// True if more events wait than were handed out.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.events.is_empty() && self.interests.is_empty()
    }

    async fn wait(&mut self, patience: Option<Duration>, turn: &mut Vec<ToControl>) {
        let patience = async {
            match patience {
                Some(patience) => sleep(patience).await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => turn.push(event),
            waiting = self.interests.next(INTERESTS_PER_TURN) => self.waiting = waiting,
            () = patience => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_faces::CloseReason;
    use namewire_packet::FaceId;
    use namewire_shares::{Groups, HolderId};
    use namewire_worker::FromWorker;
    use tokio::sync::mpsc;

    fn event(number: u64) -> ToControl {
        ToControl::Worker(FromWorker::FaceClosed { face: FaceId(number), reason: CloseReason::PeerClosed })
    }

    fn queue() -> Arc<ManagementQueue> {
        Arc::new(ManagementQueue::new(&Groups::default()))
    }

    /// An Interest of a face.
    fn push(queue: &ManagementQueue, face: u64) -> bool {
        let incoming = FaceId(face);
        let interest = ForManagement::Interest { incoming, pit_token: None, packet: Vec::new() };
        queue.push(incoming, HolderId::ANY_LOCAL, interest).is_ok()
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    /// The story: at most 256 events were served before an Interest. In a storm of connections, a command was therefore
    /// served before the event that introduced its face.
    #[test]
    fn an_interest_is_served_after_all_events_that_were_sent_before_it() {
        run(async {
            let (events, event_queue) = mpsc::unbounded_channel();
            let interests = queue();
            let mut inbox = ControlInbox::new(event_queue, Arc::clone(&interests));
            for number in 0..1000 {
                events.send(event(number)).unwrap();
            }
            assert!(push(&interests, 0));
            let (mut served, mut later) = (0, 1000);
            loop {
                let turn = inbox.turn(None).await;
                assert!(turn.len() <= EVENTS_PER_TURN + INTERESTS_PER_TURN);
                // Events that come meanwhile do not keep the Interest waiting for ever.
                (0..EVENTS_PER_TURN).for_each(|_| events.send(event(later)).unwrap());
                later += 1;
                let events = turn.iter().filter(|message| matches!(message, ToControl::Worker(_))).count();
                served += events;
                if turn.len() > events {
                    assert!(matches!(turn.last(), Some(ToControl::Management(_))));
                    break;
                }
            }
            assert!((1000..1000 + EVENTS_PER_TURN).contains(&served), "{served} events were served before it");
        });
    }

    #[test]
    fn it_waits_for_as_long_as_it_may() {
        run(async {
            let (events, event_queue) = mpsc::unbounded_channel();
            let interests = queue();
            let mut inbox = ControlInbox::new(event_queue, Arc::clone(&interests));
            assert!(inbox.turn(Some(Duration::from_secs(1000))).await.is_empty());
            assert!(push(&interests, 0));
            assert_eq!(inbox.turn(None).await.len(), 1);
            (0..100).for_each(|number| assert!(push(&interests, number)));
            events.send(event(0)).unwrap();
            assert_eq!(inbox.turn(None).await.len(), 1 + INTERESTS_PER_TURN);
            assert_eq!(inbox.turn(None).await.len(), 100 - INTERESTS_PER_TURN);
        });
    }
}
