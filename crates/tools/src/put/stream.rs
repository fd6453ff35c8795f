//! `namewire put -`, `put FIFO` and `put --follow FILE`: bytes that come while they are served.

use super::{Args, is_standard_input, look_first, say_standing};
use crate::{ExitCode, Failure, Global, certificates::SignersCertificates, quantity};
use namewire_client::PublishOptions;
use namewire_files::{
    standing::Registration,
    stream_input::{StreamInput, StreamSource},
    stream_server::{StreamError, StreamEvent, StreamOptions, StreamServer, Until},
};
use serde::Serialize;
use std::{fs::File, sync::Arc};
use tokio::signal::unix::{SignalKind, signal};

/// Printed once the name is registered.
#[derive(Serialize)]
struct Serving {
    versioned_name: String,
    /// Where the bytes come from.
    stream: String,
    /// Certificates of the signer that are served as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<usize>,
}

pub(super) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let (source, file) = source(&args)?;
    let publish = PublishOptions { version: args.version, ..args.segments.publish_options(global)? };
    let mut server = StreamServer::new(&args.name, StreamOptions { publish, keep_bytes: args.keep_bytes(), file })?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let client = global.connect().await?;
    let first = look_first(&client, &args.name, server.version()).await;
    let mut registration = Registration::new(&client, &args.name, server.version(), first).await?;
    let mut input = StreamInput::open(source)?;
    let from =
        if is_standard_input(&args.file) { "standard input".to_owned() } else { args.file.display().to_string() };
    let certificates = SignersCertificates::serve(global, &client).await?;
    let versioned_name = server.versioned_name().to_string();
    let serving = Serving { versioned_name, stream: from, certificates: certificates.count };
    let end = if args.follow { "Ctrl-C ends the stream" } else { "Ctrl-C to stop" };
    let line = || {
        format!("serving {} (a stream from {}{}); {end}", serving.versioned_name, serving.stream, certificates.text())
    };
    global.output().print_line(&serving, line)?;
    let until = if args.once { Until::Delivered } else { Until::Stopped };
    let served = tokio::select! {
        served = server.serve(&mut registration, &mut input, until, |server, event| say(&args, server, event)) => served,
        _ = interrupt.recv() => Ok(()),
    };
    if args.follow && served.is_ok() {
        server.finish(&client).await?;
    }
    client.flush().await;
    let counters = server.counters();
    eprintln!("{} Interests, {} Data sent; {}", counters.interests, counters.data, extent(&server));
    served.map_err(|error| match error {
        StreamError::Respond(error) => error.into(),
        StreamError::Input(_) => Failure::new(ExitCode::Failed, format!("{}: {error}", serving.stream)),
    })
}

fn source(args: &Args) -> Result<(StreamSource, Option<Arc<File>>), Failure> {
    if !args.follow {
        let is_input = is_standard_input(&args.file);
        let source = if is_input { StreamSource::StandardInput } else { StreamSource::Path(args.file.clone()) };
        return Ok((source, None));
    }
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(ExitCode::Failed, format!("cannot follow {}: {why}", args.file.display()))
    };
    let file = File::open(&args.file).map_err(|error| failed(&error))?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(failed(&"not a regular file"));
    }
    let file = Arc::new(file);
    Ok((StreamSource::Growing(Arc::clone(&file)), Some(file)))
}

fn say(args: &Args, server: &StreamServer, event: StreamEvent) {
    match event {
        StreamEvent::InputEnded => eprintln!("namewire: the input has ended: {}", extent(server)),
        StreamEvent::AllSent => {
            let oldest = server.oldest_segment();
            let kept = if oldest == 0 { "all of it".to_owned() } else { format!("what follows segment {oldest}") };
            let next = match args.once {
                true => "ending when nothing is asked for any more".to_owned(),
                false => format!("serving {kept} on; Ctrl-C to stop"),
            };
            eprintln!("namewire: the whole stream has been sent once; {next}");
        }
        StreamEvent::Standing(change) => say_standing(&args.name, &change),
    }
}

/// How long the stream is.
fn extent(server: &StreamServer) -> String {
    format!("{} in {} segments", quantity::bytes(server.bytes()), server.segments())
}
