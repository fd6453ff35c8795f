//! Timer wheel: which ids are due?
//!
//! Source: Varghese and Lauck, "Hashed and hierarchical timing wheels" (1987), scheme 6: one hashed wheel,
//! each slot an unsorted list. An alarm that is more than one turn away stays in its slot; the wheel skips
//! it until the turn in which it is due.
//!
//! Deviation: nothing stops an alarm. Nearly every Interest is answered long before it expires, so most
//! timers would be stopped and their list changed twice for nothing. Here an id has at most one *alarm*, the
//! owner keeps the deadlines, and an alarm may come too early, because the id no longer needs it or its
//! deadline has moved. The owner then ignores it, or arms the id again. Arming an id whose alarm is not
//! later than the new deadline changes nothing. So a slot that many entries use one after the other costs
//! one change of the lists each time that its alarm comes, not two per entry.
//!
//! An alarm comes at the first tick boundary at or after the deadline that it was set for: never before the
//! deadline, less than one tick late. There are never more alarms than ids. Each call of
//! [`TimerWheel::arm`] adds at most one, so no more alarms come than there were calls. The links of the
//! lists are in the nodes of the ids, so arming is O(1) and allocates nothing. A bitmap of occupied slots
//! makes empty time free: a jump of hours costs at most one turn.
//!
//! ```text
//! node, 16 bytes, four to a line:
//!  0          8                                                12              16
//!  | deadline | 0 no alarm, 1 first of a slot, 2 first of the  | 0 none, else  |
//!  |  ns      | list of the past, else 3 + id of the one before| 1 + id after  |
//! ```
//!
//! Cost: arming reads 1 line of the node. If that changes the alarm, it also writes 1 line of the list head,
//! and 1 per neighbour. Expiry reads 1 line for each alarm that it examines, even if the alarm is due in a
//! later turn. Senders choose the deadlines, so all alarms may share a slot. Therefore the caller limits how
//! many alarms a call examines.
//! Bytes: an id takes 16, a slot 4. They are mapped at the start and touched when used.
//! Writers: the owner.

use crate::pages::{PageArray, PageSize};
use crate::prefetch::prefetch;
use crate::slab::NIL;
use bytemuck::Zeroable;
use std::io;

/// The fewest slots: one word of the bitmap.
pub const MIN_SLOTS: usize = 64;
/// The most slots.
pub const MAX_SLOTS: usize = 1 << 20;

/// Alarms of small integer ids, at most one per id.
pub struct TimerWheel {
    tick_ns: u64,
    slot_mask: u64,
    /// First id per slot; the last element begins the list of alarms set for the past.
    heads: Vec<u32>,
    /// One bit per slot; the list of the past has none.
    occupied: Vec<u64>,
    nodes: PageArray<Node>,
    alarms: usize,
    /// The tick whose slot was begun last; all earlier ticks are done.
    current_tick: u64,
    /// The next id to look at in the slot of `current_tick`.
    cursor: u32,
}

/// All zero: no alarm.
#[derive(Clone, Copy, Zeroable)]
struct Node {
    deadline_ns: u64,
    before: u32,
    after: u32,
}

const _: () = assert!(size_of::<Node>() == 16);

const NO_ALARM: u32 = 0;
const FIRST_OF_SLOT: u32 = 1;
const FIRST_OF_PAST: u32 = 2;
/// Ids in `before` are stored as id + this number.
const FIRST_ID: u32 = 3;

impl Node {
    #[inline(always)]
    fn has_alarm(&self) -> bool {
        self.before != NO_ALARM
    }

    fn previous(&self) -> Option<u32> {
        self.before.checked_sub(FIRST_ID)
    }

    fn next(&self) -> Option<u32> {
        self.after.checked_sub(1)
    }
}

impl TimerWheel {
    /// A wheel of `slots` slots (rounded up to a power of two, [`MIN_SLOTS`] to
    /// [`MAX_SLOTS`]) of `tick_ns` (at least 1) each, for the ids below `capacity_ids`
    /// (at most 2³² - 4).
    ///
    /// # Errors
    /// If the kernel does not map the memory.
    pub fn new(tick_ns: u64, slots: usize, capacity_ids: u32, pages: PageSize) -> io::Result<Self> {
        let slots = slots.clamp(MIN_SLOTS, MAX_SLOTS).next_power_of_two();
        Ok(Self {
            tick_ns: tick_ns.max(1),
            slot_mask: slots as u64 - 1,
            heads: vec![NIL; slots + 1],
            occupied: vec![0; slots / 64],
            nodes: PageArray::zeroed(capacity_ids.min(u32::MAX - FIRST_ID) as usize, pages)?,
            alarms: 0,
            current_tick: 0,
            cursor: NIL,
        })
    }

    /// Makes sure that an alarm of `id` comes at the first tick boundary at or after `deadline_ns`, or earlier.
    ///
    /// # Panics
    /// If `id` is not below the capacity.
    #[inline(always)]
    pub fn arm(&mut self, id: u32, deadline_ns: u64) {
        let Some(node) = self.nodes.get(id as usize) else { self.beyond_capacity(id) };
        if !node.has_alarm() || node.deadline_ns > deadline_ns {
            self.set_alarm(id, deadline_ns);
        }
    }

    #[cold]
    fn beyond_capacity(&self, id: u32) -> ! {
        panic!("timer {id} is beyond the capacity of {}", self.nodes.len())
    }

