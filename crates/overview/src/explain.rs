//! `namewire explain NAME`: what would the forwarder do with an Interest for this name now?

use namewire_configuration::text::parse_name;
use namewire_packet::NameBuf;
use namewire_tools::{Failure, Global, explain};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Name of the Interest
    #[arg(value_parser = parse_name)]
    name: NameBuf,
    /// Face through which the Interest would arrive; it is not sent back there
    #[arg(long, value_name = "FACE")]
    from: Option<u64>,
}

pub(crate) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let client = global.connect().await?;
    let explanation = explain::explain(&client, &args.name, args.from).await?;
    global.output().print(&explanation, || explain::text(&explanation))?;
    Ok(())
}
