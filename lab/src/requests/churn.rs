//! Churn: requests of a popularity that changes, for runs without a recorded trace.
//!
//! Ours. Independent draws of a constant popularity ([`super::web`]) favour whoever counts longest; recorded traces
//! differ from them in three ways, each of which is here with one number:
//! - objects grow old: of [`SLOTS`] objects in Zipf's order, a random one is replaced by a new object after every
//!   [`REQUESTS_PER_RENEWAL`] requests on average;
//! - objects asked for once: a request is for one of these with probability [`ONCE_SHARE`];
//! - what was asked for lately is asked for again: with probability [`AGAIN_SHARE`] a request repeats one of the last
//!   [`LATELY`].
//!
//! Sizes: 256 octets to 32 KiB, by the object's hash, each power of two as often.

use super::popularity::Popularity;
use super::{Request, Trace, object_hash};

/// Objects that are popular at a time.
pub const SLOTS: u32 = 20_000;
/// Requests for each object replaced.
pub const REQUESTS_PER_RENEWAL: u32 = 100;
/// Share of requests for objects never asked for again.
pub const ONCE_SHARE: f64 = 0.15;
/// Share of requests that repeat one of the last.
pub const AGAIN_SHARE: f64 = 0.15;
/// How many of the last may be repeated.
pub const LATELY: usize = 500;
const ALPHA: f64 = 0.9;

/// An invented trace of so many requests.
pub fn invented(requests: usize, seed: u64) -> Trace {
    let popularity = Popularity::zipf(SLOTS, ALPHA);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut in_slots: Vec<u32> = (0..SLOTS).collect();
    let (mut objects, mut made) = (SLOTS, Vec::with_capacity(requests));
    let mut new_object = || {
        objects += 1;
        objects - 1
    };
    for place in 0..requests {
        if random.u32(..REQUESTS_PER_RENEWAL) == 0 {
            in_slots[random.u32(..SLOTS) as usize] = new_object();
        }
        let kind = random.f64();
        let object = if kind < ONCE_SHARE {
            new_object()
        } else if kind < ONCE_SHARE + AGAIN_SHARE && place > 0 {
            let lately: &Request = &made[place - 1 - random.usize(..LATELY.min(place))];
            lately.object
        } else {
            in_slots[popularity.draw(random.u64(..)) as usize]
        };
        made.push(Request { object, octets: 256 << (object_hash(object) % 8) });
    }
    Trace { title: "invented".to_owned(), objects, requests: made, left_out: 0 }
}
