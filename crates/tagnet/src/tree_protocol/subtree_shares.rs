//! Subtree shares: for how many routers does each child's subtree get labels?
//!
//! A child reports how many routers its subtree has, and may lie. So a claim is bounded by the size of a tree
//! ([`ROUTERS_MAX`]), and the children share the number that their parent was granted. The smallest claims are met
//! first, and no child gets more than an equal part of the rest. A child that claims too much gets only what others
//! leave, and takes nothing from children that claim less than an equal part.

/// Most routers of a tree, and of a subtree.
pub const ROUTERS_MAX: u32 = 1 << 20;

/// The part of `room` that each child gets, in their order: at most what it claims.
pub(super) fn subtree_shares(claims: &[u32], room: u32) -> Vec<u32> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|child| claims[*child]);
    let (mut shares, mut left) = (vec![0; claims.len()], room);
    for (served, child) in order.into_iter().enumerate() {
        let equal_part = left / (claims.len() - served) as u32;
        shares[child] = claims[child].min(equal_part);
        left -= shares[child];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_claim_of_everything_takes_nothing_from_the_others() {
        assert_eq!(subtree_shares(&[3, u32::MAX, 5], 1_000), [3, 992, 5]);
        assert_eq!(subtree_shares(&[u32::MAX, 300, u32::MAX, 2], 1_000), [349, 300, 349, 2]);
        assert_eq!(subtree_shares(&[1, 1, 1], 2), [0, 1, 1]);
        assert_eq!(subtree_shares(&[], 7), []);
    }

    proptest! {
        #[test]
        fn claims_that_fit_are_met_and_no_sum_is_too_large(claims in proptest::collection::vec(1..5_000_u32, 0..20), room in 0..20_000_u32) {
            let shares = subtree_shares(&claims, room);
            prop_assert!(shares.iter().sum::<u32>() <= room);
            prop_assert!(shares.iter().zip(&claims).all(|(share, claim)| share <= claim));
            if claims.iter().sum::<u32>() <= room {
                prop_assert_eq!(&shares, &claims);
            }
            let equal_part = room / claims.len().max(1) as u32;
            prop_assert!(shares.iter().zip(&claims).all(|(share, claim)| *share >= equal_part.min(*claim)));
        }
    }
}
