//! Sync groups: the repository is a member that publishes nothing, and stores what the others publish.
//!
//! A group is named by its sync prefix. A version at its end (`/chat/v=3`) chooses the version of the protocol; without
//! one it is version 2. The store keeps a note for each group, so the repository is a member again after a restart.
//! [`crate::group_member`] has what a member does.
//!
//! Limit: [`GROUPS_MAX`] groups.

use crate::{
    command::{SyncParam, status},
    group_member::{self, Names},
    jobs::Workshop,
    statistics::Refusal,
    store::{Store, StoreError},
    writer::OwnedChange,
};
use namewire_client::{
    InterestOptions, ServeError,
    sync::vector::{Producer, StateVector},
};
use namewire_packet::{
    Name, NameBuf,
    digest::sha256,
    tlv::{self, Reader, types},
};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use tokio::{
    sync::Mutex,
    task::{JoinHandle, spawn_blocking},
};

/// Most groups of a repository.
pub(crate) const GROUPS_MAX: usize = 64;
/// Sync Interests of a group that may wait.
const QUEUE_INTERESTS_MAX: usize = 256;
/// What the keys of notes begin with.
const GROUP_NOTES: &[u8] = b"sync-group/";
const PROGRESS_NOTES: &[u8] = b"sync-progress/";
/// Bytes of a digest in the key of a note.
const DIGEST_BYTES: usize = 16;

/// The groups of a repository. Dropping them ends their tasks.
#[derive(Default)]
pub(crate) struct Groups {
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members(HashMap<NameBuf, JoinHandle<()>>);

impl Drop for Members {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}

impl Groups {
    /// Becomes a member of the groups that the store remembers, and of these.
    pub(crate) async fn restore(&self, workshop: &Arc<Workshop>, configured: &[NameBuf]) -> Result<(), StoreError> {
        let store = Arc::clone(&workshop.store);
        let loaded = spawn_blocking(move || load(&*store)).await;
        let mut remembered = loaded.map_err(|error| StoreError::Other(error.to_string()))??;
        for group in configured {
            if !remembered.iter().any(|(param, _)| param.sync_prefix == *group) {
                remembered
                    .push((SyncParam { sync_prefix: group.clone(), ..SyncParam::default() }, StateVector::default()));
            }
        }
        let mut members = self.members.lock().await;
        for (param, progress) in remembered {
            start(&mut members, workshop, &param, progress).await;
        }
        Ok(())
    }

    /// Joins a group. Returns the status of that.
    pub(crate) async fn join(&self, workshop: &Arc<Workshop>, param: &SyncParam) -> u64 {
        let mut members = self.members.lock().await;
        if members.0.contains_key(&param.sync_prefix) {
            if !param.reset {
                return status::DONE;
            }
            end(&mut members, workshop, &param.sync_prefix).await;
        }
        if members.0.len() >= GROUPS_MAX {
            workshop.statistics.refuse(Refusal::SyncTooManyGroups);
            return status::FAILED;
        }
        if let Some(prefix) = param.register_prefix.as_ref().filter(|_| workshop.obeys_register_prefix)
            && !workshop.registrations.add(prefix).await
        {
            return status::FAILED;
        }
        let key = Cow::Owned(key_of(GROUP_NOTES, &[param.sync_prefix.value()]));
        let mut note = Vec::new();
        SyncParam { reset: false, ..param.clone() }.encode_value(&mut note);
        let is_noted = workshop.queue.write(vec![OwnedChange::Note { key, note: Some(note) }]).await.is_ok();
        if is_noted && start(&mut members, workshop, param, StateVector::default()).await {
            status::DONE
        } else {
            status::FAILED
        }
    }

