//! The encryption of a request: a key that only requester and authority have.
//!
//! ```text
//!   ECDH on P-256 ──► shared secret ──► HKDF-SHA256(salt, info = request id) ──► AES-128-GCM key
//!   each message: { IV, tag, ciphertext }, with the request id as associated data
//! ```
//!
//! An IV is 8 random bytes, which its sender keeps for the request, and a counter of 4 bytes, which counts the blocks
//! of 16 bytes encrypted so far. The receiver refuses an IV that goes back, or whose random part changes, or is the
//! receiver's own: so no message can be replayed or reflected.

use crate::fields::{FieldError, Fields, types};
use namewire_packet::tlv;
use ring::{
    aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral},
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand::SystemRandom,
};
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a point in its uncompressed form.
pub const ECDH_PUB_BYTES: usize = 65;
/// Bytes of a salt.
pub const SALT_BYTES: usize = 32;
/// Bytes of the session's key.
pub const KEY_BYTES: usize = 16;
/// Bytes of an IV, of which the first 8 are random.
pub const IV_BYTES: usize = 12;
const IV_RANDOM_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
const BLOCK_BYTES: usize = 16;

/// The number of a request, which the authority chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(pub [u8; 8]);

/// Why a message cannot be encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomness,
    /// The peer's ECDH key is not a point of P-256.
    #[error("the peer's ECDH key is not a point of P-256")]
    BadPoint,
    /// The message is not made of IV, tag and ciphertext.
    #[error("the encrypted message is malformed: {0}")]
    Malformed(#[from] FieldError),
    /// The IV goes back, is another sender's, or is our own.
    #[error("the IV of the encrypted message does not follow the one before")]
    BadIv,
    /// Another key encrypted it, or it was changed.
    #[error("the encrypted message is not of this request, or was changed")]
    NotAuthentic,
    /// The counter of the IV is at its end.
    #[error("too much was encrypted for this request")]
    Exhausted,
}

/// Our part of a key agreement, for one request.
#[derive(Debug)]
pub struct EcdhKey {
    private: EphemeralPrivateKey,
    public: [u8; ECDH_PUB_BYTES],
}

impl EcdhKey {
    /// A new one.
    ///
    /// # Errors
    /// [`SessionError::NoRandomness`].
    pub fn generate() -> Result<Self, SessionError> {
        let private =
            EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).map_err(|_| SessionError::NoRandomness)?;
        let public = private.compute_public_key().map_err(|_| SessionError::NoRandomness)?;
        let public = public.as_ref().try_into().map_err(|_| SessionError::BadPoint)?;
        Ok(EcdhKey { private, public })
    }

    /// The part that the peer gets.
    pub const fn public(&self) -> &[u8; ECDH_PUB_BYTES] {
        &self.public
    }

    /// The session's key, from the peer's part.
    ///
    /// # Errors
    /// [`SessionError::BadPoint`].
    pub fn agree(
        self,
        peer: &[u8; ECDH_PUB_BYTES],
        salt: &[u8; SALT_BYTES],
        id: RequestId,
    ) -> Result<SessionKey, SessionError> {
        let peer = UnparsedPublicKey::new(&ECDH_P256, peer);
        agree_ephemeral(self.private, &peer, |secret| derive(secret, salt, id)).map_err(|_| SessionError::BadPoint)
    }
}

struct KeyLength;

