//! Next hops: to which faces may an Interest be sent, by its name or by its ForwardingHint (forwarding §3; NDN packet
//! specification, "ForwardingHint")?

use crate::{EngineConfig, state::scratch::Scratch};
use namewire_packet::{Interest, Name};
use namewire_tables::{FibMatch, FibView, NextHop};

/// Most names of a ForwardingHint that are looked up, in the sender's order; the rest stay in the packet. A packet has
/// room for 1,200 names, and each costs a look-up. (NFD looks all of them up, NDN-DPDK a fixed number, ndnd the first.)
pub(crate) const MAX_DELEGATIONS: usize = 8;

/// Where an Interest may go.
#[derive(Clone, Copy)]
pub(crate) struct NextHops<'v> {
    pub(crate) next_hops: &'v [NextHop],
    pub(crate) prefix: MatchedPrefix,
}

/// Which name the next hops' prefix is a prefix of.
#[derive(Clone, Copy)]
pub(crate) enum MatchedPrefix {
    /// The first bytes of the PIT entry's name.
    OfName { bytes: usize },
    /// A delegation's name: the prefix is in [`Scratch::hint_prefix`].
    OfDelegation,
}

impl<'v> NextHops<'v> {
    #[inline]
    pub(crate) fn by_name(found: FibMatch<'v>) -> Self {
        Self { next_hops: found.nexthops, prefix: MatchedPrefix::OfName { bytes: found.prefix_bytes } }
    }

    /// The next hops of an Interest with a hint. If the hint holds names, they are those of the first delegation that
    /// has some in the FIB, and the Interest's own name is not tried (§3). Otherwise they are those of the name
    /// (`by_name`).
    #[cold]
    pub(crate) fn of(
        interest: &Interest<'_>,
        by_name: Option<FibMatch<'v>>,
        fib: FibView<'v>,
        scratch: &mut Scratch,
    ) -> Option<Self> {
        match has_delegation(interest) {
            true => Self::by_hint(interest, fib, scratch),
            false => by_name.map(Self::by_name),
        }
    }

    fn by_hint(interest: &Interest<'_>, fib: FibView<'v>, scratch: &mut Scratch) -> Option<Self> {
        let Scratch { name_hashes: hashes, hint_prefix: prefix, .. } = scratch;
        delegations(interest).find_map(|delegation| {
            hashes.compute(fib.key(), delegation.value()).ok()?;
            let found = fib.longest_prefix_match(delegation.value(), hashes);
            let found = found.filter(|found| !found.nexthops.is_empty())?;
            prefix.clear();
            prefix.extend_from_slice(&delegation.value()[..found.prefix_bytes]);
            Some(Self { next_hops: found.nexthops, prefix: MatchedPrefix::OfDelegation })
        })
    }
}

/// The number of the strategy that the FIB names; 0 is the default.
#[inline]
pub(crate) fn strategy_of(found: Option<FibMatch<'_>>) -> u32 {
    found.map_or(0, |found| found.strategy)
}

/// True if the ForwardingHint holds a name: an element without one is no hint.
#[inline]
pub(crate) fn has_delegation(interest: &Interest<'_>) -> bool {
    interest.has_forwarding_hint() && interest.forwarding_hint().next().is_some()
}

/// The delegations that are looked up.
pub(crate) fn delegations<'a>(interest: &Interest<'a>) -> impl Iterator<Item = Name<'a>> + use<'a> {
    interest.forwarding_hint().take(MAX_DELEGATIONS)
}

/// A delegation is a prefix of one of our region names (not the other way round, §3).
#[cold]
pub(crate) fn hint_reaches_region(config: &EngineConfig, interest: &Interest<'_>) -> bool {
    let regions = &config.region_names;
    !regions.is_empty()
        && delegations(interest)
            .any(|delegation| regions.iter().any(|region| delegation.is_prefix_of(&region.as_name())))
}
