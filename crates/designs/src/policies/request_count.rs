//! Request count: Data is admitted if enough Interests waited for it when it arrived.
//!
//! Source: Yuan15 §6.1.3, selective caching: the PIT knows how many Interests a Data answers. (§5.4.4 gives the reason:
//! the store should answer popular names before the PIT is searched.) The paper's k is `least` here; the paper's
//! condition is "more than k", so k = 1 is `least` = 2.
//!
//! It sees only Interests that wait at the same time. So it does not admit names that are requested often, but never
//! twice within one round trip.
//!
//! Cost: it reads no line; B2 does nothing. Bytes: none. Writers: none.

use super::admission::Admission;
use namewire_tables::cs_policy::Newcomer;
use std::io;

/// Interests by default.
pub const DEFAULT_LEAST: u32 = 2;

/// The options of a request count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestCountOptions {
    /// Interests that must have waited; by default [`DEFAULT_LEAST`].
    pub least: Option<u32>,
}

/// The Interests that Data answers, compared with a limit.
#[derive(Clone, Copy, Debug)]
pub struct RequestCount {
    least: u32,
}

impl RequestCount {
    /// A policy with these options.
    pub fn new(options: RequestCountOptions) -> Self {
        Self { least: options.least.unwrap_or(DEFAULT_LEAST) }
    }
}

impl Admission for RequestCount {
    #[inline]
    fn admits(&mut self, newcomer: &Newcomer, _: impl FnOnce() -> Option<u64>) -> bool {
        newcomer.requests >= self.least
    }

    fn grow(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_with_the_least_number_of_requests_is_admitted() {
        for (least, admitted) in [(None, [false, false, true, true]), (Some(3), [false, false, false, true])] {
            let mut admission = RequestCount::new(RequestCountOptions { least });
            let admits = |requests| {
                admission
                    .admits(&Newcomer { requests, ..Newcomer::default() }, || unreachable!("no victim is asked for"))
            };
            assert_eq!([0, 1, 2, 3].map(admits), admitted);
        }
    }
}
