//! Registrations: the prefixes whose Interests the router sends to the repository.
//!
//! Each configured prefix is registered once, at the start. A command may ask for another (RegisterPrefix). Unless a
//! configured prefix covers it, the repository registers it too, and keeps it in the store for the next start. A
//! deletion with the same RegisterPrefix ends the registration.
//!
//! Layout: one note in the store has the prefixes of all commands, as Name TLVs back to back.
//!
//! Limit: [`REQUESTED_MAX`] prefixes of commands.

use crate::{
    statistics::{Refusal, Statistics},
    store::{Store, StoreError},
    writer::{OwnedChange, WriteQueue},
};
use namewire_client::{Client, ControlError};
use namewire_packet::{
    Name, NameBuf,
    tlv::{Reader, types},
};
use std::{borrow::Cow, collections::BTreeSet, sync::Arc};
use tokio::sync::Mutex;

/// Most prefixes that commands can have registered.
pub(crate) const REQUESTED_MAX: usize = 4096;

/// The key of the note.
const NOTE: &[u8] = b"registered";

/// The prefixes, and the router that knows them.
pub(crate) struct Registrations {
    client: Client,
    queue: WriteQueue,
    statistics: Arc<Statistics>,
    configured: Vec<NameBuf>,
    requested: Mutex<BTreeSet<NameBuf>>,
}

impl Registrations {
    /// Reads what commands asked for before the start. It blocks in the store.
    pub(crate) fn load(
        client: Client,
        queue: WriteQueue,
        statistics: Arc<Statistics>,
        configured: Vec<NameBuf>,
        store: &dyn Store,
    ) -> Result<Self, StoreError> {
        let mut requested = BTreeSet::new();
        store.notes(&mut |key, note| {
            if key == NOTE {
                requested = decode(note);
            }
        })?;
        Ok(Registrations { client, queue, statistics, configured, requested: Mutex::new(requested) })
    }

    /// Registers every prefix. One of a command that the router refuses is counted, not an error.
    pub(crate) async fn register_all(&self) -> Result<(), ControlError> {
        for prefix in &self.configured {
            self.client.register_prefix(prefix).await?;
        }
        for prefix in self.requested.lock().await.iter() {
            self.register(prefix).await;
        }
        Ok(())
    }

    async fn register(&self, prefix: &NameBuf) -> bool {
        let registered = self.client.register_prefix(prefix).await;
        if registered.is_err() {
            self.statistics.refuse(Refusal::PrefixNotRegistered);
        }
        registered.is_ok()
    }

    /// Registers a prefix for a command, and remembers it. False if that failed.
    pub(crate) async fn add(&self, prefix: &NameBuf) -> bool {
        if self.configured.iter().any(|configured| configured.as_name().is_prefix_of(&prefix.as_name())) {
            return true;
        }
        let mut requested = self.requested.lock().await;
        if requested.contains(prefix) {
            return true;
        }
        if requested.len() >= REQUESTED_MAX {
            self.statistics.refuse(Refusal::PrefixNotRegistered);
            return false;
        }
        requested.insert(prefix.clone());
        if self.save(&requested).await && self.register(prefix).await {
            return true;
        }
        requested.remove(prefix);
        false
    }

    /// Ends the registration of a prefix that a command asked for.
    pub(crate) async fn remove(&self, prefix: &NameBuf) {
        let mut requested = self.requested.lock().await;
        if requested.remove(prefix) {
            self.save(&requested).await;
            // The router also forgets it with this face.
            let _ = self.client.unregister_prefix(prefix).await;
        }
    }

    async fn save(&self, requested: &BTreeSet<NameBuf>) -> bool {
        let mut note = Vec::new();
        requested.iter().for_each(|prefix| prefix.as_name().write_tlv(&mut note));
        self.queue.write(vec![OwnedChange::Note { key: Cow::Borrowed(NOTE), note: Some(note) }]).await.is_ok()
    }
}

fn decode(content: &[u8]) -> BTreeSet<NameBuf> {
    let (mut reader, mut prefixes) = (Reader::new(content), BTreeSet::new());
    while let Ok(Some(element)) = reader.next_element() {
        if element.type_number == types::NAME
            && let Ok(prefix) = Name::parse_value(element.value)
        {
            prefixes.insert(prefix.to_buf());
        }
    }
    prefixes
}
