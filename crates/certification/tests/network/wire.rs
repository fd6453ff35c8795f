//! A forwarder of one route, in memory: what follows runs on simulated time.
//!
//! Every client is on a wire. Interests go to the client that has registered the longest prefix, or the prefix of their
//! forwarding hint; Data goes back to whoever asked. A wire can be cut.

use namewire_client::Client;
use namewire_packet::{
    Data, DataBuilder, Interest, NameBuf,
    lp::LpPacket,
    nfd::{ControlParameters, ControlResponse},
    tlv::{element_size, types},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
    sync::mpsc::{UnboundedSender, unbounded_channel},
};

#[derive(Default)]
struct Tables {
    ends: Vec<UnboundedSender<Vec<u8>>>,
    routes: Vec<(NameBuf, usize)>,
    pending: HashMap<NameBuf, Vec<usize>>,
    cut: Vec<usize>,
}

#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<Tables>>);

impl Network {
    /// A client on a new wire, with the number of the wire.
    pub(crate) fn client(&self) -> (Client, usize) {
        let (ours, theirs) = duplex(1 << 20);
        let (sender, mut frames) = unbounded_channel::<Vec<u8>>();
        let wire = {
            let mut tables = self.0.lock().unwrap();
            tables.ends.push(sender);
            tables.ends.len() - 1
        };
        let (reader, mut writer) = split(theirs);
        tokio::spawn(async move {
            while let Some(frame) = frames.recv().await {
                if writer.write_all(&frame).await.is_err() {
                    return;
                }
            }
        });
        let network = self.clone();
        tokio::spawn(async move { network.read(wire, reader).await });
        (Client::from_stream(ours, true), wire)
    }

    /// Cuts or mends a wire: frames of both directions vanish while it is cut.
    pub(crate) fn cut(&self, wire: usize, is_cut: bool) {
        let mut tables = self.0.lock().unwrap();
        tables.cut.retain(|other| *other != wire);
        if is_cut {
            tables.cut.push(wire);
        }
    }

    async fn read(self, wire: usize, mut reader: tokio::io::ReadHalf<DuplexStream>) {
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        loop {
            match reader.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            }
            while let Some(size) = element_size(&bytes).unwrap().filter(|size| *size <= bytes.len()) {
                let frame: Vec<u8> = bytes.drain(..size).collect();
                self.forward(wire, &frame);
            }
        }
    }

    fn forward(&self, from: usize, frame: &[u8]) {
        let packet = match frame[0] {
            100 => LpPacket::parse(frame).unwrap().fragment.unwrap_or_default().to_vec(),
            _ => frame.to_vec(),
        };
        let mut tables = self.0.lock().unwrap();
        let tables = &mut *tables;
        if tables.cut.contains(&from) {
            return;
        }
        let send = |tables: &Tables, to: usize, packet: Vec<u8>| {
            if !tables.cut.contains(&to) {
                let _ = tables.ends[to].send(packet);
            }
        };
        if packet.first() == Some(&(types::DATA as u8)) {
            let data = Data::parse(&packet).unwrap();
            let asked: Vec<NameBuf> = tables.pending.keys().filter(|name| answers(name, &data)).cloned().collect();
            for name in asked {
                for to in tables.pending.remove(&name).unwrap() {
                    send(tables, to, packet.clone());
                }
            }
            return;
        }
        let Ok(interest) = Interest::parse(&packet) else { return };
        let name = interest.name();
        if name.to_string().starts_with("/localhost/nfd") {
            let answer = register(tables, from, &interest);
            send(tables, from, answer);
            return;
        }
        let hint = interest.forwarding_hint().next();
        let by = hint.unwrap_or(name);
        let route = tables.routes.iter().filter(|(prefix, _)| prefix.as_name().is_prefix_of(&by));
        if let Some(&(_, to)) = route.max_by_key(|(prefix, _)| prefix.len()) {
            tables.pending.entry(name.to_buf()).or_default().push(from);
            send(tables, to, packet.clone());
        }
    }
}

fn answers(asked: &NameBuf, data: &Data<'_>) -> bool {
    let asked = namewire_ndncert::requester::without_digest(asked.as_name());
    asked.is_prefix_of(&data.name())
}

fn register(tables: &mut Tables, from: usize, interest: &Interest<'_>) -> Vec<u8> {
    let parameters = interest.name().get(4).and_then(|component| ControlParameters::decode(component.value).ok());
    if interest.name().get(2).is_some_and(|module| module.value == b"rib")
        && let Some(name) = parameters.clone().and_then(|parameters| parameters.name)
    {
        tables.routes.retain(|(other, _)| *other != name);
        tables.routes.push((name, from));
    }
    let response = ControlResponse { code: 200, text: "OK".to_owned(), body: parameters };
    DataBuilder::new(interest.name()).content(&response.to_wire()).sign_digest()
}
