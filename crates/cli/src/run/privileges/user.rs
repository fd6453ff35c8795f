//! The user that the router becomes at its start (`router.user`, `router.group`; `general` in nfd.conf).
//!
//! Only root can become another user. Folders that the router needs and that are missing are made for the user first,
//! because the user may not be allowed to make them.
//!
//! Packages of NFD have a file that names the user `ndn`. Anyone may run a router with that file: without root, its
//! user is ignored with a warning.

use super::needed::Place;
use namewire_configuration::settings::RouterSection;
use namewire_tools::{ExitCode, Failure};
use nix::unistd::{Gid, Group, Uid, User, geteuid, initgroups, setresgid, setresuid};
use rustix::thread::set_keep_capabilities;
use std::{ffi::CString, fs, io, os::unix::fs::chown};

/// A user of this machine.
pub(super) struct Account {
    pub(super) name: String,
    uid: Uid,
    gid: Gid,
}

/// The user that the configuration names. `None` if it names none, or the user that runs the process already.
pub(super) fn configured(router: &RouterSection, is_nfd_conf: bool) -> Result<Option<Account>, Failure> {
    if router.user.is_none() && router.group.is_none() {
        return Ok(None);
    }
    if is_nfd_conf && !geteuid().is_root() {
        tracing::warn!(target: "management", "user and group of nfd.conf are ignored: only root can become another user");
        return Ok(None);
    }
    let failed = |text: String| Failure::new(ExitCode::Failed, text);
    let user = match &router.user {
        Some(name) => find_user(name).map_err(failed)?,
        None => User::from_uid(geteuid()).ok().flatten().ok_or_else(|| failed("this user has no name".to_owned()))?,
    };
    let gid = router.group.as_deref().map_or(Ok(user.gid), find_group).map_err(failed)?;
    if (user.uid, gid) == (geteuid(), nix::unistd::getegid()) {
        return Ok(None);
    }
    Ok(Some(Account { name: user.name, uid: user.uid, gid }))
}

fn find_user(name: &str) -> Result<User, String> {
    let found = match name.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(name),
    };
    found.ok().flatten().ok_or_else(|| format!("router.user: this machine has no user {name}"))
}

fn find_group(name: &str) -> Result<Gid, String> {
    let found = match name.parse() {
        Ok(number) => return Ok(Gid::from_raw(number)),
        Err(_) => Group::from_name(name),
    };
    let group = found.ok().flatten().ok_or_else(|| format!("router.group: this machine has no group {name}"))?;
    Ok(group.gid)
}

impl Account {
    /// Makes the process run as this user. Its permitted capabilities stay, for the caller to reduce.
    pub(super) fn enter(&self, places: &[Place]) -> io::Result<()> {
        if !geteuid().is_root() {
            return Err(io::Error::other("only root can become another user"));
        }
        for place in places.iter().filter(|place| place.is_written && !place.path.exists()) {
            fs::create_dir_all(&place.path)?;
            chown(&place.path, Some(self.uid.as_raw()), Some(self.gid.as_raw()))?;
        }
        set_keep_capabilities(true)?;
        initgroups(&CString::new(self.name.as_str())?, self.gid)?;
        setresgid(self.gid, self.gid, self.gid)?;
        setresuid(self.uid, self.uid, self.uid)?;
        set_keep_capabilities(false)?;
        Ok(())
    }

    pub(super) fn refused(&self, error: &io::Error) -> Failure {
        Failure::new(ExitCode::Failed, format!("cannot run as {}: {error}", self.name))
    }
}
