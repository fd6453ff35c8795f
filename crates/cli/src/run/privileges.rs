//! Which privileges does the process of a router keep, and which does it give up before it meets the network?
//!
//! Sources: capabilities(7), credentials(7), prctl(2) (`PR_SET_NO_NEW_PRIVS`), landlock(7).
//!
//! Capabilities belong to threads, and a new thread inherits those of its maker. So the process gives them up on its
//! only thread: after it has read its files, and before [`namewire_router::Router::start`] makes threads. It keeps the
//! capabilities that the router may need later ([`needed`]): links come and go while it runs.
//!
//! In this order, the process
//! 1. becomes the configured user ([`user`]);
//! 2. removes all capabilities but the needed ones from its bounding, ambient, inheritable, permitted and effective
//!    sets;
//! 3. sets `no_new_privs`: no program that it executes can gain privileges;
//! 4. starts the launcher, the one thread that may execute a program ([`super::launcher`]);
//! 5. lets Landlock forbid all other threads to execute any.
//!
//! N.B. Landlock does not limit the folders where the router reads and writes. Its rules cannot be loosened later, and
//! a reload may name a state file, certificates and trust rules anywhere.
//!
//! Limits: on a kernel without Landlock (before 5.13), the process skips step 5, and the log line at the start reports
//! this. Without CAP_SETPCAP the bounding set stays; `no_new_privs` makes it ineffective.

mod needed;
mod user;

use super::launcher::Launcher;
use landlock::{
    AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
};
use landlock::{RulesetError, RulesetStatus};
use namewire_configuration::{Configuration, Declarations, Source, settings::Privileges};
use namewire_tools::{ExitCode, Failure};
use needed::{Need, needed};
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;

/// Most capabilities that the line at the start names as given up.
const GIVEN_UP_NAMED_MAX: usize = 4;

/// What is left of the privileges.
pub(super) struct Kept {
    /// Says what was kept; `None` if there was nothing to give up.
    pub(super) line: Option<String>,
    /// The one thread that may execute a program.
    pub(super) launcher: Launcher,
}

/// Gives up what the router does not need.
///
/// # Errors
/// The configured user does not exist or may not be used, or a place that the router needs is closed to it.
pub(super) fn give_up(
    configuration: &Configuration,
    source: Option<&Source>,
    state: &Declarations,
) -> Result<Kept, Failure> {
    let settings = &configuration.settings;
    let failed = |error: io::Error| Failure::new(ExitCode::Failed, format!("cannot give up privileges: {error}"));
    let had = capabilities(None).map_err(|error| failed(error.into()))?.permitted;
    let places = needed::places(configuration, source);
    let user = user::configured(&settings.router, matches!(source, Some(Source::NfdConf(_))))?;
    if let Some(user) = &user {
        user.enter(&places).map_err(|error| user.refused(&error))?;
    }
    let as_user = user.map_or(String::new(), |user| format!("runs as {}; ", user.name));
    if settings.router.privileges.0 == Privileges::Keep {
        // A change of the user has emptied the effective set.
        let all = CapabilitySets { effective: had, permitted: had, inheritable: CapabilitySet::empty() };
        set_capabilities(None, all).map_err(|error| failed(error.into()))?;
        let line = Some(format!("privileges: {as_user}none given up, as configured"));
        return Ok(Kept { line, launcher: Launcher::start().map_err(failed)? });
    }
    let mut needs = needed(settings, state);
    // A group alone leaves the process root.
    if as_user.is_empty() || geteuid().is_root() {
        needs.extend(needed::closed_place(&places, had).map_err(failed)?);
    } else if let Some(place) = needed::first_closed(&places) {
        return Err(Failure::new(ExitCode::Failed, format!("the configured user cannot use {}", place.display())));
    }
    let kept = keep_only(&needs, had).map_err(|error| failed(error.into()))?;
    if needs.iter().any(|need| need.is_everything()) {
        let line = Some(format!("privileges: {as_user}none given up: {}", reasons(&needs, kept)));
        return Ok(Kept { line, launcher: Launcher::start().map_err(failed)? });
    }
    set_no_new_privs(true).map_err(|error| failed(error.into()))?;
    let launcher = Launcher::start().map_err(failed)?;
    let no_programs = match forbid_programs() {
        Ok(RestrictionStatus { ruleset: RulesetStatus::NotEnforced, .. }) | Err(_) => "",
        Ok(_) => ", cannot execute programs",
    };
    let had_any = !had.is_empty() || !as_user.is_empty();
    let given_up = given_up(known(had).difference(kept));
    let kept = if kept.is_empty() { "no capability".to_owned() } else { reasons(&needs, kept) };
    let line = had_any.then(|| format!("privileges: {as_user}keeps {kept}; gave up {given_up}{no_programs}"));
    Ok(Kept { line, launcher })
}

