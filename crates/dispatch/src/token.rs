//! Worker token: the PIT token by which Data finds its worker and name group (NDNLPv2, "PIT Token").

use namewire_packet::lp::PitToken;
use namewire_tables::GroupToken;

/// Bytes of our PIT tokens. One peer accepts no other length (NDNLPv2 §3).
pub const TOKEN_BYTES: usize = 6;

/// A PIT token of ours: which worker, and which name group there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerToken {
    /// The worker that holds the PIT entry.
    pub worker: u8,
    /// The name group in its tables.
    pub group: GroupToken,
}

impl WorkerToken {
    /// The wire form: worker, then generation and index.
    #[inline(always)]
    pub fn encode(self) -> Option<PitToken> {
        let bytes = (u64::from(self.worker) << 40 | self.group.to_bits()).to_be_bytes();
        PitToken::new(&bytes[8 - TOKEN_BYTES..])
    }

    /// Reads a token that may be ours; `None` if its length shows that it is not.
    #[inline(always)]
    pub fn decode(token: &PitToken) -> Option<Self> {
        let &[worker, a, b, c, d, e]: &[u8; TOKEN_BYTES] = token.as_bytes().try_into().ok()?;
        let bits = u64::from_be_bytes([0, 0, worker, a, b, c, d, e]);
        Some(WorkerToken { worker, group: GroupToken::from_bits(bits) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_the_wire() {
        for (worker, index, generation) in [(0, 0, 0), (63, (1 << 26) - 1, (1 << 14) - 1), (5, 77, 9)] {
            let token = WorkerToken { worker, group: GroupToken { index, generation } };
            let wire = token.encode().unwrap();
            assert_eq!(wire.as_bytes().len(), 6);
            assert_eq!(WorkerToken::decode(&wire), Some(token));
        }
        assert_eq!(WorkerToken::decode(&PitToken::new(&[1; 7]).unwrap()), None);
    }
}
