//! The random values that the router draws at its start, from the system or from the seed of its configuration.

use namewire_tables::HashKey;
use std::io;

/// Secrets of one start: keys of tables and shards, seeds of the engines.
pub(crate) struct Secrets {
    pub(crate) tables: HashKey,
    pub(crate) shards: HashKey,
    /// What the key of the shards is made of. Neighbours with lanes are told.
    pub(crate) shards_bytes: [u8; 16],
    /// Of the control thread's random choices.
    pub(crate) control: u64,
    /// Of the engines.
    pub(crate) seed: u64,
    /// Not secret: tells this start of the router from others.
    pub(crate) instance: u64,
}

impl Secrets {
    pub(crate) fn new(seed: Option<u64>) -> io::Result<Self> {
        if let Some(seed) = seed {
            let shards_bytes = HashKey::bytes_from_seed(seed ^ 0x5851_F42D_4C95_7F2D);
            let control = seed ^ 0x2545_F491_4F6C_DD1D;
            return Ok(Secrets {
                tables: HashKey::from_seed(seed),
                shards: HashKey::new(shards_bytes),
                shards_bytes,
                control,
                seed,
                instance: control.rotate_left(17),
            });
        }
        let mut bytes = [0; 56];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        let part = |at: usize| {
            let mut part = [0; 16];
            part.copy_from_slice(&bytes[at..at + 16]);
            part
        };
        let number = |at: usize| bytes[at..].iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte));
        let (control, seed, instance) = (number(32), number(40), number(48));
        let (tables, shards_bytes) = (HashKey::new(part(0)), part(16));
        Ok(Secrets { tables, shards: HashKey::new(shards_bytes), shards_bytes, control, seed, instance })
    }
}
