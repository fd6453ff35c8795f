//! Question: can a message of any authority or requester make the other side panic? Does all that is read survive being
//! written and read again?
//!
//! Input: the content of one message; every reader gets it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_ndncert::{
    CaProfile, Parameters, RequestId, SessionKey,
    fields::PARAMETERS_MAX,
    messages::{ChallengeRequest, ChallengeResponse, NewRequest, NewResponse, ProbeResponse, Refusal},
};
use namewire_packet::Data;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = NewRequest::read(bytes) {
        assert_eq!(NewRequest::read(&read.parameters()), Ok(read));
    }
    if let Ok(read) = NewResponse::read(bytes) {
        assert_eq!(NewResponse::read(&read.content()), Ok(read));
    }
    if let Ok(read) = ChallengeRequest::read(bytes) {
        assert!(read.parameters.iter().count() <= PARAMETERS_MAX);
        assert_eq!(ChallengeRequest::read(&read.message()), Ok(read));
    }
    if let Ok(read) = ChallengeResponse::read(bytes) {
        assert_eq!(ChallengeResponse::read(&read.message()), Ok(read));
    }
    if let Ok(read) = ProbeResponse::read(bytes) {
        assert_eq!(ProbeResponse::read(&read.content()), Ok(read));
    }
    let _ = Parameters::read(bytes);
    let _ = Refusal::read(bytes).map(|refusal| refusal.to_string());
    if let Ok(data) = Data::parse(bytes) {
        let _ = CaProfile::of_data(&data);
    }
    let session = [&[7; 16][..], &[0; 26]].concat();
    let mut session = SessionKey::from_bytes(RequestId([1; 8]), &session).expect("a session");
    assert!(session.decrypt(bytes).is_err(), "nobody knows the key");
});
