//! Latest: the newest copy of one part of the router's state, shared by all clients.
//!
//! Contract: all clients together cause at most one copy per [`SNAPSHOT_AGE_MS_MAX`], even if clients leave before they
//! have it. Clients that come meanwhile get the same copy.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use crate::source::{SNAPSHOT_AGE_MS_MAX, SNAPSHOT_WAIT};

/// Why there is no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// The router has stopped.
    Stopped,
    /// It did not answer in time.
    Slow,
}

impl Unavailable {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Stopped => "The router has stopped.",
            Self::Slow => "The router does not answer.",
        }
    }
}

/// What a client gets when it asks for the present state.
pub(crate) type Current<T> = Result<Rc<T>, Unavailable>;

/// See the module.
pub(crate) struct Latest<T> {
    answer: Mutex<Option<Answer<T>>>,
    /// When the source was asked last. The client that asked may have left since.
    last_asked: Cell<Option<Instant>>,
}

struct Answer<T> {
    at: Instant,
    current: Current<T>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Latest { answer: Mutex::new(None), last_asked: Cell::new(None) }
    }
}

impl<T> Latest<T> {
    /// A copy that is at most [`SNAPSHOT_AGE_MS_MAX`] old. `ask` makes a new one, and is dropped if that is not needed.
    pub(crate) async fn get(&self, ask: impl Future<Output = Option<T>>) -> Current<T> {
        let mut latest = self.answer.lock().await;
        if let Some(Answer { at, current }) = &*latest
            && at.elapsed() < Duration::from_millis(SNAPSHOT_AGE_MS_MAX)
        {
            return current.clone();
        }
        if let Some(asked) = self.last_asked.get() {
            sleep_until(asked + Duration::from_millis(SNAPSHOT_AGE_MS_MAX)).await;
        }
        self.last_asked.set(Some(Instant::now()));
        let current = match timeout(SNAPSHOT_WAIT, ask).await {
            Ok(Some(copy)) => Ok(Rc::new(copy)),
            Ok(None) => Err(Unavailable::Stopped),
            Err(_) => Err(Unavailable::Slow),
        };
        *latest = Some(Answer { at: Instant::now(), current: current.clone() });
        current
    }

    /// Forgets the copy, as if the client that asked for it had left.
    #[cfg(test)]
    pub(crate) async fn forget(&self) {
        *self.answer.lock().await = None;
    }
}
