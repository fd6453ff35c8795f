//! One capture from its first piece to its last.

use super::pieces::Pieces;
use crate::{ExitCode, Failure};
use namewire_client::Client;
use namewire_packet::{
    NameBuf,
    nfd::{CaptureRecord, ControlParameters},
};
use tokio::signal::unix::Signal;

/// What is done with the records.
pub(crate) trait Recorder {
    /// Takes one record.
    fn take(&mut self, record: CaptureRecord) -> Result<(), Failure>;

    /// All records of one piece were taken. A piece may have none, and some pieces come each second.
    fn end_of_piece(&mut self) -> Result<(), Failure>;

    /// Whether no more records are wanted.
    fn has_enough(&self) -> bool;
}

/// Follows a capture that has begun until the recorder has enough, or until Ctrl-C; true if that ended it.
///
/// # Errors
/// If the capture ended without its last piece: the router, the output or a second Ctrl-C ended it.
pub(crate) async fn follow(
    client: &Client,
    name: &NameBuf,
    mut interrupt: Signal,
    recorder: &mut impl Recorder,
) -> Result<bool, Failure> {
    let mut pieces = Pieces::new(client, name.clone());
    let (mut is_stopping, mut is_interrupted) = (false, false);
    loop {
        let records = tokio::select! {
            records = pieces.next() => match records? {
                Some(records) => records,
                None => return Ok(is_interrupted),
            },
            _ = interrupt.recv() => {
                if is_interrupted {
                    return Err(cut_short());
                }
                is_interrupted = true;
                Vec::new()
            }
        };
        for record in records {
            recorder.take(record)?;
        }
        recorder.end_of_piece()?;
        if (is_interrupted || recorder.has_enough()) && !is_stopping {
            is_stopping = true;
            let stop = ControlParameters { name: Some(name.clone()), ..ControlParameters::default() };
            tokio::select! {
                stopped = client.control("capture", "stop", &stop) => drop(stopped?),
                _ = interrupt.recv() => return Err(cut_short()),
            }
        }
    }
}

/// A second Ctrl-C.
fn cut_short() -> Failure {
    Failure::new(ExitCode::Interrupted, "interrupted before the router had sent all that it captured")
}
