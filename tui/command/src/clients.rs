//! `bellwether client`: creates, lists and revokes the clients of a running service.

use std::{io::Write, time::Duration};

use bellwether_language::text::enum_word;
use bellwether_proto::v1::{
    self as wire, CreateClientRequest, ListClientsRequest, RevokeClientRequest,
    RotateClientKeyRequest, UpdateClientRequest, client_service_client::ClientServiceClient,
};
use bellwether_tui::api::CallError;
use jiff::Timestamp;
use tonic::{
    Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

use crate::store_client;
use crate::{
    cli::{ClientChange, ClientCommand, NewClient, Role},
    config::Settings,
    failure::Failure,
    key, output, ready, tls,
};

/// Timeout for connecting, and for each call.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const PAGE: i32 = 1_000;

pub(crate) async fn run_client_command(
    command: ClientCommand,
    settings: &Settings,
    mut out: impl Write,
) -> Result<(), Failure> {
    let address = ready::grpc_address(settings);
    if let ClientCommand::Create(new) = command {
        let key = create(new.into(), &address, settings).await?;
        return writeln!(out, "{key}").map_err(write_failure);
    }
    let mut service = connect_client_service(&address, settings).await?;
    let text = match command {
        ClientCommand::Create(_) => unreachable!("it was executed"),
        ClientCommand::Update(change) => {
            let request = UpdateClientRequest::from(change);
            let answer = service.update_client(request).await?;
            let client = answer.into_inner().client.unwrap_or_default();
            writeln!(out, "{}", output::escape_controls(&format_client(&client)))
        }
        ClientCommand::List => {
            let clients = list_clients(&mut service).await?;
            clients.iter().try_for_each(|client| {
                writeln!(out, "{}", output::escape_controls(&format_client(client)))
            })
        }
        ClientCommand::Rotate { name, overlap } => {
            let request = RotateClientKeyRequest {
                name,
                overlap_seconds: overlap,
            };
            let answer = service.rotate_client_key(request).await?;
            writeln!(out, "{}", answer.into_inner().key)
        }
        ClientCommand::Revoke { name } => {
            let request = RevokeClientRequest { name };
            service.revoke_client(request).await?;
            Ok(())
        }
    };
    text.map_err(write_failure)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the signature that `map_err` requires"
)]
fn write_failure(error: std::io::Error) -> Failure {
    Failure::new(format!("failed to write the output: {error}"))
}

/// Creates a client and returns its key. Without a key or a running service, the client is created
/// in the store directly, which requires access to the store and its encryption keys.
async fn create(
    request: CreateClientRequest,
    address: &str,
    settings: &Settings,
) -> Result<String, Failure> {
    if settings.selects_store()
        && let Some(key) = store_client::create(request.clone(), settings).await?
    {
        return Ok(key);
    }
    let connected = connect_client_service(address, settings).await;
    if connected.is_err()
        && let Some(key) = store_client::create(request.clone(), settings).await?
    {
        return Ok(key);
    }
    let answer = connected?.create_client(request).await?;
    Ok(answer.into_inner().key)
}

impl From<NewClient> for CreateClientRequest {
    fn from(new: NewClient) -> Self {
        Self {
            name: new.name,
            role: wire::Role::from(new.role).into(),
            requests_per_second: new.requests_per_second,
            events_per_second: new.events_per_second,
            dialects: new.dialects,
            expire_time: new.expires.map(wire_time),
            scope_tags: new.scope_tags,
            scope_sources: new.scope_sources,
            certificates: new.certificates,
        }
    }
}

impl From<ClientChange> for UpdateClientRequest {
    fn from(change: ClientChange) -> Self {
        let texts = |none: bool, values: Vec<String>| {
            (none || !values.is_empty()).then_some(wire::Texts { values })
        };
        let dialects = change.dialects;
        let states_dialects = change.no_dialect || !dialects.is_empty();
        Self {
            name: change.name,
            requests_per_second: change.requests_per_second,
            events_per_second: change.events_per_second,
            dialects: states_dialects.then_some(wire::Dialects { names: dialects }),
            expire_time: if change.no_end {
                Some(prost_types::Timestamp::default())
            } else {
                change.expires.map(wire_time)
            },
            scope_tags: texts(change.no_scope, change.scope_tags),
            scope_sources: texts(change.no_scope, change.scope_sources),
            certificates: texts(change.no_certificate, change.certificates),
        }
    }
}

type ClientService = ClientServiceClient<Connection>;

pub(crate) type Connection = InterceptedService<Channel, Bearer>;

