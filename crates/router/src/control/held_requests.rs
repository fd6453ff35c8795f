//! Held requests: requests for lists that arrive before the router has restored the contents of the state file.
//!
//! Listeners serve as soon as the router starts. Until the router has restored everything in the file, a list of faces,
//! routes, FIB entries or strategies would be incomplete, and its reader would not notice. So requests for these lists
//! wait until the process that runs the router reports that it has finished
//! ([`crate::operator::Operator::set_up_done`]). If a request has waited for [`PATIENCE_PERCENT`] of its lifetime, the
//! router answers with the incomplete list.
//!
//! Limits: [`MAX_HELD`] requests; further ones do not wait. Writers: control.

use namewire_packet::{FaceId, Interest, Name, NameBuf, lp::PitToken};
use std::collections::BTreeMap;

/// Part of the lifetime of a request that it may wait, in percent.
const PATIENCE_PERCENT: u64 = 75;

/// Most requests that wait.
const MAX_HELD: usize = 1024;

/// The lists, without the prefix of management.
const LISTS: [[&str; 2]; 5] =
    [["rib", "list"], ["fib", "list"], ["faces", "list"], ["faces", "query"], ["strategy-choice", "list"]];

/// A request as it came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeldRequest {
    pub(crate) incoming: FaceId,
    pub(crate) pit_token: Option<PitToken>,
    pub(crate) packet: Vec<u8>,
}

/// The waiting requests.
#[derive(Debug, Default)]
pub(crate) struct HeldRequests {
    is_on: bool,
    /// By deadline and order of arrival.
    waiting: BTreeMap<(u64, u64), HeldRequest>,
    arrived: u64,
}

impl HeldRequests {
    /// Holds requests from now on, if `is_on`.
    pub(crate) fn new(is_on: bool) -> Self {
        HeldRequests { is_on, ..HeldRequests::default() }
    }

    /// The request, unless it has to wait.
    pub(crate) fn offer(&mut self, now_ns: u64, request: HeldRequest) -> Option<HeldRequest> {
        if !self.is_on || self.waiting.len() >= MAX_HELD {
            return Some(request);
        }
        let interest = Interest::parse(&request.packet).ok().filter(|interest| is_list(interest.name()));
        let Some(lifetime_ms) = interest.map(|interest| interest.lifetime_ms()) else { return Some(request) };
        let due_ns = now_ns.saturating_add(lifetime_ms.saturating_mul(1_000_000 * PATIENCE_PERCENT / 100));
        self.waiting.insert((due_ns, self.arrived), request);
        self.arrived += 1;
        None
    }

    /// Holds nothing any more; returns those that waited.
    pub(crate) fn release(&mut self) -> Vec<HeldRequest> {
        self.is_on = false;
        std::mem::take(&mut self.waiting).into_values().collect()
    }

    /// Those that may wait no longer.
    pub(crate) fn expire(&mut self, now_ns: u64) -> Vec<HeldRequest> {
        let later = self.waiting.split_off(&(now_ns + 1, 0));
        std::mem::replace(&mut self.waiting, later).into_values().collect()
    }

    /// When [`HeldRequests::expire`] has work next.
    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.waiting.first_key_value().map(|((due_ns, _), _)| *due_ns)
    }
}

/// True for a list that depends on the state file, whoever may ask for it.
fn is_list(name: Name<'_>) -> bool {
    ["localhost", "localhop"].into_iter().any(|scope| {
        LISTS.iter().any(|list| {
            let mut prefix = NameBuf::new();
            for part in [scope, "nfd", list[0], list[1]] {
                prefix.push_generic(part.as_bytes());
            }
            prefix.as_name().is_prefix_of(&name)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::InterestBuilder;

    fn request(name: &str, lifetime_ms: u64) -> HeldRequest {
        let name: NameBuf = name.parse().expect("a name");
        let packet = InterestBuilder::new(name).lifetime_ms(lifetime_ms).build();
        HeldRequest { incoming: FaceId(300), pit_token: None, packet }
    }

    #[test]
    fn lists_wait_for_the_end_of_the_start_or_for_most_of_their_lifetime() {
        let routes = || request("/localhost/nfd/rib/list", 4000);
        let mut held = HeldRequests::new(true);
        for other in ["/localhost/nfd/status/general", "/localhost/nfd/rib/register/x", "/localhost/nfd/rib"] {
            assert_eq!(held.offer(0, request(other, 4000)), Some(request(other, 4000)));
        }
        assert_eq!(held.offer(7, routes()), None);
        assert_eq!(held.offer(7, request("/localhop/nfd/rib/list/x", 1000)), None);
        assert_eq!(held.next_deadline_ns(), Some(750_000_007));
        assert_eq!(held.expire(750_000_006), []);
        assert_eq!(held.expire(750_000_007), [request("/localhop/nfd/rib/list/x", 1000)]);
        assert_eq!(held.release(), [routes()]);
        assert_eq!((held.offer(0, routes()), held.next_deadline_ns()), (Some(routes()), None));
        assert_eq!(HeldRequests::default().offer(0, routes()), Some(routes()));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut held = HeldRequests::new(true);
        let waiting = (0..2000).filter(|_| held.offer(0, request("/localhost/nfd/fib/list", 4000)).is_none()).count();
        assert_eq!(waiting, MAX_HELD);
    }
}
