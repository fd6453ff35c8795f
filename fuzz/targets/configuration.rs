//! Question: can any configuration file, of ours or of NFD, or any state file make its reader panic, recurse or hang?
//! And do accepted settings survive being written and read again?
//!
//! Input: one byte for the kind of file, then its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use namewire_configuration::{
    Settings, from_nfd_conf, from_toml,
    info::{self, Entry},
    state_file,
};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, text)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 4 {
        0 => {
            if let Ok(settings) = from_toml(text) {
                survives(&settings);
            }
        }
        1 => {
            // Includes read no file, because the directory does not exist.
            if let Ok(loaded) = from_nfd_conf(text, Path::new("/nonexistent")) {
                survives(&loaded.settings);
                let _ = loaded.settings.engine_config();
            }
        }
        2 => {
            let mut include = |name: &str| Ok(format!("included {name}\n#include \"more\"\n"));
            if let Ok(entries) = info::parse(text, &mut include) {
                let (mut count, mut depth) = (0, 0);
                measure(&entries, 1, &mut count, &mut depth);
                assert!(count <= info::MAX_ENTRIES && depth <= info::MAX_DEPTH + 1);
            }
        }
        _ => {
            let path = Path::new("state.toml");
            if let Ok(state) = state_file::from_text(path, text) {
                let written = state_file::to_text(&state).expect("every entry has a TOML form");
                let again = state_file::from_text(path, &written).expect("what was written can be read");
                assert_eq!(again, state, "{written}");
            }
        }
    }
});

/// Writes accepted settings as a file and reads the same settings from it.
fn survives(settings: &Settings) {
    let text = toml::to_string(settings).expect("every setting has a TOML form");
    assert_eq!(from_toml(&text).as_ref(), Ok(settings), "{text}");
}

fn measure(entries: &[Entry], level: usize, count: &mut usize, depth: &mut usize) {
    *depth = level.max(*depth);
    for entry in entries {
        *count += 1;
        measure(&entry.children, level + 1, count, depth);
    }
}
