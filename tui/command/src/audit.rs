//! `bellwether audit`: the audit log of a running service as lines of JSON.

use std::io::Write;

use bellwether_proto::{
    json,
    v1::{ListAuditEntriesRequest, audit_service_client::AuditServiceClient},
};

use crate::{
    cli::AuditArguments,
    clients::{self, wire_time},
    config::Settings,
    failure::Failure,
    output, ready,
};

const PAGE: i32 = 1_000;

pub(crate) async fn run(
    arguments: AuditArguments,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let address = ready::grpc_address(settings);
    let connection = clients::open_connection(&address, settings, |endpoint| endpoint).await?;
    let mut service = AuditServiceClient::new(connection);
    let mut request = ListAuditEntriesRequest {
        page_size: PAGE,
        client_names: arguments.clients,
        kinds: arguments.kinds,
        names: arguments.names,
        start: arguments.since.map(wire_time),
        end: arguments.until.map(wire_time),
        ..ListAuditEntriesRequest::default()
    };
    loop {
        let answer = service.list_audit_entries(request.clone()).await;
        let page = answer?.into_inner();
        for entry in &page.entries {
            let line = json::to_json(entry)
                .map_err(|error| Failure::new(format!("failed to write an entry: {error}")))?;
            let line = String::from_utf8_lossy(&line);
            writeln!(out, "{}", output::escape_controls(&line))
                .map_err(|error| Failure::new(format!("failed to write the output: {error}")))?;
        }
        if page.next_page_token.is_empty() {
            return Ok(());
        }
        request.page_token = page.next_page_token;
    }
}