/// `net-raw (Ethernet faces), …`
fn reasons(needs: &[Need], kept: CapabilitySet) -> String {
    let reason = |need: &Need| match need.is_everything() {
        true => need.why.clone(),
        false => format!("{} ({})", names(need.capabilities & kept), need.why),
    };
    let had = needs.iter().filter(|need| need.capabilities.intersects(kept));
    had.map(reason).collect::<Vec<_>>().join(", ")
}

/// Root gives up some forty, too many for a line.
fn given_up(set: CapabilitySet) -> String {
    match set.iter_names().count() {
        0 => "none".to_owned(),
        1..=GIVEN_UP_NAMED_MAX => names(set),
        count => format!("{count} others"),
    }
}

/// As capabilities(7) writes them, in small letters and without the prefix: `net-raw net-admin`.
fn names(set: CapabilitySet) -> String {
    set.iter_names().map(|(name, _)| name.to_lowercase().replace('_', "-")).collect::<Vec<_>>().join(" ")
}

/// Capabilities that have a name here. A newer kernel may have more; they are given up, too.
fn known(set: CapabilitySet) -> CapabilitySet {
    set.iter_names().map(|(_, flag)| flag).collect()
}

/// Reduces the sets of this thread to what is needed. Returns what it keeps.
fn keep_only(needs: &[Need], had: CapabilitySet) -> rustix::io::Result<CapabilitySet> {
    let kept = needs.iter().fold(CapabilitySet::empty(), |sum, need| sum | need.capabilities) & had;
    // After a change of the user, the effective set is empty and the permitted one is not.
    set_capabilities(None, CapabilitySets { effective: had, permitted: had, inheritable: CapabilitySet::empty() })?;
    let bounding = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    for capability in bounding.filter(|capability| !kept.contains(*capability)) {
        // An error: this kernel has no more capabilities.
        if !capability_is_in_bounding_set(capability).unwrap_or(false) || !had.contains(CapabilitySet::SETPCAP) {
            continue;
        }
        remove_capability_from_bounding_set(capability)?;
    }
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() })?;
    Ok(kept)
}

/// Nothing that this process or its threads do executes a program. `Refer` is handled and allowed, for otherwise
/// Landlock would forbid to move files between folders. A kernel that cannot handle it (before 5.19) forbids nothing.
fn forbid_programs() -> Result<RestrictionStatus, RulesetError> {
    let everywhere = PathFd::new("/").map(|root| PathBeneath::new(root, AccessFs::Refer));
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Execute | AccessFs::Refer)?
        .create()?;
    let ruleset = match everywhere {
        Ok(rule) => ruleset.add_rule(rule)?,
        Err(_) => ruleset,
    };
    ruleset.restrict_self()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, process::Command, thread};

    /// Landlock restricts the thread that asks for it, so that the other tests go on as before.
    #[test]
    fn no_program_can_be_executed() {
        let run = || Command::new("true").status();
        let tried = thread::spawn(move || {
            assert!(run().unwrap().success());
            set_no_new_privs(true).unwrap();
            let Ok(status) = forbid_programs() else { return None };
            let directory = tempfile::tempdir().unwrap();
            let (from, to) = (directory.path().join("a/file"), directory.path().join("b/file"));
            fs::create_dir(directory.path().join("a")).unwrap();
            fs::create_dir(directory.path().join("b")).unwrap();
            fs::write(&from, "text").unwrap();
            fs::rename(&from, &to).expect("files still move between folders");
            Some((status.ruleset, run()))
        });
        match tried.join().unwrap() {
            None | Some((RulesetStatus::NotEnforced, _)) => eprintln!("skipped: this kernel has no such Landlock"),
            Some((_, result)) => assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied),
        }
        assert!(run().unwrap().success(), "only that thread gave the right up");
    }

    #[test]
    fn capabilities_are_named_as_in_the_manual() {
        assert_eq!(names(CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE), "net-bind-service net-raw");
        assert_eq!(given_up(CapabilitySet::empty()), "none");
        assert_eq!(given_up(CapabilitySet::NET_RAW), "net-raw");
        assert_eq!(given_up(CapabilitySet::all()), "41 others");
        let needs = [(CapabilitySet::NET_RAW, "a"), (CapabilitySet::BPF, "b")]
            .map(|(capabilities, why)| Need { capabilities, why: why.to_owned() });
        assert_eq!(reasons(&needs, CapabilitySet::NET_RAW), "net-raw (a)", "without what it did not have");
        assert_eq!(known(CapabilitySet::all()).iter_names().count(), 41, "capabilities(7) of Linux 5.9 and later");
    }
}
