//! Ctrl-C and SIGTERM end the run between two steps: children are ended and no record is half written.
//!
//! A signal only sets a flag, which long loops read by [`check`]. A second signal ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The exit status of an interrupted run, as shells report it (128 + SIGINT).
pub const EXIT_STATUS: u8 = 130;

/// The user interrupted the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted; no record was written for the experiment under way")
    }
}

impl std::error::Error for Interrupted {}

/// Starts listening for the two signals, on a thread of its own.
///
/// # Errors
/// If the thread or its signal handlers cannot be set up.
pub fn listen() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (terminate, interrupt) = {
        use tokio::signal::unix::{SignalKind, signal};
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let (mut terminate, mut interrupt) = (terminate, interrupt);
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
                if INTERRUPTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(i32::from(EXIT_STATUS));
                }
            }
        });
    })?;
    Ok(())
}

/// Returns an error once the user has interrupted the run.
///
/// # Errors
/// [`Interrupted`].
pub fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}
