//! `namewire put FILE`: a regular file, which may change.

use super::{Args, look_first, say_standing};
use crate::{Failure, Global, certificates::SignersCertificates, quantity};
use namewire_client::PublishOptions;
use namewire_files::{
    file_server::{FileEvent, FileServer},
    standing::Registration,
};
use serde::Serialize;
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Printed once a version is registered.
#[derive(Serialize)]
struct Serving {
    versioned_name: String,
    size_bytes: u64,
    segments: u64,
    /// Certificates of the signer that are served as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificates: Option<usize>,
}

pub(super) async fn execute(global: &Global, args: Args) -> Result<(), Failure> {
    let options =
        PublishOptions { version: args.version, has_manifest: args.manifest, ..args.segments.publish_options(global)? };
    let mut server = FileServer::open(&args.file, &args.name, options).await?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let client = global.connect().await?;
    let first = look_first(&client, &args.name, server.version()).await;
    let mut registration = Registration::new(&client, &args.name, server.version(), first).await?;
    let certificates = SignersCertificates::serve(global, &client).await?;
    say_serving(global, &server, &certificates)?;
    let mut told = Ok(());
    let tell = |server: &FileServer, event: FileEvent| match event {
        FileEvent::NewVersion => {
            eprintln!("namewire: {} has changed; this is its new version", args.file.display());
            if let Err(error) = say_serving(global, server, &certificates) {
                told = Err(error);
            }
        }
        FileEvent::Standing(change) => say_standing(&args.name, &change),
    };
    tokio::select! {
        served = server.serve(&mut registration, tell) => served?,
        _ = interrupt.recv() => {}
    }
    told?;
    client.flush().await;
    let counters = server.counters();
    eprintln!(
        "{} Interests, {} segments and {} sent",
        counters.interests,
        counters.segments,
        quantity::bytes(counters.bytes)
    );
    Ok(())
}

fn say_serving(global: &Global, server: &FileServer, certificates: &SignersCertificates) -> io::Result<()> {
    let current = server.current();
    let serving = Serving {
        versioned_name: current.versioned_name().to_string(),
        size_bytes: current.size_bytes(),
        segments: current.segments(),
        certificates: certificates.count,
    };
    global.output().print_line(&serving, || {
        format!(
            "serving {} ({}, {} segments{}); Ctrl-C to stop",
            serving.versioned_name,
            quantity::bytes(serving.size_bytes),
            serving.segments,
            certificates.text()
        )
    })
}
