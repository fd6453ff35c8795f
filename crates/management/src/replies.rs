//! Answers: how they are built, counted and kept.

use crate::{
    command::COMMAND_NAME_LEN,
    counters::ManagementCounters,
    dataset_store::{DatasetStore, FRESHNESS_MS},
    effect::Effect,
    log_lines,
};
use namewire_packet::{
    DataBuilder, FaceId, MAX_PACKET_BYTES, NameBuf,
    lp::PitToken,
    nfd::{ControlParameters, ControlResponse},
};

/// The destination of an answer.
#[derive(Clone, Debug)]
pub(crate) struct ReplyTo {
    /// The face that the request came from.
    pub(crate) from: FaceId,
    pub(crate) name: NameBuf,
    pub(crate) pit_token: Option<PitToken>,
}

/// The answers of one node.
pub(crate) struct Replies {
    pub(crate) store: DatasetStore,
    pub(crate) counters: ManagementCounters,
}

impl Replies {
    pub(crate) fn new(store: DatasetStore) -> Self {
        Replies { store, counters: ManagementCounters::default() }
    }

    pub(crate) fn succeed(&mut self, to: &ReplyTo, body: ControlParameters, out: &mut Vec<Effect>) {
        self.counters.commands_ok += 1;
        self.store.note_change();
        self.respond(to, &ControlResponse::ok(body), FRESHNESS_MS, out);
    }

    pub(crate) fn refuse(&mut self, to: &ReplyTo, refusal: &ControlResponse, out: &mut Vec<Effect>) {
        self.counters.refused += 1;
        log_lines::refused(to, refusal);
        // A command's name is used only once. Another request may succeed the next time, so its refusal is not fresh.
        let is_command = to.name.len() > COMMAND_NAME_LEN;
        self.respond(to, refusal, if is_command { FRESHNESS_MS } else { 0 }, out);
    }

    fn respond(&mut self, to: &ReplyTo, response: &ControlResponse, freshness_ms: u64, out: &mut Vec<Effect>) {
        let packet = DataBuilder::new(&to.name).freshness_ms(freshness_ms).content(&response.to_wire()).sign_digest();
        self.send(packet, to.pit_token, out);
    }

    /// Emits a reply if it fits into a packet. True if it did.
    pub(crate) fn send(&mut self, packet: Vec<u8>, pit_token: Option<PitToken>, out: &mut Vec<Effect>) -> bool {
        let fits = packet.len() <= MAX_PACKET_BYTES;
        if fits {
            out.push(Effect::Reply { packet, pit_token });
        } else {
            self.counters.reply_too_large += 1;
        }
        fits
    }
}
