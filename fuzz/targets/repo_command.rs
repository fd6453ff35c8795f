//! Question: can any bytes make a decoder of a repository's messages panic, and does every decoded message survive
//! being written and read again? Does every accepted command have an answer that fits in one Data?
//!
//! Input: one command, answer, notification or question for a status; every decoder gets it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_repo::command::{
    Command, CommandResult, Notification, RESULT_BYTES_MAX, decode_query, earlier, earlier::EarlierCommand,
    encode_query,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(command) = Command::decode(bytes) {
        let written = command.encode();
        assert!(written.len() <= bytes.len() + 16 * (command.objects.len() + command.groups.len()));
        assert_eq!(Command::decode(&written).expect("what we write, we read"), command);
        assert!(command.accepted().encode().len() <= RESULT_BYTES_MAX);
    }
    if let Ok(result) = CommandResult::decode(bytes) {
        assert_eq!(CommandResult::decode(&result.encode()).expect("what we write, we read"), result);
    }
    if let Ok(notification) = Notification::decode(bytes) {
        assert_eq!(Notification::decode(&notification.encode()).expect("what we write, we read"), notification);
    }
    if EarlierCommand::decode(bytes).is_ok() {
        assert!(Command::decode(bytes).is_err(), "one form is never taken for the other");
    }
    if let Ok(id) = earlier::decode_query(bytes) {
        assert!((1..=earlier::PROCESS_ID_BYTES_MAX).contains(&id.len()));
    }
    if let Ok(number) = decode_query(bytes) {
        assert_eq!(decode_query(&encode_query(&number)), Ok(number));
    }
});