impl KeyType for KeyLength {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

fn derive(secret: &[u8], salt: &[u8; SALT_BYTES], id: RequestId) -> SessionKey {
    let pseudo_random = Salt::new(HKDF_SHA256, salt).extract(secret);
    let (mut key, info) = ([0; KEY_BYTES], [&id.0[..]]);
    let expanded = pseudo_random.expand(&info, KeyLength);
    expanded.and_then(|okm| okm.fill(&mut key)).expect("HKDF gives up to 255 hashes");
    SessionKey { key, id, own_iv: None, peer_iv: None }
}

/// The key of one request, with the IVs that were used.
pub struct SessionKey {
    key: [u8; KEY_BYTES],
    id: RequestId,
    /// Our next IV.
    own_iv: Option<[u8; IV_BYTES]>,
    /// The least IV that the peer may use next.
    peer_iv: Option<[u8; IV_BYTES]>,
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for SessionKey {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl SessionKey {
    /// The request that it belongs to.
    pub const fn id(&self) -> RequestId {
        self.id
    }

    /// Its bytes, for an authority that keeps its requests on disk: key, own IV and the peer's, each with a byte that
    /// says whether it is there.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(self.key.to_vec());
        for iv in [self.own_iv, self.peer_iv] {
            bytes.push(u8::from(iv.is_some()));
            bytes.extend_from_slice(&iv.unwrap_or_default());
        }
        bytes
    }

    /// Reads what [`SessionKey::to_bytes`] wrote.
    pub fn from_bytes(id: RequestId, bytes: &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk::<KEY_BYTES>()?;
        let (own, peer) = rest.split_first_chunk::<{ 1 + IV_BYTES }>()?;
        let peer: &[u8; 1 + IV_BYTES] = peer.try_into().ok()?;
        let iv = |bytes: &[u8; 1 + IV_BYTES]| (bytes[0] == 1).then(|| bytes[1..].try_into().expect("12 bytes"));
        Some(SessionKey { key: *key, id, own_iv: iv(own), peer_iv: iv(peer) })
    }

    /// Encrypts a message: the fields IV, tag and ciphertext.
    ///
    /// # Errors
    /// [`SessionError::NoRandomness`], [`SessionError::Exhausted`].
    pub fn encrypt(&mut self, message: &[u8]) -> Result<Vec<u8>, SessionError> {
        let iv = match self.own_iv {
            Some(iv) => iv,
            None => {
                let mut iv = [0; IV_BYTES];
                getrandom::fill(&mut iv[..IV_RANDOM_BYTES]).map_err(|_| SessionError::NoRandomness)?;
                iv
            }
        };
        self.own_iv = Some(after(iv, message.len().max(1))?); // no IV serves twice, not even for nothing
        let mut sealed = message.to_vec();
        let tag = self
            .cipher()
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(iv), Aad::from(self.id.0), &mut sealed)
            .map_err(|_| SessionError::Exhausted)?;
        let mut out = Vec::with_capacity(sealed.len() + 40);
        tlv::write_tlv(&mut out, types::INITIALIZATION_VECTOR, &iv);
        tlv::write_tlv(&mut out, types::AUTHENTICATION_TAG, tag.as_ref());
        tlv::write_tlv(&mut out, types::ENCRYPTED_PAYLOAD, &sealed);
        Ok(out)
    }

    /// Decrypts the peer's message.
    ///
    /// # Errors
    /// If it is malformed, repeats an IV, or is not the peer's.
    pub fn decrypt(&mut self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>, SessionError> {
        const KNOWN: [u32; 3] = [types::INITIALIZATION_VECTOR, types::AUTHENTICATION_TAG, types::ENCRYPTED_PAYLOAD];
        let fields = Fields::parse(message, &KNOWN)?;
        let iv: [u8; IV_BYTES] = fields.bytes(types::INITIALIZATION_VECTOR)?;
        let tag: [u8; TAG_BYTES] = fields.bytes(types::AUTHENTICATION_TAG)?;
        let is_reflected = self.own_iv.is_some_and(|own| own[..IV_RANDOM_BYTES] == iv[..IV_RANDOM_BYTES]);
        let follows = |last: [u8; IV_BYTES]| {
            last[..IV_RANDOM_BYTES] == iv[..IV_RANDOM_BYTES] && last[IV_RANDOM_BYTES..] <= iv[IV_RANDOM_BYTES..]
        };
        if is_reflected || !self.peer_iv.is_none_or(follows) {
            return Err(SessionError::BadIv);
        }
        let sealed = fields.required(types::ENCRYPTED_PAYLOAD)?;
        let next = after(iv, sealed.len())?;
        let mut opened = Zeroizing::new([sealed, &tag].concat());
        let nonce = Nonce::assume_unique_for_key(iv);
        self.cipher()
            .open_in_place(nonce, Aad::from(self.id.0), &mut opened)
            .map_err(|_| SessionError::NotAuthentic)?;
        opened.truncate(sealed.len());
        self.peer_iv = Some(next);
        Ok(opened)
    }

    fn cipher(&self) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &self.key).expect("a key of 16 bytes"))
    }
}

