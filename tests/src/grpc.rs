//! A gRPC client with a key on every call.

use std::str::FromStr;

use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};

/// A channel with a key: what every generated client is made from.
pub type Grpc = InterceptedService<Channel, Key>;

/// What a connection may send ahead: with the default, the HTTP/2 library takes a few hundred small
/// answers that wait to be read for an attack.
const WINDOW_BYTES: u32 = 1024 * 1024;

/// A channel to that address that carries a key, or none; it connects with the first call.
///
/// # Panics
/// When the address or the key cannot be written.
pub fn channel(address: &str, key: Option<&str>) -> Grpc {
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .initial_connection_window_size(WINDOW_BYTES)
        .connect_lazy();
    let bearer = key.map(|key| MetadataValue::from_str(&format!("Bearer {key}")).unwrap());
    InterceptedService::new(channel, Key(bearer))
}

/// Puts the key on every call.
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
