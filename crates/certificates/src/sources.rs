//! Where do certificates come from, and when are they read again? Key chains, files and directories.
//!
//! [`Watch::look`] reads them if they have changed since the last look. It compares the time of the last change, the
//! size and the number of each file: of `pib.db` and its log of changes, and of every file of certificates. If a file
//! changed less than [`SETTLE`] before it was read, a second change may bear the same time, so the next look reads
//! again.
//!
//! Of a key chain, only the PIB is opened, for reading: names and certificates are in it, and no private key.
//!
//! Limits: [`CERTIFICATE_FILE_BYTES_MAX`] for each file, [`FILES_MAX`] in each directory, and as many certificates of
//! a key chain as [`ROWS_MAX`].

use namewire_packet::{KeyLocator, Name, NameBuf};
use namewire_security::{
    Certificate,
    key_chain::{Pib, PibError, ROWS_MAX},
    trust::AnchorCertificate,
};
use rustix::fs::OFlags;
use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::{self, Read},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Longest file of a certificate; a packet in base64 has 12 kB.
pub const CERTIFICATE_FILE_BYTES_MAX: u64 = 65_536;
/// Most files read in a directory.
pub const FILES_MAX: usize = 1024;
/// The times of files may be this coarse.
const SETTLE: Duration = Duration::from_secs(2);

/// The certificates to serve that are on disk or in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Certificates of a key chain.
    pub key_chain: Option<KeyChainPart>,
    /// Files of one certificate each, and directories of such files.
    pub paths: Vec<PathBuf>,
    /// Certificates that are at hand.
    pub given: Vec<Certificate>,
}

/// Certificates of a key chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyChainPart {
    /// The directory of its `pib.db`.
    pub pib_directory: PathBuf,
    /// Identities, keys and certificates whose certificates are served, with the certificates of their issuers as far
    /// as the key chain has them. `None`: all.
    pub names: Option<Vec<NameBuf>>,
}

/// What a look found.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// All certificates of the key chain, if they may have changed.
    pub(crate) key_chain: Option<Vec<Certificate>>,
    /// All other certificates, if they may have changed.
    pub(crate) files: Option<Vec<Certificate>>,
    /// What could not be read, in words, if that was not so at the last look.
    pub(crate) problems: Vec<String>,
}

/// The state of files at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stamp(Vec<(PathBuf, Option<Version>)>);

/// Time of the last change in seconds and nanoseconds, bytes, and the file's number.
type Version = (i64, i64, u64, u64);

impl Stamp {
    fn of<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Self {
        let version = |path: &PathBuf| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino()))
        };
        Stamp(paths.into_iter().map(|path| (path.clone(), version(path))).collect())
    }

    /// True if the last change is so long ago that another one will have another time.
    fn is_settled(&self) -> bool {
        let is_old = |path: &PathBuf| {
            let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
            // A file of the future has a clock of its own.
            changed.is_ok_and(|at| SystemTime::now().duration_since(at).map_or(true, |age| age >= SETTLE))
        };
        self.0.iter().all(|(path, version)| version.is_none() || is_old(path))
    }
}

/// Sources, and how they were at the last look.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    sources: Sources,
    pib: Option<Stamp>,
    files: Option<Stamp>,
    problems: BTreeSet<String>,
}

impl Watch {
    pub(crate) fn new(sources: Sources) -> Self {
        Watch { sources, ..Watch::default() }
    }

    /// Reads what has changed. It may wait for disks.
    pub(crate) fn look(&mut self) -> Seen {
        let mut problems = BTreeSet::new();
        let mut seen = Seen { key_chain: self.look_at_key_chain(&mut problems), ..Seen::default() };
        seen.files = self.look_at_files(&mut problems);
        seen.problems = problems.difference(&self.problems).cloned().collect();
        self.problems = problems;
        seen
    }

