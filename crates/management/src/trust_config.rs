//! The settings that say who may command this node. They are checked once, and [`crate::authorization`] uses them.
//!
//! Source: management.md §8. The rules are those of [`namewire_security::trust`]. The configuration crate reads the
//! text of a file.
//!
//! Limits: the length of lists is not limited.

use namewire_security::trust::{AnchorCertificate, RulesOrAny, TrustAnchor};
use std::path::PathBuf;

/// Settings of [`crate::authorization`]. By default every application on this machine may register routes to itself
/// and use TagNet, and the router's own user and root may do everything.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustConfig {
    /// True if Unix peer credentials (the router's user, root, `allowed_gids`) allow every command of `faces`, `fib`,
    /// `cs`, `strategy-choice`, `log` and, except by `allowed_gids`, `capture`. They also allow the commands of `rib`
    /// and `tags`, unless `localhost_rib` or `localhost_tags` says otherwise. Default true.
    pub peer_credentials: bool,
    /// Groups whose members may command as the router's own user may, except `capture`.
    pub allowed_gids: Vec<u32>,
    /// The signatures that allow modules; one match is enough.
    pub authorizations: Vec<Authorization>,
    /// The rules of who may use `/localhost/nfd/rib`. If given, they alone decide; otherwise [`TrustConfig`]'s default
    /// applies.
    pub localhost_rib: Option<RulesOrAny>,
    /// The same for `/localhost/nfd/tags`: who may advertise tags, and who may push.
    pub localhost_tags: Option<RulesOrAny>,
    /// The rules of who may use `/localhop/nfd/rib`; `None`: the prefix is not served.
    pub localhop_rib: Option<RulesOrAny>,
    /// The rules by which announcements of prefixes (`rib/announce`) are accepted; `None`: applications may announce
    /// routes to themselves.
    pub prefix_announcement: Option<RulesOrAny>,
    /// Files and directories of revocation records. A router reads them and passes the contents to
    /// [`crate::Management::set_revocations`].
    pub revocations: Vec<PathBuf>,
    /// True if the network is asked for revocation records of the certificates behind signed commands. Default true.
    pub looks_up_revocations: bool,
}

impl Default for TrustConfig {
    fn default() -> Self {
        TrustConfig {
            peer_credentials: true,
            allowed_gids: Vec::new(),
            authorizations: Vec::new(),
            localhost_rib: None,
            localhost_tags: None,
            localhop_rib: None,
            prefix_announcement: None,
            revocations: Vec::new(),
            looks_up_revocations: true,
        }
    }
}

impl TrustConfig {
    /// The files and directories from which rules take their anchors. A router reads them and passes the contents to
    /// [`crate::Management::set_anchors`].
    pub fn anchor_files(&self) -> impl Iterator<Item = &TrustAnchor> {
        self.anchors().filter(|anchor| !matches!(anchor, TrustAnchor::Certificate(_)))
    }

    /// The trust anchors of all rules.
    pub fn anchors(&self) -> impl Iterator<Item = &TrustAnchor> {
        let TrustConfig { localhost_rib, localhost_tags, localhop_rib, prefix_announcement, .. } = self;
        let sections = [localhost_rib, localhost_tags, localhop_rib, prefix_announcement].into_iter().flatten();
        sections.flat_map(RulesOrAny::anchors)
    }
}

/// One `authorize` section: a signer and what it may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Authorization {
    /// The signer.
    pub signer: Signer,
    /// What it may do.
    pub privileges: Privileges,
}

/// The signer of an [`Authorization`].
#[derive(Clone, Debug, PartialEq)]
pub enum Signer {
    /// Any sender that reaches `/localhost/nfd` from a local face, even without a signature (NFD's `certfile any`).
    /// `rib` and `tags` still require the elements of a signature.
    Any,
    /// The holder of this certificate's key.
    Certificate(AnchorCertificate),
}

/// Modules whose commands are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Privileges {
    /// `faces`: create, update, destroy.
    pub faces: bool,
    /// `fib`: next hops by hand.
    pub fib: bool,
    /// `cs`: config, erase.
    pub cs: bool,
    /// `strategy-choice`: set, unset.
    pub strategy_choice: bool,
    /// `rib`: routes of any face.
    pub rib: bool,
    /// `tags`: advertise, withdraw, join.
    pub tags: bool,
    /// `capture`: start, add, stop.
    pub capture: bool,
    /// `log`: set.
    pub log: bool,
}

impl Privileges {
    /// Every module.
    pub const ALL: Self = Privileges {
        faces: true,
        fib: true,
        cs: true,
        strategy_choice: true,
        rib: true,
        tags: true,
        capture: true,
        log: true,
    };
}
