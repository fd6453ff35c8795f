//! Sweep: background work on the table, a few buckets at a time.
//!
//! Source: ours; Yuan15 has lazy expiry only. Answers do not depend on the sweep (see [`super::ticks`]): an
//! expired entry is not found, and its place is reused when needed. The sweep does two things. It vacates
//! expired entries that no packet visits, so that [`FingerprintPit::occupied`] is meaningful, and face sets
//! and overflow entries are freed. And it clears entries of ports whose face is closed.
//!
//! A *turn* visits all buckets, then the overflow table. It takes [`TURN_NS`], and less while ports are
//! being cleared. For 2²¹ buckets (16 M entries) and 16.384 s, the sweep must visit 128 buckets a
//! millisecond. With [`SWEPT_PER_CALL`] a call, that needs 128 calls a second, and 2,048 for a turn in
//! [`PORT_TURN_NS`]. With fewer calls, turns take longer and nothing else changes. A bucket's own clock
//! tells future from past within 2³¹ ticks, 1.09 years. So a packet or the sweep must visit the bucket once
//! in that time.
//!
//! Clearing a port takes the rest of the present turn and one whole turn: 1 to 2 turns, up to 2.048 s.
//! Until then no answer names the port, and its Interests are refused. With face sets the port is cleared
//! at once, in one pass over the sets, 2.6 MB at most.

use super::FingerprintPit;
use super::config::FingerprintPitRefusal;
use super::port_set::PortSet;
use super::ticks::tick_at;

/// The time of a turn: as long as the timer of 10 bits.
const TURN_NS: u64 = 16_384_000_000;
/// The time of a turn while ports are being cleared.
const PORT_TURN_NS: u64 = 1_024_000_000;
/// The most buckets, or entries of the overflow table, that one call visits: 64 KiB in order.
const SWEPT_PER_CALL: usize = 1024;

/// The progress of the sweep.
#[derive(Default)]
pub(super) struct Sweep {
    /// The next place: first the buckets, then the overflow table.
    position: usize,
    /// The work due up to this time is done.
    done_ns: u64,
    /// The next place to search for expired entries when the overflow table is full.
    reclaim_position: usize,
    /// Ports that this turn clears.
    leaving: PortSet,
    /// Ports that the next turn clears.
    leaving_next: PortSet,
}

impl FingerprintPit {
    /// Visits the places that are due at `now_ns`, 1024 at most. Call it with every batch or every few
    /// milliseconds.
    pub fn sweep(&mut self, now_ns: u64) {
        self.latest_tick = self.latest_tick.max(tick_at(now_ns));
        let places = self.buckets.len() + self.overflow.capacity();
        let is_clearing = !self.sweep.leaving.is_empty() || !self.sweep.leaving_next.is_empty();
        let turn_ns = if is_clearing { PORT_TURN_NS } else { TURN_NS };
        let elapsed_ns = now_ns.saturating_sub(self.sweep.done_ns);
        let due = u128::from(elapsed_ns) * places as u128 / u128::from(turn_ns);
        if due <= SWEPT_PER_CALL as u128 {
            // The next call makes up for the fraction of a place that was rounded off.
            self.sweep.done_ns += (due * u128::from(turn_ns) / places as u128) as u64;
        } else {
            self.sweep.done_ns = now_ns;
        }
        for _ in 0..due.min(SWEPT_PER_CALL as u128) {
            self.sweep_place(self.sweep.position);
            self.sweep.position += 1;
            if self.sweep.position == places {
                self.sweep.position = 0;
                self.end_turn();
            }
        }
    }

    /// The faces of these ports are closed: from now on no answer names the ports. A port number can be
    /// used again once [`FingerprintPit::is_port_leaving`] is false. Cost, whatever the number of ports:
    /// with face sets a pass over the sets; else nothing now, and one turn of the sweep. Ports that the
    /// table does not have are ignored.
    pub fn remove_ports(&mut self, ports: impl IntoIterator<Item = u16>) {
        let ports: PortSet = ports.into_iter().filter(|&port| port < self.faces.ports()).collect();
        if !ports.is_empty() && self.faces.begin_removal(&ports) {
            self.sweep.leaving_next.extend(&ports);
        }
    }

    /// Whether entries are still being cleared of this port; its Interests are refused until they are.
    pub fn is_port_leaving(&self, port: u16) -> bool {
        self.sweep.leaving.contains(port) || self.sweep.leaving_next.contains(port)
    }

    /// Whether an Interest of this port can be recorded.
    #[inline(always)]
    pub(super) fn check_port(&self, port: u16) -> Result<(), FingerprintPitRefusal> {
        if port >= self.faces.ports() {
            return Err(FingerprintPitRefusal::UnknownPort);
        }
        if self.is_port_leaving(port) {
            return Err(FingerprintPitRefusal::PortLeaving);
        }
        Ok(())
    }

    /// Looks for expired entries in `places` places of the overflow table.
    pub(super) fn reclaim_overflowed(&mut self, places: usize) {
        for _ in 0..places.min(self.overflow.capacity()) {
            let place = self.sweep.reclaim_position;
            self.sweep.reclaim_position = (place + 1) % self.overflow.capacity();
            self.sweep_overflowed(place);
        }
    }

    fn sweep_place(&mut self, position: usize) {
        if position >= self.buckets.len() {
            return self.sweep_overflowed(position - self.buckets.len());
        }
        self.reset_expired(position, self.latest_tick as u32);
        let leaving = self.faces.leaving(self.shape.segment_of_bucket(position));
        if leaving != 0 {
            self.buckets[position].clear_faces(leaving);
        }
    }

    fn sweep_overflowed(&mut self, place: usize) {
        let entry = self.overflow.entry_mut(place);
        if !entry.is_occupied() {
            return;
        }
        if entry.expires_tick <= self.latest_tick {
            return self.expire_overflowed(place);
        }
        let (segment, _) = entry.class();
        entry.faces &= !self.faces.leaving(segment);
    }

    /// No entry names the ports that left before this turn began.
    fn end_turn(&mut self) {
        for port in self.sweep.leaving.iter() {
            self.faces.end_removal(port);
        }
        self.sweep.leaving = std::mem::take(&mut self.sweep.leaving_next);
    }
}
