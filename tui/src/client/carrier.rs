//! What calls are made over: the channel, with the key on every call.

use tonic::{
    metadata::{Ascii, MetadataValue},
    service::interceptor::InterceptedService,
    transport::Channel,
};

/// The channel with the key on every call.
pub(super) type Carrier = InterceptedService<Channel, KeyHolder>;

/// Puts the key on every call.
#[derive(Clone)]
pub(super) struct KeyHolder(Option<MetadataValue<Ascii>>);

impl KeyHolder {
    pub(super) fn new(key: Option<MetadataValue<Ascii>>) -> Self {
        Self(key)
    }
}

impl tonic::service::Interceptor for KeyHolder {
    fn call(
        &mut self,
        mut request: tonic::Request<()>,
    ) -> Result<tonic::Request<()>, tonic::Status> {
        if let Some(key) = &self.0 {
            request.metadata_mut().insert("authorization", key.clone());
        }
        Ok(request)
    }
}
