//! Certificates that are made for a test. Shared by the tests of several crates.

use lanecast_tls::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder with a certificate authority.
pub(crate) struct Certificates {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut params = CertificateParams::new(Vec::new()).expect("a certificate");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a certificate");
        let certificates = Self { folder, issuer };
        certificates.write("ca.pem", &certificates.issuer.pem());
        certificates.write("ca.key", &certificates.issuer.key().serialize_pem());
        certificates
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
        std::fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).expect("a file");
    }

    /// Issues `NAME.pem` and `NAME.key` for a host, good until the end of that year.
    pub(crate) fn issue(&self, name: &str, host: &str, year: i32) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a certificate");
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    /// The TLS files of a server with the certificate of that name.
    pub(crate) fn tls(&self, name: &str) -> TlsFiles {
        let certificate = self.path(&format!("{name}.pem"));
        TlsFiles { certificate, key: self.path(&format!("{name}.key")), clients: None }
    }
}
