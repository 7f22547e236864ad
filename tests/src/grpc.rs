//! A gRPC client that sends a key with every call.

use std::str::FromStr;

use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

/// A channel with a key, for generated clients.
pub type Grpc = InterceptedService<Channel, Key>;

/// Flow-control window of a connection: with the default one, the HTTP/2 library treats a few
/// hundred small unread responses as an attack.
const WINDOW_BYTES: u32 = 1024 * 1024;

/// Returns a channel to this address, with a key if given. It connects with the first call.
///
/// # Panics
/// Panics if the address or the key is invalid.
pub fn channel(address: &str, key: Option<&str>) -> Grpc {
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .initial_connection_window_size(WINDOW_BYTES)
        .connect_lazy();
    let bearer = key.map(|key| MetadataValue::from_str(&format!("Bearer {key}")).unwrap());
    InterceptedService::new(channel, Key(bearer))
}

/// Adds the key to every call.
#[derive(Debug, Clone)]
pub struct Key(Option<MetadataValue<Ascii>>);

impl Interceptor for Key {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(bearer) = &self.0 {
            request
                .metadata_mut()
                .insert("authorization", bearer.clone());
        }
        Ok(request)
    }
}
