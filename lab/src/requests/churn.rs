//! Churn: requests of changing popularity, for runs without a recorded trace.
//!
//! Our own design. Independent requests of constant popularity ([`super::web`]) favour the policy that counts longest.
//! Recorded traces differ in three ways; one number controls each of them here:
//! - objects age: of [`SLOTS`] objects in Zipf's order, a new object replaces a random one after every
//!   [`REQUESTS_PER_RENEWAL`] requests on average;
//! - some objects are requested once: a request is for such an object with probability [`ONCE_SHARE`];
//! - recent objects are requested again: with probability [`AGAIN_SHARE`] a request repeats one of the last [`LATELY`].
//!
//! Sizes: 256 bytes to 32 KiB, by the object's hash; all powers of two are equally frequent.

use super::popularity::Popularity;
use super::{Request, Trace, object_hash};

/// Number of popular objects.
pub const SLOTS: u32 = 20_000;
/// Requests per replaced object.
pub const REQUESTS_PER_RENEWAL: u32 = 100;
/// Share of requests for objects that are requested once.
pub const ONCE_SHARE: f64 = 0.15;
/// Share of requests that repeat a recent one.
pub const AGAIN_SHARE: f64 = 0.15;
/// How many recent requests may be repeated.
pub const LATELY: usize = 500;
const ALPHA: f64 = 0.9;

/// An invented trace with `requests` requests.
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
        made.push(Request { object, bytes: 256 << (object_hash(object) % 8) });
    }
    Trace { title: "invented".to_owned(), objects, requests: made, left_out: 0 }
}
