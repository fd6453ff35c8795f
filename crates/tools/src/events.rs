//! `namewire events`: the latest lines of the router's log, which the router keeps in memory.

use crate::{Failure, Global, output::write_out};
use namewire_client::Client;
use namewire_configuration::log_levels::LogArea;
use namewire_node_model::log_line::LineForm;
use namewire_packet::{
    NameBuf,
    nfd::{LogRecord, decode_dataset},
    tlv::types::SEQUENCE_NUM_COMPONENT,
};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often a router is asked for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  namewire events -n 20\n  namewire events --area faces,trust --follow\n  \
    namewire events --json | jq 'select(.level == \"warn\")'")]
pub(crate) struct Args {
    /// Continue with new lines as they come, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only lines of these areas
    #[arg(long, value_name = "AREA,…", value_delimiter = ',', value_parser = crate::choice::choice::<LogArea>())]
    area: Vec<LogArea>,
    /// Begin with the latest N lines [default: all that the router keeps, at most 1000]
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let client = global.connect().await?;
    let form = if global.json { LineForm::Json } else { LineForm::DatedText };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut last = 0;
    let mut most = args.lines;
    loop {
        let mut records = fetch(&client, last).await?;
        last = records.last().map_or(last, |record| record.number);
        records.retain(|record| args.area.is_empty() || args.area.iter().any(|area| area.name() == record.area));
        let left_out = records.len().saturating_sub(most.take().unwrap_or(usize::MAX));
        let text: String = records[left_out..].iter().map(|record| form.line(record)).collect();
        write_out(text.as_bytes())?;
        if !args.follow {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = interrupt.recv() => return Ok(()),
        }
    }
}

/// The lines after this one.
async fn fetch(client: &Client, after: u64) -> Result<Vec<LogRecord>, Failure> {
    let mut name: NameBuf = "/localhost/nfd/log/recent".parse().map_err(|error| Failure::usage(format!("{error}")))?;
    name.push_typed_nni(SEQUENCE_NUM_COMPONENT, after);
    let content = client.dataset(&name).await?;
    decode_dataset(&content)
        .map_err(|error| Failure::new(crate::ExitCode::Failed, format!("the router's answer is malformed: {error}")))
}
