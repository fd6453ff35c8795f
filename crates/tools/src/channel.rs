//! `namewire channel`: the local addresses that make or accept faces.

use crate::{Failure, Global, output::table};
use namewire_packet::nfd::ChannelStatus;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List all channels
    List,
}

pub(crate) async fn execute(global: &Global, command: Command) -> Result<(), Failure> {
    let Command::List = command;
    let client = global.connect().await?;
    let channels: Vec<ChannelStatus> = client.list().await?;
    global.output().print(&channels, || {
        let mut rows = vec![vec!["LOCAL".to_owned()]];
        rows.extend(channels.iter().map(|channel| vec![channel.local_uri.clone()]));
        table(&rows, "no channels")
    })?;
    Ok(())
}
