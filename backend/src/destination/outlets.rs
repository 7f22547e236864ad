//! The ways out of the service, and what else all attempts share.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    Renderers, dial::Dialer, http::HttpClient, mail_server::MailServer, sink::EventSink,
    tokens::Tokens,
};
use crate::{clock::Clock, config::ProviderConfig, domain::SharedSettings, message::Links};

/// The ways out, and what else all attempts share.
#[derive(Debug)]
pub(crate) struct Outlets {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dialer: Dialer,
    pub(super) http: HttpClient,
    pub(super) providers: ProviderConfig,
    pub(super) mail_server: Option<MailServer>,
    /// How long a mail server may take to answer the text of a mail.
    pub(super) mail_answer_timeout: Duration,
    pub(super) tokens: Tokens,
    pub(super) sink: Option<Arc<dyn EventSink>>,
    pub(super) settings: watch::Receiver<Arc<SharedSettings>>,
    /// Where the links in messages lead: as they are sent, and as they are shown.
    pub(super) links: Links,
    pub(super) masked_links: Links,
    pub(super) renderers: Renderers,
}
