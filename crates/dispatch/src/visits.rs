//! Visits: which workers does a packet still have to visit, and in which order?

/// A set of workers, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers(pub u64);

impl Workers {
    /// Just one worker.
    #[inline]
    pub const fn only(worker: u8) -> Self {
        Workers(1 << worker)
    }

    /// True if `worker` is among them.
    #[inline]
    pub const fn contains(self, worker: u8) -> bool {
        self.0 & 1 << worker != 0
    }

    /// These without `worker`.
    #[inline]
    const fn without(self, worker: u8) -> Self {
        Workers(self.0 & !Workers::only(worker).0)
    }

    /// The workers, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let worker = left.trailing_zeros() as u8;
            left &= left.wrapping_sub(1);
            (worker < 64).then_some(worker)
        })
    }
}

/// The workers that a packet still has to visit. An Interest visits one, and may look for stored Data at the others
/// first. Data visits every worker where an Interest may be pending for it.
///
/// ```text
///  bytes  0..8   8      9
///          left   last   flags: 1 first, 2 answered, 4 refused
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visits {
    /// Workers still to visit.
    left: Workers,
    /// The one of them that comes last: the home of the name.
    last: u8,
    flags: u8,
}

impl Default for Visits {
    /// This worker, and no other.
    #[inline]
    fn default() -> Self {
        Visits::new(Workers(0), 0)
    }
}

impl Visits {
    /// Bytes of the encoded form.
    pub const BYTES: usize = 10;

    /// No worker was visited before.
    const FIRST: u8 = 1;
    /// An Interest was pending for it at an earlier worker.
    const ANSWERED: u8 = 2;
    /// An Interest was pending for it, but its face was not asked.
    const REFUSED: u8 = 4;

    #[inline]
    pub(crate) const fn new(left: Workers, last: u8) -> Self {
        Visits { left, last, flags: Visits::FIRST }
    }

    pub(crate) const fn only(worker: u8) -> Self {
        Visits::new(Workers::only(worker), worker)
    }

    /// Workers still to visit.
    #[inline]
    pub const fn left(&self) -> Workers {
        self.left
    }

    /// True if none is left.
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.left.0 == 0
    }

    /// Takes the next worker off the list: `here` if it may come now, else another. There must be one.
    #[inline]
    pub fn take(&mut self, here: u8) -> u8 {
        debug_assert!(!self.is_over());
        let before_last = self.left.without(self.last);
        let next = match before_last.contains(here) {
            true => here,
            false => before_last.iter().next().unwrap_or(self.last),
        };
        self.left = self.left.without(next);
        next
    }

    /// Takes `here` off the list if it may come now.
    #[inline]
    pub fn take_only(&mut self, here: u8) -> bool {
        let mut after = *self;
        let is_next = !self.is_over() && after.take(here) == here;
        if is_next {
            *self = after;
        }
        is_next
    }

    /// True if no other worker was or will be visited.
    #[inline]
    pub const fn is_alone(&self) -> bool {
        self.flags & (Visits::FIRST | Visits::ANSWERED) == Visits::FIRST && self.is_over()
    }

    /// No worker was visited before.
    #[inline]
    pub const fn is_first(&self) -> bool {
        self.flags & Visits::FIRST != 0
    }

    /// An Interest was pending for the Data, here or at an earlier worker.
    #[inline]
    pub const fn is_answered(&self) -> bool {
        self.flags & Visits::ANSWERED != 0
    }

    /// One was, but not for Data of this face.
    #[inline]
    pub const fn is_refused(&self) -> bool {
        self.flags & Visits::REFUSED != 0
    }

    /// The same; an Interest was pending for the Data.
    #[inline]
    pub const fn with_answer(self) -> Self {
        Visits { flags: self.flags | Visits::ANSWERED, ..self }
    }

    /// The same; an Interest was pending for Data of another face.
    #[inline]
    pub const fn with_refusal(self) -> Self {
        Visits { flags: self.flags | Visits::REFUSED, ..self }
    }

    /// The remaining visits, for the next worker.
    #[inline]
    pub const fn going_on(self) -> Self {
        Visits { flags: self.flags & !Visits::FIRST, ..self }
    }

    /// The encoded form, for a ring.
    pub fn to_bytes(self) -> [u8; Visits::BYTES] {
        let mut bytes = [0; Visits::BYTES];
        bytes[..8].copy_from_slice(&self.left.0.to_le_bytes());
        bytes[8] = self.last;
        bytes[9] = self.flags;
        bytes
    }

    /// Reads what [`Visits::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8; Visits::BYTES]) -> Self {
        let [left @ .., last, flags] = *bytes;
        Visits { left: Workers(u64::from_le_bytes(left)), last, flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_is_visited_once_and_the_home_last() {
        let whole = Visits::new(Workers(0b1101_0010), 4);
        for here in [0, 1, 4, 6, 63] {
            let mut visits = Visits::from_bytes(&whole.to_bytes());
            assert_eq!(visits, whole);
            let asked: Vec<u8> = std::iter::from_fn(|| (!visits.is_over()).then(|| visits.take(here))).collect();
            let mut sorted = asked.clone();
            sorted.sort();
            assert_eq!((sorted, asked.last()), (vec![1, 4, 6, 7], Some(&4)), "seen from {here}");
            assert!(asked[0] == here || ![1, 6].contains(&here), "its own share comes first: {asked:?}");
        }
        let mut visits = whole;
        assert!(!visits.take_only(4) && !visits.take_only(0) && visits.take_only(6) && !visits.take_only(6));
        for flags in [whole.going_on().with_answer(), whole.with_refusal(), whole.with_answer().with_refusal()] {
            assert_eq!(Visits::from_bytes(&flags.to_bytes()), flags);
        }
        assert!(Visits::default().is_over() && Visits::default().is_first());
    }
}
