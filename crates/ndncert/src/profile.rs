//! The profile of an authority: who it is, and what it offers.
//!
//! The authority publishes it under `/<prefix>/CA/INFO/<version>/<segment 0>`, signed by the key of the certificate in
//! it. So the profile proves nothing by itself: the requester must know the certificate, or somebody who vouches for
//! it.

use crate::{
    fields::{self, FieldError, Fields, PARAMETERS_MAX, types},
    service_name, verbs,
};
use namewire_packet::{Data, NameBuf, PacketError, tlv};
use namewire_security::{Certificate, CertificateError, PublicKeyError, VerifyError};

/// Most bytes of the description.
pub const INFO_BYTES_MAX: usize = 2048;

/// An authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaProfile {
    /// It certifies names under this prefix.
    pub prefix: NameBuf,
    /// What it says about itself, for people.
    pub info: String,
    /// What a PROBE must tell, for example `email`.
    pub probe_keys: Vec<String>,
    /// How long a certificate may be valid, in milliseconds.
    pub max_validity_ms: u64,
    /// Its certificate.
    pub certificate: Certificate,
}

/// Why Data is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// A field is missing or wrong.
    #[error("the profile is malformed: {0}")]
    Malformed(#[from] FieldError),
    /// Not Data.
    #[error("the profile is not Data: {0}")]
    NotData(#[from] PacketError),
    /// Its certificate is none.
    #[error("the certificate in the profile: {0}")]
    Certificate(#[from] CertificateError),
    /// Its key cannot be used.
    #[error("the key in the profile: {0}")]
    Key(#[from] PublicKeyError),
    /// Its name is not that of the prefix in it.
    #[error("the profile of {0} has the name {1}")]
    OtherName(NameBuf, NameBuf),
    /// Its certificate is that of somebody else. Whoever is certified below the prefix could pose as the authority.
    #[error("the certificate in the profile of {0} is that of {1}")]
    OtherIdentity(NameBuf, NameBuf),
    /// The key in it did not sign it.
    #[error("the profile is forged: {0}")]
    Forged(#[from] VerifyError),
    /// It is too long to be shown.
    #[error("the description in the profile has {0} bytes")]
    LongInfo(usize),
}

impl CaProfile {
    /// The content of the profile's packet.
    pub fn content(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::write_nested(&mut out, types::CA_PREFIX, |out| self.prefix.as_name().write_tlv(out));
        tlv::write_tlv(&mut out, types::CA_INFO, self.info.as_bytes());
        for key in &self.probe_keys {
            tlv::write_tlv(&mut out, types::PARAMETER_KEY, key.as_bytes());
        }
        tlv::write_nni(&mut out, types::MAX_VALIDITY_PERIOD, self.max_validity_ms / 1000);
        tlv::write_tlv(&mut out, types::CA_CERTIFICATE, self.certificate.wire());
        out
    }

    /// Reads a profile, and checks its name and its signature.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_data(data: &Data<'_>) -> Result<Self, ProfileError> {
        const KNOWN: [u32; 5] =
            [types::CA_PREFIX, types::CA_INFO, types::PARAMETER_KEY, types::MAX_VALIDITY_PERIOD, types::CA_CERTIFICATE];
        let read = Fields::parse(data.content(), &KNOWN)?;
        let prefix = fields::name(types::CA_PREFIX, read.required(types::CA_PREFIX)?)?;
        let under = service_name(prefix.as_name(), verbs::INFO);
        let has_its_name = under.as_name().is_prefix_of(&data.name()) && data.name().len() == under.len() + 2;
        if !has_its_name {
            return Err(ProfileError::OtherName(prefix, data.name().to_buf()));
        }
        let info = fields::text(types::CA_INFO, read.required(types::CA_INFO)?)?;
        if info.len() > INFO_BYTES_MAX {
            return Err(ProfileError::LongInfo(info.len()));
        }
        let keys = read.all(types::PARAMETER_KEY).take(PARAMETERS_MAX);
        let probe_keys: Result<Vec<String>, FieldError> =
            keys.map(|key| Ok(fields::text(types::PARAMETER_KEY, key)?.to_owned())).collect();
        let max_validity_ms = read.number(types::MAX_VALIDITY_PERIOD)?.saturating_mul(1000);
        let certificate = Certificate::parse(read.required(types::CA_CERTIFICATE)?)?;
        if certificate.identity() != prefix.as_name() {
            return Err(ProfileError::OtherIdentity(prefix, certificate.identity().to_buf()));
        }
        let profile =
            CaProfile { prefix, info: info.to_owned(), probe_keys: probe_keys?, max_validity_ms, certificate };
        profile.verify(data)?;
        Ok(profile)
    }

    /// Checks that the authority signed this packet.
    ///
    /// # Errors
    /// If it did not, or if its key cannot be used.
    pub fn verify(&self, data: &Data<'_>) -> Result<(), ProfileError> {
        let key = self.certificate.public_key()?;
        let kind = data.signature_info().signature_type();
        Ok(key.verify(kind, &[data.signed_portion()], data.signature_value())?)
    }
}