/// The IV after a message of this many bytes.
fn after(mut iv: [u8; IV_BYTES], message_bytes: usize) -> Result<[u8; IV_BYTES], SessionError> {
    let counter = iv.last_chunk_mut::<4>().expect("an IV has 12 bytes");
    let blocks = u32::try_from(message_bytes.div_ceil(BLOCK_BYTES)).map_err(|_| SessionError::Exhausted)?;
    *counter = u32::from_be_bytes(*counter).checked_add(blocks).ok_or(SessionError::Exhausted)?.to_be_bytes();
    Ok(iv)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RequestId = RequestId([7; 8]);

    fn both() -> [SessionKey; 2] {
        let [one, other] = [(), ()].map(|()| EcdhKey::generate().unwrap());
        let publics = [*one.public(), *other.public()];
        let salt = [9; SALT_BYTES];
        [one.agree(&publics[1], &salt, ID).unwrap(), other.agree(&publics[0], &salt, ID).unwrap()]
    }

    #[test]
    fn what_one_encrypts_the_other_decrypts() {
        let [mut one, mut other] = both();
        for message in [&b"first"[..], &[5; 100], b""] {
            assert_eq!(other.decrypt(&one.encrypt(message).unwrap()).unwrap().as_slice(), message);
            assert_eq!(one.decrypt(&other.encrypt(message).unwrap()).unwrap().as_slice(), message);
        }
    }

    #[test]
    fn the_counter_counts_blocks_and_the_random_part_stays() {
        let [mut one, _] = both();
        let iv = |sealed: &[u8]| -> [u8; IV_BYTES] {
            Fields::parse(sealed, &[types::INITIALIZATION_VECTOR, types::AUTHENTICATION_TAG, types::ENCRYPTED_PAYLOAD])
                .unwrap()
                .bytes(types::INITIALIZATION_VECTOR)
                .unwrap()
        };
        let ivs = [17, 16, 0, 1].map(|size| iv(&one.encrypt(&vec![0; size]).unwrap()));
        assert_eq!(ivs.map(|iv| iv[11]), [0, 2, 3, 4]);
        assert!(ivs.iter().all(|iv| iv[..8] == ivs[0][..8]));
    }

    #[test]
    fn replayed_reflected_changed_and_foreign_messages_are_refused() {
        let [mut one, mut other] = both();
        let sealed = one.encrypt(b"code").unwrap();
        other.decrypt(&sealed).unwrap();
        assert_eq!(other.decrypt(&sealed).unwrap_err(), SessionError::BadIv, "replayed");
        assert_eq!(one.decrypt(&sealed).unwrap_err(), SessionError::BadIv, "reflected");
        let mut changed = one.encrypt(b"code").unwrap();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(other.decrypt(&changed).unwrap_err(), SessionError::NotAuthentic);
        let [mut stranger, _] = both();
        assert_eq!(other.decrypt(&stranger.encrypt(b"code").unwrap()).unwrap_err(), SessionError::BadIv);
        let [_, mut fresh] = both();
        assert_eq!(fresh.decrypt(&stranger.encrypt(b"code").unwrap()).unwrap_err(), SessionError::NotAuthentic);
    }

    #[test]
    fn a_kept_key_goes_on() {
        let [mut one, mut other] = both();
        let first = one.encrypt(b"first").unwrap();
        other.decrypt(&first).unwrap();
        let mut kept = SessionKey::from_bytes(ID, &other.to_bytes()).unwrap();
        assert_eq!(kept.decrypt(&first).unwrap_err(), SessionError::BadIv, "it remembers");
        assert_eq!(kept.decrypt(&one.encrypt(b"second").unwrap()).unwrap().as_slice(), b"second");
        assert!(SessionKey::from_bytes(ID, &other.to_bytes()[1..]).is_none());
    }

    #[test]
    fn a_point_elsewhere_is_refused() {
        let key = EcdhKey::generate().unwrap();
        assert_eq!(key.agree(&[4; ECDH_PUB_BYTES], &[0; 32], ID).unwrap_err(), SessionError::BadPoint);
    }
}
