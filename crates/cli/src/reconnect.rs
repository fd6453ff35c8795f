//! Commands that outlive their router: they connect again.

use crate::Failure;
use std::time::Duration;
use tokio::{
    signal::unix::Signal,
    time::{Instant, sleep},
};

/// Pauses between attempts; each is twice as long as the one before.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(5);

/// Why serving over one connection ended.
pub(crate) enum Served {
    /// Everything is done.
    Done,
    /// The connection was lost.
    Lost,
}

/// Why serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Interrupted,
}

/// Serves over `session`. When its connection is lost, opens another one, as often as it takes. Returns the last
/// session, too.
///
/// # Errors
/// Those of `serve`. A session that cannot be opened is tried again.
pub(crate) async fn serve<S>(
    mut session: S,
    open: impl AsyncFn() -> Result<S, Failure>,
    mut serve: impl AsyncFnMut(&mut S) -> Result<Served, Failure>,
    mut interrupt: Signal,
) -> Result<(End, S), Failure> {
    let mut pause = PAUSE_FIRST;
    loop {
        let began = Instant::now();
        let served = tokio::select! {
            served = serve(&mut session) => served?,
            _ = interrupt.recv() => return Ok((End::Interrupted, session)),
        };
        if let Served::Done = served {
            return Ok((End::Done, session));
        }
        eprintln!("namewire: the connection to the forwarder was lost; trying again");
        // A forwarder that closes each new connection at once is asked as seldom as one that is away.
        if began.elapsed() > PAUSE_LAST {
            pause = PAUSE_FIRST;
        }
        session = tokio::select! {
            again = open_again(&open, &mut pause) => again,
            _ = interrupt.recv() => return Ok((End::Interrupted, session)),
        };
        eprintln!("namewire: connected again");
    }
}

async fn open_again<S>(open: &impl AsyncFn() -> Result<S, Failure>, pause: &mut Duration) -> S {
    let mut told = None;
    loop {
        sleep(*pause).await;
        *pause = (*pause * 2).min(PAUSE_LAST);
        let failure = match open().await {
            Ok(session) => return session,
            Err(failure) => failure.first_line().to_owned(),
        };
        // Each reason once: a router that is away for an hour fills no terminal.
        if told.as_ref() != Some(&failure) {
            eprintln!("namewire: {failure}");
            told = Some(failure);
        }
    }
}
