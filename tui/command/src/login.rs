//! `bellwether login` and `logout`: sign-in with the OpenID Connect provider of a service, whose
//! token then replaces an API key.

mod device;

use std::io::Write;

use bellwether_language::text;
use bellwether_proto::v1::{
    GetCallerRequest, GetSignInRequest, GetSignInResponse,
    client_service_client::ClientServiceClient, sign_in_service_client::SignInServiceClient,
};
use tonic::transport::Endpoint;

use self::device::DeviceRequest;
use crate::{
    clients::{self, PATIENCE, role_word, unreachable_failure},
    config::Settings,
    failure::Failure,
    ready,
    sign_ins::{self, SignIn, TokenFile},
    tls,
};

pub(crate) async fn run_login(settings: &Settings, mut out: impl Write) -> Result<(), Failure> {
    let address = ready::grpc_address(settings);
    let token_file = TokenFile::for_settings(settings)?;
    let message = request_settings(&address, settings).await?;
    if message.issuer.is_empty() {
        return Err(Failure::new(
            "sign-in is not set up on the service (`oidc.issuer`); use a key",
        ));
    }
    let provider = sign_ins::connect_provider(&message.issuer, settings)?;
    let request = DeviceRequest {
        provider: &provider,
        client_id: &message.client_id,
        scopes: &message.scopes,
    };
    let (token_endpoint, tokens) = device::sign_in(&request, &mut out).await?;
    let sign_in = SignIn::new(&message, token_endpoint, tokens)?;
    let key = sign_in.token.clone();
    let connection =
        clients::connect_with_key(&address, settings, Some(&key), |it| it.timeout(PATIENCE))
            .await?;
    let mut service = ClientServiceClient::new(connection);
    let caller = service.get_caller(GetCallerRequest {}).await;
    let caller = caller?.into_inner().client;
    let caller = caller.unwrap_or_default();
    let lock = token_file.lock().await?;
    token_file.store(&lock, &address, sign_in)?;
    let (name, role) = (&caller.name, role_word(&caller));
    let done = format!("Signed in at {address} as {name}, role {role}.");
    writeln!(out, "{}", text::escape_invisible(&done, false))
        .map_err(|error| output_failure(&error))
}

pub(crate) async fn run_logout(settings: &Settings, mut out: impl Write) -> Result<(), Failure> {
    let address = ready::grpc_address(settings);
    let token_file = TokenFile::for_settings(settings)?;
    let lock = token_file.lock().await?;
    let message = if token_file.remove(&lock, &address)? {
        format!("Signed out of {address}.")
    } else {
        format!("Not signed in at {address}.")
    };
    writeln!(out, "{message}").map_err(|error| output_failure(&error))
}

/// Requests the sign-in settings of the service. The connection must be secure enough to send a
/// token over.
async fn request_settings(
    address: &str,
    settings: &Settings,
) -> Result<GetSignInResponse, Failure> {
    let unreachable = |error: tonic::transport::Error| unreachable_failure(address, error);
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(unreachable)?;
    let endpoint = tls::secure_endpoint(endpoint.timeout(PATIENCE), settings)?;
    let channel = endpoint.connect_timeout(PATIENCE).connect().await;
    let mut service = SignInServiceClient::new(channel.map_err(unreachable)?);
    let message = service.get_sign_in(GetSignInRequest {}).await;
    Ok(message?.into_inner())
}

fn output_failure(error: &std::io::Error) -> Failure {
    Failure::new(format!("failed to write the output: {error}"))
}