    fn look_at_key_chain(&mut self, problems: &mut BTreeSet<String>) -> Option<Vec<Certificate>> {
        let Some(part) = &self.sources.key_chain else {
            return self.pib.replace(Stamp::default()).is_none().then(Vec::new);
        };
        let stamp = Stamp::of(&["pib.db", "pib.db-wal"].map(|file| part.pib_directory.join(file)));
        if self.pib.as_ref() == Some(&stamp) {
            // What could not be read before still cannot.
            problems.extend(self.problems.iter().filter(|problem| problem.starts_with(OF_KEY_CHAIN)).cloned());
            return None;
        }
        let is_settled = stamp.is_settled();
        match read_key_chain(part) {
            Ok((certificates, are_all)) => {
                self.pib = is_settled.then_some(stamp);
                if !are_all {
                    problems.insert(format!("{OF_KEY_CHAIN}: it has more than {ROWS_MAX} certificates"));
                }
                Some(certificates)
            }
            // It may come later, and its certificates with it.
            Err(PibError::Missing(_)) => {
                self.pib = Some(stamp);
                Some(Vec::new())
            }
            // Another program may hold it, or write it: the certificates known so far remain.
            Err(error) => {
                problems.insert(format!("{OF_KEY_CHAIN}: {error}"));
                None
            }
        }
    }

    fn look_at_files(&mut self, problems: &mut BTreeSet<String>) -> Option<Vec<Certificate>> {
        let files: Vec<(PathBuf, bool)> = self.sources.paths.iter().flat_map(|path| files_at(path, problems)).collect();
        let stamp = Stamp::of(files.iter().map(|(path, _)| path));
        if self.files.as_ref() == Some(&stamp) {
            problems.extend(self.problems.iter().filter(|problem| problem.starts_with(OF_FILE)).cloned());
            return None;
        }
        let is_settled = stamp.is_settled();
        let mut certificates = self.sources.given.clone();
        for (path, is_named) in &files {
            match read_certificate(path) {
                Ok(certificate) => certificates.push(certificate),
                // A directory may hold other things, too.
                Err(_) if !is_named => {}
                Err(why) => _ = problems.insert(format!("{OF_FILE} {}: {why}", path.display())),
            }
        }
        self.files = is_settled.then_some(stamp);
        Some(certificates)
    }
}

const OF_KEY_CHAIN: &str = "key chain";
const OF_FILE: &str = "certificate";

/// The files at a path, each with whether the path names the file itself.
fn files_at(path: &Path, problems: &mut BTreeSet<String>) -> Vec<(PathBuf, bool)> {
    if !path.is_dir() {
        return vec![(path.to_owned(), true)];
    }
    let entries = match path.read_dir() {
        Ok(entries) => entries,
        Err(error) => {
            problems.insert(format!("directory {}: {error}", path.display()));
            return Vec::new();
        }
    };
    let mut files: Vec<_> = entries.flatten().take(FILES_MAX + 1).map(|entry| (entry.path(), false)).collect();
    if files.len() > FILES_MAX {
        problems.insert(format!("directory {}: only {FILES_MAX} of its files are read", path.display()));
        files.truncate(FILES_MAX);
    }
    files.sort();
    files
}

/// The certificate in a regular file: a packet, or base64 of it. A pipe is not waited for.
fn read_certificate(path: &Path) -> Result<Certificate, String> {
    let said = |error: io::Error| error.to_string();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path).map_err(said)?;
    if !file.metadata().map_err(said)?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(CERTIFICATE_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > CERTIFICATE_FILE_BYTES_MAX {
        return Err(format!("it is larger than {CERTIFICATE_FILE_BYTES_MAX} bytes"));
    }
    let certificate = AnchorCertificate::parse(bytes).map_err(|error| error.to_string())?;
    Ok(certificate.certificate().clone())
}