    /// Sets the alarm of `id`, or moves it to an earlier deadline.
    #[inline(never)]
    fn set_alarm(&mut self, id: u32, deadline_ns: u64) {
        if self.has_alarm(id) {
            self.unlink(id);
        }
        let due_tick = deadline_ns.div_ceil(self.tick_ns);
        // The slot of the current tick may be half walked. So an alarm that is due by now goes to the list
        // that the next call reads first.
        let is_past = due_tick <= self.current_tick;
        let list = if is_past { self.past() } else { self.slot_of(due_tick) };
        let before = if is_past { FIRST_OF_PAST } else { FIRST_OF_SLOT };
        let head = std::mem::replace(&mut self.heads[list], id);
        self.nodes[id as usize] = Node { deadline_ns, before, after: head.wrapping_add(1) }; // NIL + 1 = 0
        if head != NIL {
            self.nodes[head as usize].before = id + FIRST_ID;
        }
        if !is_past {
            self.occupied[list / 64] |= 1 << (list % 64);
        }
        self.alarms += 1;
    }

    /// Begins to fetch what arming `id` reads first.
    #[inline]
    pub fn prefetch(&self, id: u32) {
        if let Some(node) = self.nodes.get(id as usize) {
            prefetch(node);
        }
    }

    /// Whether an alarm of `id` will come.
    pub fn has_alarm(&self, id: u32) -> bool {
        self.nodes.get(id as usize).is_some_and(Node::has_alarm)
    }

    /// How many alarms will come.
    pub fn len(&self) -> usize {
        self.alarms
    }

    /// Whether no alarm will come.
    pub fn is_empty(&self) -> bool {
        self.alarms == 0
    }

    /// The id of an alarm that comes now; arming the id again sets a new one. Subtracts the alarms it looked at from
    /// `visits`.
    ///
    /// Call it until `None`: nothing more is due, or `visits` is 0. In the second case
    /// [`TimerWheel::next_deadline`] is not after now as long as something may be due. `now_ns` must not
    /// run backwards. Ids come roughly in the order of their deadlines; after a jump of more than a turn,
    /// in the order of slots.
    pub fn pop_expired(&mut self, now_ns: u64, visits: &mut u32) -> Option<u32> {
        let now_tick = now_ns / self.tick_ns;
        let late = self.heads[self.past()];
        if late != NIL {
            *visits = visits.checked_sub(1)?;
            self.unlink(late);
            return Some(late);
        }
        loop {
            let boundary_ns = self.current_tick * self.tick_ns; // at most `now_ns`
            while self.cursor != NIL {
                *visits = visits.checked_sub(1)?;
                let id = self.cursor;
                let node = self.nodes[id as usize];
                self.cursor = node.next().unwrap_or(NIL);
                if node.deadline_ns <= boundary_ns {
                    self.unlink(id);
                    return Some(id);
                }
            }
            if self.current_tick >= now_tick {
                return None;
            }
            // One turn visits every slot once, and each at the last tick before
            // `now_tick` that maps to it: nothing due is passed over.
            let turn = self.slot_mask + 1;
            self.current_tick = self.current_tick.max(now_tick.saturating_sub(turn));
            match self.next_occupied(self.current_tick + 1) {
                Some(tick) if tick <= now_tick => {
                    self.current_tick = tick;
                    self.cursor = self.heads[self.slot_of(tick)];
                }
                _ => {
                    self.current_tick = now_tick;
                    return None;
                }
            }
        }
    }

    /// When to call [`TimerWheel::pop_expired`] next, in nanoseconds: `None` = no alarm will come.
    ///
    /// Never later than the first alarm comes. May be earlier if the first alarm is further away than one
    /// turn.
    pub fn next_deadline(&self) -> Option<u64> {
        if self.alarms == 0 {
            return None;
        }
        let tick = if self.heads[self.past()] != NIL || self.cursor != NIL {
            self.current_tick
        } else {
            self.next_occupied(self.current_tick.saturating_add(1))?
        };
        Some(tick.saturating_mul(self.tick_ns))
    }

    /// The index of the list of alarms that were set for the past.
    fn past(&self) -> usize {
        self.heads.len() - 1
    }

    fn slot_of(&self, tick: u64) -> usize {
        (tick & self.slot_mask) as usize
    }

    /// Takes an alarm out of its list.
    fn unlink(&mut self, id: u32) {
        let node = std::mem::replace(&mut self.nodes[id as usize], Node::zeroed());
        let next = node.next();
        if self.cursor == id {
            self.cursor = next.unwrap_or(NIL);
        }
        if let Some(next) = next {
            self.nodes[next as usize].before = node.before; // which also says whether it is the first now
        }
        match node.previous() {
            Some(previous) => self.nodes[previous as usize].after = node.after,
            None => {
                let is_past = node.before == FIRST_OF_PAST;
                let list = if is_past { self.past() } else { self.slot_of(node.deadline_ns.div_ceil(self.tick_ns)) };
                self.heads[list] = next.unwrap_or(NIL);
                if next.is_none() && !is_past {
                    self.occupied[list / 64] &= !(1 << (list % 64));
                }
            }
        }
        self.alarms -= 1;
    }

    /// The first tick from `tick` on, within one turn, whose slot holds an alarm.
    fn next_occupied(&self, tick: u64) -> Option<u64> {
        let start = self.slot_of(tick);
        let mut word = start / 64;
        let mut bits = self.occupied[word] & (u64::MAX << (start % 64));
        // The first word comes again at the end, for its bits before `start`.
        for _ in 0..=self.occupied.len() {
            if bits != 0 {
                let slot = word as u64 * 64 + u64::from(bits.trailing_zeros());
                let ahead = slot.wrapping_sub(start as u64) & self.slot_mask;
                return Some(tick.saturating_add(ahead));
            }
            word = (word + 1) % self.occupied.len();
            bits = self.occupied[word];
        }
        None
    }
}
