//! Calls from the same process without HTTP: a message and its response, with the same admission,
//! limits and errors as over a socket.

#[cfg(test)]
mod tests;

use std::{panic::AssertUnwindSafe, sync::Arc};

use bellwether_proto::{cloud::Events, repair};
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use prost::Message;
use tonic::{Status, metadata::MetadataMap};

use super::{counted::measure_call, deadline, decoding, panics};
use crate::{
    metrics::Metrics,
    ops::client::Caller,
    rpc::{
        access::{CallGuard, intake_bytes_max},
        data_receiver::DataReceiver,
        methods::PUT_EVENTS,
    },
};

/// Intake for callers in the same process.
#[derive(Debug, Clone)]
pub struct Direct {
    guard: CallGuard,
    receiver: Arc<DataReceiver>,
    metrics: Metrics,
}

impl Direct {
    pub const METHOD: &str = PUT_EVENTS;

    pub(super) fn new(guard: CallGuard, receiver: Arc<DataReceiver>, metrics: Metrics) -> Self {
        Self {
            guard,
            receiver,
            metrics,
        }
    }

    /// # Cancel safety
    /// The events of a dropped call may still be accepted.
    pub fn call(
        &self,
        metadata: MetadataMap,
        message: Bytes,
    ) -> BoxFuture<'_, Result<(MetadataMap, Bytes), Status>> {
        Box::pin(async move {
            let limit = deadline::call_limit(metadata.as_ref());
            let receive = |caller, message| self.receive(caller, &metadata, message);
            let passing =
                self.guard
                    .admit_and_call(Self::METHOD, metadata.as_ref(), message, receive);
            let caught = AssertUnwindSafe(passing).catch_unwind();
            let answering = async {
                deadline::with_time_limit(limit, caught)
                    .await?
                    .unwrap_or_else(|_panic| Err(panics::panic_status()))
            };
            measure_call(&self.metrics, Self::METHOD, answering).await
        })
    }

    pub fn identify(&self, metadata: MetadataMap) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(async move {
            self.guard.identify(metadata.as_ref()).await?;
            Ok(())
        })
    }

    async fn receive(
        &self,
        caller: Caller,
        metadata: &MetadataMap,
        message: Bytes,
    ) -> Result<(MetadataMap, Bytes), Status> {
        let bytes_max = intake_bytes_max(metadata.as_ref());
        if message.len() > bytes_max {
            return Err(decoding::too_large_status(bytes_max));
        }
        let request = repair::decode_repaired::<Events>(&message);
        let request = request.map_err(|error| decoding::malformed_status(&error))?;
        let answer = self.receiver.receive(caller, metadata, request).await?;
        let (metadata, answer, _) = answer.into_parts();
        Ok((metadata, answer.encode_to_vec().into()))
    }
}
