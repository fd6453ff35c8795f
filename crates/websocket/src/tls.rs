//! Certificates of `wss`: our own, from files that may be replaced while the router runs, and those of trusted issuers.

use namewire_configuration::input_file;
use rustls_native_certs::load_native_certs;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// Largest file of certificates or of a key. The system's whole list of issuers has 250 kB.
const PEM_BYTES_MAX: u64 = 4 << 20;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn invalid(path: &Path, what: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
}

fn read_pem(path: &Path) -> io::Result<Vec<u8>> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    input_file::read(path, PEM_BYTES_MAX).map_err(at)
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let bytes = read_pem(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if certificates.is_empty() => Err(invalid(path, "no certificate in PEM")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(invalid(path, error)),
    }
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    /// The certificate chain, the server's own first.
    pub(crate) certificate: PathBuf,
    /// The private key (PKCS#8, PKCS#1 or SEC1).
    pub(crate) key: PathBuf,
}

/// The certificate that we show, read again when its files change.
pub(crate) struct ServerTls {
    files: TlsFiles,
    /// The times of the files at the last attempt to read them.
    written: [Option<SystemTime>; 2],
    config: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the files. An error names the file.
    pub(crate) fn read(files: &TlsFiles) -> io::Result<Self> {
        let written = written(files);
        Ok(ServerTls { files: files.clone(), written, config: server_config(files)? })
    }

    /// The configuration for the next connection. If changed files cannot be read, it is an error and the old
    /// configuration stays.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let written = written(&self.files);
        if written != self.written {
            self.written = written;
            self.config = server_config(&self.files)?;
        }
        Ok(())
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }
}

fn written(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    [&files.certificate, &files.key].map(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
}

fn server_config(files: &TlsFiles) -> io::Result<Arc<ServerConfig>> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&read_pem(&files.key)?).map_err(|error| invalid(&files.key, error))?;
    let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?.with_no_client_auth().with_single_cert(chain, key);
    Ok(Arc::new(config.map_err(|error| invalid(&files.certificate, error))?))
}

/// How servers are checked: against the certificates in `trusted`, or against the system's.
pub(crate) fn client_config(trusted: Option<&PathBuf>) -> io::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let found = match trusted {
        Some(path) => certificates(path)?,
        None => load_native_certs().certs,
    };
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        let what = "there are no trusted certificates on this system; name a file of them";
        return Err(io::Error::new(io::ErrorKind::NotFound, what));
    }
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    Ok(Arc::new(config.map_err(io::Error::other)?.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_changed_certificate_is_read_again_and_a_broken_one_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let files = TlsFiles { certificate: directory.path().join("cert.pem"), key: directory.path().join("key.pem") };
        assert!(ServerTls::read(&files).is_err());
        let mut second = 0;
        let mut write = |is_whole: bool| {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            let certificate = if is_whole { made.cert.pem() } else { "nothing".to_owned() };
            fs::write(&files.certificate, certificate).unwrap();
            fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
            // The code tells files apart by time, and a test is faster than some file systems' clocks.
            second += 1;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            fs::File::open(&files.key).unwrap().set_modified(time).unwrap();
        };
        write(true);
        let mut tls = ServerTls::read(&files).unwrap();
        let first = tls.config();
        tls.refresh().unwrap();
        assert!(Arc::ptr_eq(&first, &tls.config()), "nothing changed");
        write(false);
        assert!(tls.refresh().unwrap_err().to_string().contains("cert.pem"));
        assert!(Arc::ptr_eq(&first, &tls.config()), "the old one stays");
        assert!(tls.refresh().is_ok(), "told once");
        write(true);
        tls.refresh().unwrap();
        assert!(!Arc::ptr_eq(&first, &tls.config()));
        assert!(client_config(Some(&files.certificate)).is_ok());
        assert!(client_config(Some(&files.key)).is_err());
    }
}
