//! `bellwether client create` without a service: creates the client in the store directly.

use bellwether_backend::{
    server::{StartError, create_client},
    store::OpenError,
};
use bellwether_proto::v1::CreateClientRequest;

use crate::{config::Settings, failure::Failure};

/// Creates a client in the configured store and returns its key; `None` if there is no store, or a
/// running service is configured.
pub(crate) async fn create(
    request: CreateClientRequest,
    settings: &Settings,
) -> Result<Option<String>, Failure> {
    if settings.connect.is_some() {
        return Ok(None);
    }
    let config = settings.backend_config()?;
    match create_client(&config.location(), &request.into()).await {
        Ok(key) => Ok(Some(key.reveal().to_owned())),
        Err(StartError::Store(OpenError::NoStore(_))) => Ok(None),
        Err(StartError::Store(error @ OpenError::InUse(_))) => {
            let remedy =
                "set an API key with --key-file, or stop the service to continue without one";
            Err(Failure::from_error(&error).with_clause(remedy))
        }
        Err(error) => Err(Failure::from_error(&error)),
    }
}
