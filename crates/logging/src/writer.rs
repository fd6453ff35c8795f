//! The thread that writes lines to standard error. Only this thread waits for the reader there.
//!
//! Limit: [`QUEUE_LINES`] lines wait. A line that finds no room is counted, and when there is room again, a line gives
//! the number.

use crate::Log;
use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// Lines that wait for standard error.
pub(crate) const QUEUE_LINES: usize = 512;

/// How long the end of the process waits for the last lines.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// What the thread is sent.
pub(crate) enum Message {
    Line(String),
    /// The first line of its second was refused.
    LookAgain,
    End,
}

/// The sending end.
#[derive(Clone)]
pub(crate) struct Queue(SyncSender<Message>);

impl Queue {
    pub(crate) fn new() -> (Self, Receiver<Message>) {
        let (sender, receiver) = sync_channel(QUEUE_LINES);
        (Queue(sender), receiver)
    }

    /// False if there is no room.
    pub(crate) fn send(&self, message: Message) -> bool {
        self.0.try_send(message).is_ok()
    }
}

/// The writer of a log. Dropping it writes what waits, but does not wait longer than a second.
pub struct LogWriter {
    queue: Queue,
    ended: Receiver<()>,
}

/// A writer whose thread does not run yet, so that the process can give up privileges on its only thread. If it is
/// dropped, it writes what waits: the start has failed, and the lines say why.
pub struct FutureWriter(Option<Parts>);

struct Parts {
    log: &'static Log,
    queue: Queue,
    lines: Receiver<Message>,
    output: Box<dyn Write + Send>,
}

impl FutureWriter {
    pub(crate) fn new(
        log: &'static Log,
        queue: Queue,
        lines: Receiver<Message>,
        output: impl Write + Send + 'static,
    ) -> Self {
        FutureWriter(Some(Parts { log, queue, lines, output: Box::new(output) }))
    }

    /// Starts the thread. Lines are written as long as the writer is there.
    ///
    /// # Errors
    /// If there is no thread.
    pub fn start(mut self) -> io::Result<LogWriter> {
        self.0.take().expect("only this takes it, and only once").start()
    }
}

impl Drop for FutureWriter {
    fn drop(&mut self) {
        let _ = self.0.take().map(Parts::start);
    }
}

impl Parts {
    fn start(self) -> io::Result<LogWriter> {
        let Parts { log, queue, lines, mut output } = self;
        let (end, ended) = sync_channel(1);
        thread::Builder::new().name("nw-log".to_owned()).spawn(move || {
            write_all(log, &lines, &mut output);
            drop(end);
        })?;
        Ok(LogWriter { queue, ended })
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        let end = Instant::now() + LAST_WAIT;
        while !self.queue.send(Message::End) {
            if Instant::now() >= end {
                return; // standard error takes nothing
            }
            thread::sleep(LAST_WAIT / 100);
        }
        let _ = self.ended.recv_timeout(end.saturating_duration_since(Instant::now()));
    }
}

/// Writes until the end. Errors are ignored: there is no other place to report them.
fn write_all(log: &'static Log, lines: &Receiver<Message>, output: &mut impl Write) {
    let mut lost_told = 0;
    let mut patience = None;
    loop {
        let message = match patience {
            Some(patience) => lines.recv_timeout(patience),
            None => lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match message {
            Ok(Message::Line(line)) => _ = output.write_all(line.as_bytes()).and_then(|()| output.flush()),
            Ok(Message::LookAgain) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => {
                let _ = output.write_all(log.last_lines().as_bytes()).and_then(|()| output.flush());
                return;
            }
        }
        let lost = log.lines_lost();
        if lost > lost_told {
            let count = lost - lost_told;
            tracing::warn!(target: "management", count, "lines of the log were not written: their reader is too slow");
            lost_told = lost;
        }
        patience = log.say_more().map(Duration::from_nanos);
    }
}