async fn connect_client_service(
    address: &str,
    settings: &Settings,
) -> Result<ClientService, Failure> {
    let connection =
        open_connection(address, settings, |endpoint| endpoint.timeout(PATIENCE)).await?;
    Ok(ClientServiceClient::new(connection))
}

pub(crate) async fn connect_without_timeout(
    address: &str,
    settings: &Settings,
) -> Result<Connection, Failure> {
    open_connection(address, settings, |endpoint| endpoint).await
}

pub(crate) fn unreachable_failure(address: &str, error: impl Into<CallError>) -> Failure {
    let error = error.into();
    let message = format!(
        "no service responds at {address} ({}); start one with `bellwether serve`, or name another \
         with --connect",
        error.message
    );
    CallError { message, ..error }.into()
}

pub(crate) async fn open_connection(
    address: &str,
    settings: &Settings,
    settle: impl FnOnce(Endpoint) -> Endpoint,
) -> Result<Connection, Failure> {
    let key = key::read_key(settings, address).await?;
    connect_with_key(address, settings, key.as_deref(), settle).await
}

/// Connects to a service with this key, or without a key if a certificate authenticates the caller.
pub(crate) async fn connect_with_key(
    address: &str,
    settings: &Settings,
    key: Option<&str>,
    settle: impl FnOnce(Endpoint) -> Endpoint,
) -> Result<Connection, Failure> {
    let unreachable = |error: tonic::transport::Error| unreachable_failure(address, error);
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(unreachable)?;
    let channel = settle(tls::secure_endpoint(endpoint, settings)?.connect_timeout(PATIENCE))
        .connect()
        .await
        .map_err(unreachable)?;
    let bearer = key.map(|key| format!("Bearer {key}").parse()).transpose();
    let bearer = bearer.map_err(|_unfit| Failure::new("invalid character in the API key"))?;
    Ok(InterceptedService::new(channel, Bearer(bearer)))
}

async fn list_clients(service: &mut ClientService) -> Result<Vec<wire::Client>, Failure> {
    let mut clients = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListClientsRequest {
            page_size: PAGE,
            page_token,
        };
        let page = service.list_clients(request).await?.into_inner();
        clients.extend(page.clients);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(clients);
        }
    }
}

fn format_client(client: &wire::Client) -> String {
    let role = role_word(client);
    let (made, mut used) = (
        format_time(client.create_time),
        format_time(client.last_used_time),
    );
    if !client.last_used_address.is_empty() {
        used = format!("{used} from {}", client.last_used_address);
    }
    let ends = [
        (client.expire_time, "ends"),
        (client.previous_key_expire_time, "key before ends"),
    ];
    let ends = ends.into_iter().filter(|(at, _)| at.is_some());
    let ends: Vec<_> = ends
        .map(|(at, what)| format!("\t{what} {}", format_time(at)))
        .collect();
    let ends = ends.concat();
    let limits = [
        (client.requests_per_second, "calls"),
        (client.events_per_second, "events"),
    ];
    let limits = limits.into_iter().filter(|(limit, _)| *limit > 0);
    let limits = limits.map(|(limit, what)| format!("\t{limit} {what}/s"));
    let limits: String = limits.collect();
    let dialects = client.dialects.iter().map(|it| format!("\t{it}"));
    let dialects: String = dialects.collect();
    let scopes = [
        (&client.scope_tags, "tag "),
        (&client.scope_sources, "source "),
        (&client.certificates, ""),
    ];
    let scopes = scopes.into_iter();
    let scopes =
        scopes.flat_map(|(texts, what)| texts.iter().map(move |it| format!("\t{what}{it}")));
    let scopes: String = scopes.collect();
    let name = &client.name;
    format!("{name}\t{role}\tcreated {made}\tused {used}{ends}{limits}{dialects}{scopes}")
}

pub(crate) fn role_word(client: &wire::Client) -> String {
    enum_word(client.role().as_str_name(), "ROLE_")
}

pub(crate) fn wire_time(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: at.as_second(),
        nanos: at.subsec_nanosecond(),
    }
}

fn format_time(time: Option<prost_types::Timestamp>) -> String {
    time.and_then(|time| Timestamp::new(time.seconds, time.nanos).ok())
        .map_or_else(|| "never".to_owned(), |time| format!("{time:.0}"))
}

#[derive(Debug, Clone)]
pub(crate) struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert("authorization", key.clone());
        }
        Ok(request)
    }
}

impl From<Role> for wire::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Ingest => Self::Ingest,
            Role::Viewer => Self::Viewer,
            Role::Operator => Self::Operator,
            Role::Editor => Self::Editor,
            Role::Admin => Self::Admin,
        }
    }
}