    /// Leaves a group and forgets how far it was. Returns the status of that.
    pub(crate) async fn leave(&self, workshop: &Arc<Workshop>, param: &SyncParam) -> u64 {
        let mut members = self.members.lock().await;
        if !members.0.contains_key(&param.sync_prefix) {
            return status::UNKNOWN;
        }
        if let Some(prefix) = param.register_prefix.as_ref().filter(|_| workshop.obeys_register_prefix) {
            workshop.registrations.remove(prefix).await;
        }
        if end(&mut members, workshop, &param.sync_prefix).await { status::DONE } else { status::FAILED }
    }
}

/// Starts the task of a member; false if the router does not send it sync Interests.
async fn start(members: &mut Members, workshop: &Arc<Workshop>, param: &SyncParam, progress: StateVector) -> bool {
    let names = Names::of(param);
    let options = InterestOptions { queue_max: QUEUE_INTERESTS_MAX, ..InterestOptions::default() };
    let interests = match workshop.client.interests_with(&names.wire.sync, options).await {
        Ok(interests) => interests,
        Err(error) => {
            if let ServeError::NotRegistered(_) = error {
                workshop.statistics.refuse(Refusal::PrefixNotRegistered);
            }
            return false;
        }
    };
    let task = group_member::run(Arc::clone(workshop), names, progress, interests);
    members.0.insert(param.sync_prefix.clone(), tokio::spawn(task));
    true
}

/// Ends the task of a member, and forgets its notes. False if the store fails.
async fn end(members: &mut Members, workshop: &Arc<Workshop>, sync_prefix: &NameBuf) -> bool {
    if let Some(task) = members.0.remove(sync_prefix) {
        task.abort();
        let _ = task.await; // it was aborted
    }
    let names = Names::of(&SyncParam { sync_prefix: sync_prefix.clone(), ..SyncParam::default() });
    // The router also forgets it with this face.
    let _ = workshop.client.unregister_prefix(&names.wire.sync).await;
    let (store, group) = (Arc::clone(&workshop.store), sync_prefix.clone());
    let Ok(Ok(keys)) = spawn_blocking(move || keys_of_group(&*store, &group)).await else { return false };
    let forget = |key| OwnedChange::Note { key: Cow::Owned(key), note: None };
    workshop.queue.write(keys.into_iter().map(forget).collect()).await.is_ok()
}

fn key_of(kind: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let digests = parts.iter().flat_map(|part| sha256(&[part])[..DIGEST_BYTES].to_vec());
    kind.iter().copied().chain(digests).collect()
}

/// The change that notes how far a producer's publications are stored.
pub(crate) fn note_progress(sync_prefix: &NameBuf, producer: &Producer, number: u64) -> OwnedChange {
    let run = [producer.name.value(), &producer.bootstrap_s.to_be_bytes()].concat();
    let key = Cow::Owned(key_of(PROGRESS_NOTES, &[sync_prefix.value(), &run]));
    let mut note = Vec::new();
    sync_prefix.as_name().write_tlv(&mut note);
    producer.name.as_name().write_tlv(&mut note);
    tlv::write_nni(&mut note, types::TIMESTAMP_COMPONENT, producer.bootstrap_s);
    tlv::write_nni(&mut note, types::SEQUENCE_NUM_COMPONENT, number);
    OwnedChange::Note { key, note: Some(note) }
}

fn read_progress(note: &[u8]) -> Option<(NameBuf, Producer, u64)> {
    let mut reader = Reader::new(note);
    let mut next = |type_number: u32| {
        let element = reader.next_element().ok().flatten();
        element.filter(|element| element.type_number == type_number).map(|element| element.value)
    };
    let sync_prefix = Name::parse_value(next(types::NAME)?).ok()?.to_buf();
    let name = Name::parse_value(next(types::NAME)?).ok()?.to_buf();
    let bootstrap_s = tlv::read_nni(next(types::TIMESTAMP_COMPONENT)?).ok()?;
    let number = tlv::read_nni(next(types::SEQUENCE_NUM_COMPONENT)?).ok()?;
    Some((sync_prefix, Producer { name, bootstrap_s }, number))
}

/// The groups that a store remembers, and how far their producers are.
fn load(store: &dyn Store) -> Result<Vec<(SyncParam, StateVector)>, StoreError> {
    let (mut groups, mut progress) = (Vec::new(), Vec::new());
    store.notes(&mut |key, note| {
        if key.starts_with(GROUP_NOTES) {
            groups.extend(SyncParam::decode(note).ok().map(|param| (param, StateVector::default())));
        } else if key.starts_with(PROGRESS_NOTES) {
            progress.extend(read_progress(note));
        }
    })?;
    for (sync_prefix, producer, number) in progress {
        let its = groups.iter_mut().find(|(param, _)| param.sync_prefix == sync_prefix);
        its.into_iter().for_each(|(_, vector)| vector.raise(&producer, number));
    }
    Ok(groups)
}

/// The keys of all notes about a group.
fn keys_of_group(store: &dyn Store, sync_prefix: &NameBuf) -> Result<Vec<Vec<u8>>, StoreError> {
    let prefixes = [GROUP_NOTES, PROGRESS_NOTES].map(|kind| key_of(kind, &[sync_prefix.value()]));
    let mut keys = Vec::new();
    store.notes(&mut |key, _| {
        if prefixes.iter().any(|prefix| key.starts_with(prefix)) {
            keys.push(key.to_vec());
        }
    })?;
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Change, memory::MemoryStore};

    #[test]
    fn a_store_remembers_groups_and_their_progress() {
        let store = MemoryStore::new(u64::MAX);
        let name = |uri: &str| uri.parse::<NameBuf>().unwrap();
        let producer = Producer { name: name("/alice"), bootstrap_s: 7 };
        let param = SyncParam { sync_prefix: name("/chat/v=3"), ..SyncParam::default() };
        let mut note = Vec::new();
        param.encode_value(&mut note);
        let key = key_of(GROUP_NOTES, &[param.sync_prefix.value()]);
        store.write(&[Change::Note { key: &key, note: Some(&note) }]).unwrap();
        for (group, number) in [("/chat/v=3", 5), ("/other", 9), ("/chat/v=3", 6)] {
            let OwnedChange::Note { key, note } = note_progress(&name(group), &producer, number) else { panic!() };
            store.write(&[Change::Note { key: &key, note: note.as_deref() }]).unwrap();
        }
        let mut progress = StateVector::default();
        progress.raise(&producer, 6);
        assert_eq!(load(&store).unwrap(), [(param.clone(), progress)]);
        assert_eq!(keys_of_group(&store, &param.sync_prefix).unwrap().len(), 2);
    }
}