/// The certificates to serve of a key chain, and whether it has no more than were read. Rows that are no certificates
/// are left out.
fn read_key_chain(part: &KeyChainPart) -> Result<(Vec<Certificate>, bool), PibError> {
    let rows = Pib::open(&part.pib_directory)?.all_certificates()?;
    let are_all = rows.len() < ROWS_MAX;
    let all: Vec<Certificate> = rows.iter().filter_map(|row| Certificate::parse(&row.bytes).ok()).collect();
    let Some(names) = &part.names else { return Ok((all, are_all)) };
    let is_named = |certificate: &Certificate| {
        let named = [certificate.identity(), certificate.key_name(), certificate.name()];
        names.iter().any(|name| named.contains(&name.as_name()))
    };
    let (mut chosen, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_named);
    // The issuers of what was chosen, and theirs; each issuer once.
    let (mut at, mut followed) = (0, BTreeSet::new());
    while at < chosen.len() {
        if let Some(KeyLocator::Name(issuer)) = chosen[at].key_locator()
            && followed.insert(issuer.to_buf())
        {
            let is_issuer = |other: &Certificate| means(issuer, other);
            let (issuers, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(is_issuer);
            others = rest;
            chosen.extend(issuers);
        }
        at += 1;
    }
    Ok((chosen, are_all))
}

/// True if a KeyLocator with this name means this certificate, or another one of its key.
fn means(locator: Name<'_>, certificate: &Certificate) -> bool {
    certificate.key_name().is_prefix_of(&locator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use namewire_packet::Component;
    use namewire_security::{
        PrivateKey, Signer, ValidityPeriod, issue_certificate,
        key_chain::{KeyChain, KeyChainLocation},
    };

    const NOW_MS: u64 = 1_795_254_446_000;

    fn name(uri: &str) -> NameBuf {
        uri.parse().unwrap()
    }

    fn names(certificates: &[Certificate]) -> Vec<String> {
        certificates.iter().map(|certificate| certificate.identity().to_string()).collect()
    }

    struct Home {
        folder: tempfile::TempDir,
        chain: KeyChain,
    }

    impl Home {
        fn new() -> Home {
            let folder = tempfile::tempdir().unwrap();
            let location = KeyChainLocation::new(None, None, folder.path()).unwrap();
            let chain = KeyChain::open_or_create(&location, folder.path()).unwrap();
            Home { folder, chain }
        }

        fn add(&self, identity: &str) -> Certificate {
            let key = PrivateKey::generate_ecdsa().unwrap();
            self.chain.add_identity_key(name(identity).as_name(), key, NOW_MS).unwrap()
        }

        fn part(&self, names: Option<&[&str]>) -> Sources {
            let names = names.map(|names| names.iter().map(|uri| name(uri)).collect());
            let pib_directory = self.folder.path().join(".ndn");
            Sources { key_chain: Some(KeyChainPart { pib_directory, names }), ..Sources::default() }
        }

        /// Makes the last change older than the clock of the file system is coarse.
        fn settle(&self) {
            let file = fs::File::options().write(true).open(self.folder.path().join(".ndn/pib.db")).unwrap();
            file.set_modified(SystemTime::now() - 2 * SETTLE).unwrap();
        }
    }

    #[test]
    fn a_key_chain_is_read_again_when_it_has_changed() {
        let home = Home::new();
        home.add("/alice");
        let mut watch = Watch::new(home.part(None));
        assert_eq!(names(&watch.look().key_chain.unwrap()), ["/alice"]);
        assert!(watch.look().key_chain.is_some(), "it has changed a moment ago, and could have the same time again");
        home.settle();
        assert!(watch.look().key_chain.is_some());
        assert!(watch.look().key_chain.is_none(), "nothing has changed");
        home.add("/bob");
        assert_eq!(names(&watch.look().key_chain.unwrap()), ["/bob", "/alice"]);
    }

    #[test]
    fn chosen_names_come_with_their_issuers() {
        let home = Home::new();
        let (alice, _) = (home.add("/alice"), home.add("/other"));
        let site = home.add("/site");
        let signer = home.chain.signer(name("/site").as_name()).unwrap();
        let validity = ValidityPeriod { not_before_ms: NOW_MS, not_after_ms: NOW_MS + 1_000_000 };
        let issuer = Component::generic(b"site");
        let issued = issue_certificate(&signer, alice.key_name(), alice.spki(), issuer, 7, validity).unwrap();
        home.chain.import_certificate(&issued).unwrap();
        let mut watch = Watch::new(home.part(Some(&["/alice"])));
        let mut chosen: Vec<_> = watch.look().key_chain.unwrap().iter().map(|one| one.name().to_buf()).collect();
        chosen.sort();
        let mut expected = [&alice, &issued, &site].map(|one| one.name().to_buf());
        expected.sort();
        assert_eq!(chosen, expected);
        let key = site.key_name().to_string();
        assert_eq!(names(&Watch::new(home.part(Some(&[key.as_str()]))).look().key_chain.unwrap()), ["/site"]);
    }

    #[test]
    fn a_missing_key_chain_has_no_certificates_and_is_found_later() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join(".ndn");
        let part = KeyChainPart { pib_directory: directory, names: None };
        let mut watch = Watch::new(Sources { key_chain: Some(part), ..Sources::default() });
        let seen = watch.look();
        assert_eq!((seen.key_chain.unwrap(), seen.problems), (vec![], vec![]));
        let location = KeyChainLocation::new(None, None, folder.path()).unwrap();
        let chain = KeyChain::open_or_create(&location, folder.path()).unwrap();
        chain.add_identity_key(name("/late").as_name(), PrivateKey::generate_ecdsa().unwrap(), NOW_MS).unwrap();
        assert_eq!(names(&watch.look().key_chain.unwrap()), ["/late"]);
    }

    #[test]
    fn files_give_certificates_and_nothing_else() {
        let home = Home::new();
        let alice = home.add("/alice");
        let folder = home.folder.path().join("certificates");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("alice"), alice.wire()).unwrap();
        let bag = home.chain.export_safe_bag(name("/alice").as_name(), b"phrase").unwrap();
        fs::write(folder.join("bag"), bag.to_wire()).unwrap();
        fs::write(folder.join("key"), fs::read(home.chain.key_files().path(alice.key_name())).unwrap()).unwrap();
        fs::write(folder.join("long"), vec![b'A'; CERTIFICATE_FILE_BYTES_MAX as usize + 1]).unwrap();
        let named = folder.join("bag");
        let mut watch = Watch::new(Sources { paths: vec![folder.clone(), named], ..Sources::default() });
        let seen = watch.look();
        assert_eq!(seen.files.unwrap(), [alice], "no safe bag, and no private key");
        assert!(seen.problems[0].contains("bag: not a certificate"), "{:?}", seen.problems);
        fs::remove_file(folder.join("alice")).unwrap();
        let seen = watch.look();
        assert_eq!(seen.files.unwrap(), []);
        assert_eq!(seen.problems, <[String; 0]>::default(), "it was said before");
    }

    #[test]
    fn a_key_locator_means_the_certificates_of_its_key() {
        let key = PrivateKey::generate_ecdsa().unwrap();
        let spki = key.public_key().spki().to_vec();
        let locator = name("/site/KEY/k/self/v=1");
        let signer = Signer::private_key(key, locator.clone());
        let validity = ValidityPeriod { not_before_ms: 0, not_after_ms: NOW_MS };
        let issuer = Component::generic(b"self");
        let of = |uri: &str| issue_certificate(&signer, name(uri).as_name(), &spki, issuer, 1, validity).unwrap();
        assert!(means(locator.as_name(), &of("/site/KEY/k")));
        assert!(!means(locator.as_name(), &of("/site/KEY/other")));
    }
}
