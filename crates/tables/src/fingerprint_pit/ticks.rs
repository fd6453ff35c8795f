//! Ticks: times of expiry in 10 bits.
//!
//! Source: Yuan15 §5.4.2 (t = [`EXPIRY_BITS`], units of 16 ms, "the timer counts up to 16 seconds"). The
//! paper does not say how the timer rolls over; this way is ours. A bucket has, in 32 bits, a tick before
//! which none of its entries expires. An entry that is inserted before that tick expires 1 to
//! [`MAX_LIFETIME_TICKS`] ticks from now. That is less than 1024 ticks after the bucket's tick, so a time
//! modulo 1024 has one meaning. Once the tick is reached, the next visit vacates expired entries and moves
//! the tick to the first expiry of the others. So a bucket can stay without a visit for a year, and
//! [`super::sweep`] visits it earlier. Most visits make one comparison and read no expiry at all.
//!
//! A time of expiry is rounded up to a tick and the present down. So an entry lives at least as long as
//! requested, and less than a tick longer.

/// t of the paper.
pub(super) const EXPIRY_BITS: u32 = 10;
/// The unit of the paper: 16 ms.
pub(super) const TICK_NS: u64 = 16_000_000;
/// The longest lifetime that 10 bits can hold.
pub(super) const MAX_LIFETIME_TICKS: u16 = (1 << EXPIRY_BITS) - 1;
/// The longest lifetime that is kept in full: one tick less, for rounding.
pub const MAX_LIFETIME_NS: u64 = (MAX_LIFETIME_TICKS as u64 - 1) * TICK_NS;

/// The tick that a time lies in.
#[inline(always)]
pub(super) const fn tick_at(now_ns: u64) -> u64 {
    now_ns / TICK_NS
}

/// Ticks from `now_tick` until the entry is expired: at least one, at most what 10 bits can hold.
#[inline(always)]
pub(super) fn lifetime_ticks(now_tick: u64, expires_ns: u64) -> u16 {
    expires_ns.div_ceil(TICK_NS).saturating_sub(now_tick).clamp(1, MAX_LIFETIME_TICKS.into()) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_rounded_up_and_limited() {
        assert_eq!(lifetime_ticks(tick_at(15_999_999), 16_000_000), 1);
        assert_eq!(lifetime_ticks(tick_at(16_000_000), 16_000_001), 1);
        assert_eq!(lifetime_ticks(tick_at(31_999_999), 32_000_001), 2);
        assert_eq!(lifetime_ticks(5, 0), 1, "what is over lives a tick");
        assert_eq!(lifetime_ticks(0, u64::MAX), 1023);
        let latest_ns = 32_000_000 - 1;
        assert_eq!(lifetime_ticks(tick_at(latest_ns), latest_ns + MAX_LIFETIME_NS), 1023);
    }
}
