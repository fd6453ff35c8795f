//! Passes the frames of a link to the captures that include the link. Other links only check an empty list.

use namewire_packet::lp::LpHeaders;

use super::LinkService;
use crate::LinkDrop;
use crate::capture::FaceTap;

impl LinkService {
    /// From now on, this tap gets every frame.
    pub fn add_tap(&mut self, tap: FaceTap) {
        self.taps.push(tap);
    }

    /// Ends the part that the link has in a capture.
    pub fn end_tap(&mut self, capture_id: u64) {
        self.taps.extract_if(.., |tap| tap.capture_id() == capture_id).for_each(|tap| tap.end(None));
    }

    /// Ends its part in all captures, though the face stays.
    pub fn leave_captures(&mut self) {
        self.taps.drain(..).for_each(|tap| tap.end(None));
    }

    /// Ends its part in all captures, because the face closes.
    pub fn end_taps(&mut self, reason: impl std::fmt::Display) {
        self.taps.drain(..).for_each(|tap| tap.end(Some(reason.to_string())));
    }

    /// True if the link is in this capture.
    pub fn has_tap(&self, capture_id: u64) -> bool {
        self.taps.iter().any(|tap| tap.capture_id() == capture_id)
    }

    #[cold]
    pub(super) fn tap_received(&mut self, frame: &[u8]) {
        self.taps.iter_mut().for_each(|tap| tap.note(false, &[], frame));
    }

    /// [`LinkService::encode`] of a link with taps.
    ///
    /// N.B. without the `dyn`, each caller of `encode` would have a second copy of all the code below it.
    #[cold]
    pub(super) fn encode_tapped(
        &mut self,
        now_ns: u64,
        headers: &LpHeaders,
        packet: &[u8],
        emit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), LinkDrop> {
        let mut taps = std::mem::take(&mut self.taps);
        let mut tap_and_emit = |header: &[u8], slice: &[u8]| {
            taps.iter_mut().for_each(|tap| tap.note(true, header, slice));
            emit(header, slice);
        };
        let sent = self.encode_untapped(now_ns, headers, packet, &mut tap_and_emit as &mut dyn FnMut(&[u8], &[u8]));
        self.taps = taps;
        sent
    }

    /// [`LinkService::pump`] of a link with taps.
    #[cold]
    pub(super) fn pump_tapped(&mut self, now_ns: u64, may_retransmit: bool, emit: &mut dyn FnMut(&[u8], &[u8])) {
        let mut taps = std::mem::take(&mut self.taps);
        let mut tap_and_emit = |header: &[u8], slice: &[u8]| {
            taps.iter_mut().for_each(|tap| tap.note(true, header, slice));
            emit(header, slice);
        };
        self.pump_untapped(now_ns, may_retransmit, &mut tap_and_emit as &mut dyn FnMut(&[u8], &[u8]));
        self.taps = taps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{CaptureOptions, CaptureReader, CaptureScope, CaptureTap, Taken, capture};
    use crate::{FaceInfo, LinkOptions, LinkPolicy};
    use namewire_packet::FaceId;
    use namewire_packet::nfd::{CaptureRecord, FacePersistency, FaceScope, FaceUri, LinkType};

    fn tap() -> (CaptureTap, CaptureReader) {
        let scope = CaptureScope::Named;
        capture(CaptureOptions { id: 1, scope, one_in: 1, snap_bytes: 8800, queue_bytes: 1 << 20 })
    }

    fn tapped(options: LinkOptions, tap: &CaptureTap) -> LinkService {
        let info = FaceInfo {
            remote: FaceUri::Fd(7),
            local: FaceUri::Internal,
            scope: FaceScope::Local,
            persistency: FacePersistency::OnDemand,
            link_type: LinkType::PointToPoint,
            mtu: options.mtu,
            credentials: None,
        };
        let mut link = LinkService::new(options);
        link.add_tap(tap.of_face(FaceId(300), &info));
        link
    }

    /// Direction and bytes of the frames, without the introduction.
    fn frames(reader: &mut CaptureReader) -> Vec<(bool, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Taken::Record(record) = reader.take() {
            if let CaptureRecord::Frame(frame) = record {
                frames.push((frame.is_sent, frame.bytes.into_vec()));
            }
        }
        frames
    }

    #[test]
    fn each_frame_is_shown_as_the_link_carries_it() {
        let (tap, mut reader) = tap();
        let policy = LinkPolicy { reliability: true, ..LinkPolicy::default() };
        let options = LinkOptions { fragmentation: true, mtu: 300, policy, ..LinkOptions::default() };
        let (mut link, mut peer) = (tapped(options, &tap), LinkService::new(options));
        let mut data = Vec::new();
        namewire_packet::tlv::write_tlv(&mut data, 6, &[0; 600]);
        let mut sent = Vec::new();
        let mut keep = |header: &[u8], slice: &[u8]| sent.push((true, [header, slice].concat()));
        link.encode(0, &LpHeaders::default(), &data, &mut keep).unwrap();
        link.pump(2_000_000_000, true, &mut keep);
        assert!(sent.len() >= 4, "some fragments, and the first of them once more: {}", sent.len());
        assert_eq!(frames(&mut reader), sent);

        let mut received = vec![vec![0xFF], vec![]];
        peer.encode(0, &LpHeaders::default(), &data, |header, slice| received.push([header, slice].concat())).unwrap();
        for frame in &received {
            let _ = link.receive(3_000_000_000, frame);
        }
        let received: Vec<_> = received.into_iter().map(|frame| (false, frame)).collect();
        assert_eq!(frames(&mut reader), received, "malformed ones too");
    }

    #[test]
    fn the_end_of_a_capture_leaves_the_others() {
        let ((first, mut first_reader), (tap, mut reader)) = (tap(), tap());
        let mut link = tapped(LinkOptions::default(), &tap);
        drop(first);
        assert_eq!(first_reader.take(), Taken::Ended);
        link.end_tap(2);
        assert!(link.has_tap(1) && !link.has_tap(2));
        link.end_tap(1);
        drop(tap);
        assert!(matches!(reader.take(), Taken::Record(CaptureRecord::Left(left)) if left.reason.is_none()));
        assert_eq!(reader.take(), Taken::Ended);
        let _ = link.receive(0, &[5, 5, 7, 3, 8, 1, b'a']);
    }
}
