//! Tag audit: where did every copy of a tag packet end?
//!
//! The audit reads the trace, packet by packet. It checks three laws:
//!
//! - A copy that was sent over a link arrives there once, or the trace has the reason why not.
//! - A copy that arrived at a router leaves it, or the router names a drop.
//! - No packet leaves a router twice by one face, so no packet loops.
//!
//! Limits: packets that fit into one frame, hop limits that are not used up, links that duplicate nothing, and a
//! network in which no tag packet is in flight any more.

use crate::network::{AppId, Network};
use crate::tag_application::{TagConsumer, TagSent};
use crate::trace::NodeId;
use crate::trace::{TraceEvent, TraceKind, tag_nonce};
use namewire_engine::FaceId;
use namewire_links::LinkDrop;
use namewire_packet::NameBuf;
use namewire_packet::tag::TagPacketKind;
use namewire_tagnet::forwarder::TagDrop;
use std::collections::{BTreeMap, BTreeSet};

/// The ends of all copies of tag packets, and the laws that they broke.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagLedger {
    /// Copies that applications sent.
    pub entered: u64,
    /// Copies that routers sent.
    pub forwarded: u64,
    /// Copies that applications got.
    pub delivered: u64,
    /// Copies that links lost.
    pub lost: u64,
    /// Copies that routers dropped, by reason.
    pub dropped: [u64; TagDrop::COUNT],
    /// The broken laws, as text.
    pub broken: Vec<String>,
}

/// What happened to one packet at one router.
#[derive(Default)]
struct AtRouter {
    arrived: u64,
    dropped: u64,
    sent: BTreeMap<FaceId, u64>,
}

/// What happened to one packet.
#[derive(Default)]
struct Journey {
    sent: u64,
    ended: u64,
    routers: BTreeMap<NodeId, AtRouter>,
}

impl Network {
    /// The ledger of all tag packets so far.
    ///
    /// # Panics
    /// If the trace was too short to keep every event.
    pub fn audit_tags(&self) -> TagLedger {
        assert_eq!(self.trace().not_kept(), 0, "the trace is incomplete");
        let mut ledger = TagLedger::default();
        let mut journeys: BTreeMap<&NameBuf, Journey> = BTreeMap::new();
        for event in self.trace().events() {
            let Some(name) = event.name.as_deref() else { continue };
            if tag_nonce(name).is_some() {
                ledger.enter(journeys.entry(name).or_default(), event);
            }
        }
        for (name, journey) in &journeys {
            ledger.check(name, journey);
        }
        ledger
    }

    /// The pulls of these consumers that got no answer although the trace shows no loss and no drop of any of their
    /// packets.
    ///
    /// # Panics
    /// If an application is no [`TagConsumer`], or the trace was too short to keep every event.
    pub fn unexplained_pulls(&self, consumers: impl IntoIterator<Item = AppId>) -> Vec<&TagSent> {
        let explained = self.requests_with(|kind| !matches!(kind, TraceKind::Sent | TraceKind::Received));
        let sent = consumers.into_iter().flat_map(|consumer| self.application::<TagConsumer>(consumer).sent());
        let unanswered = sent.filter(|sent| sent.request.kind == TagPacketKind::Pull && sent.replies.is_empty());
        unanswered.filter(|sent| !sent.nonces.iter().all(|nonce| explained.contains(nonce))).collect()
    }

    /// The nonces of requests of which some packet met such an event: the request, or an answer.
    ///
    /// # Panics
    /// If the trace was too short to keep every event.
    pub fn requests_with(&self, is_wanted: impl Fn(TraceKind) -> bool) -> BTreeSet<u32> {
        assert_eq!(self.trace().not_kept(), 0, "the trace is incomplete");
        let wanted = self.trace().events().iter().filter(|event| is_wanted(event.kind));
        wanted.filter_map(|event| tag_nonce(event.name.as_deref()?)).collect()
    }
}

impl TagLedger {
    /// An application's end of its link has no face.
    fn enter(&mut self, journey: &mut Journey, event: &TraceEvent) {
        let is_application = event.face == FaceId::INVALID;
        let router = journey.routers.entry(event.node).or_default();
        match event.kind {
            TraceKind::Sent => {
                journey.sent += 1;
                if is_application {
                    self.entered += 1;
                } else {
                    self.forwarded += 1;
                    *router.sent.entry(event.face).or_default() += 1;
                }
            }
            TraceKind::Received => {
                journey.ended += 1;
                if is_application {
                    self.delivered += 1;
                } else {
                    router.arrived += 1;
                }
            }
            TraceKind::LinkDropped(LinkDrop::NoSuchFace) => {
                // The face is gone: the copy left its router and reached no link.
                (journey.sent, journey.ended) = (journey.sent + 1, journey.ended + 1);
                self.forwarded += 1;
                self.lost += 1;
                *router.sent.entry(event.face).or_default() += 1;
            }
            TraceKind::LinkLost(_) | TraceKind::AirLost(_) | TraceKind::LinkDropped(_) => {
                journey.ended += 1;
                self.lost += 1;
            }
            TraceKind::TagDropped(why) => {
                router.dropped += 1;
                self.dropped[why as usize] += 1;
            }
            TraceKind::EngineDropped(_) => self.broken.push(format!("an engine dropped a tag packet: {event:?}")),
        }
    }

    fn check(&mut self, name: &NameBuf, journey: &Journey) {
        let Journey { sent, ended, routers } = journey;
        if sent != ended {
            self.broken.push(format!("{name:?}: {sent} copies sent, {ended} ended"));
        }
        for (node, router) in routers {
            let copies: u64 = router.sent.values().sum();
            let stayed = router.arrived.saturating_sub(router.dropped);
            let is_lawful = router.dropped <= router.arrived && copies >= stayed && (copies == 0) == (stayed == 0);
            if !is_lawful {
                let AtRouter { arrived, dropped, .. } = router;
                self.broken.push(format!("{name:?} at {node:?}: {arrived} arrived, {dropped} dropped, {copies} left"));
            }
            if router.sent.values().any(|count| *count > 1) {
                self.broken.push(format!("{name:?} at {node:?} goes in a circle: {:?}", router.sent));
            }
        }
    }

    /// Copies that routers dropped for this reason.
    pub fn dropped(&self, why: TagDrop) -> u64 {
        self.dropped[why as usize]
    }
}
