//! The mail server that all mails go through.

use lettre::transport::smtp::client::{Certificate, TlsParameters};

use crate::config::{Authorities, SmtpConfig, SmtpSecurity};

/// The mail server, and how to know it.
pub(crate) struct MailServer {
    pub(super) config: SmtpConfig,
    /// None where the conversation is in clear.
    pub(super) tls: Option<TlsParameters>,
}

impl std::fmt::Debug for MailServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(formatter)
    }
}

impl MailServer {
    /// Reads once what the machine trusts, and adds these authorities to it.
    pub(crate) fn new(config: SmtpConfig, authorities: &Authorities) -> Self {
        let tls = (config.security != SmtpSecurity::None).then(|| {
            let mut builder = TlsParameters::builder(config.host.clone());
            for certificate in authorities.certificates() {
                let certificate = Certificate::from_der(certificate.to_vec());
                builder = builder.add_root_certificate(certificate.expect("DER is kept as it is"));
            }
            let tls = builder.build_rustls();
            tls.expect("authorities are checked when they are read")
        });
        Self { config, tls }
    }
}
