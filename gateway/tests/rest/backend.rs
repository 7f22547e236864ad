//! A fake backend that records every call and responds as configured.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

use bellwether_proto::codec::BytesCodec;
use bytes::Bytes;
use prost::Message;
use tonic::{
    Request, Response, Status,
    body::Body,
    metadata::MetadataMap,
    server::{Grpc, UnaryService},
    service::Routes,
};

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) metadata: MetadataMap,
    pub(crate) message: Bytes,
}

impl Call {
    pub(crate) fn decode<M: Message + Default>(&self) -> M {
        M::decode(self.message.clone()).unwrap()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Answer(Bytes),
    Fail(Status),
    Hang,
    Panic,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Recorder {
    calls: Arc<Mutex<Vec<Call>>>,
    acts: Arc<Mutex<VecDeque<Act>>>,
    hanging: Arc<AtomicUsize>,
}

impl Recorder {
    /// Sets the response to the next call. Without one, calls return the empty message.
    pub(crate) fn next(&self, act: Act) {
        self.acts.lock().unwrap().push_back(act);
    }

    pub(crate) fn answer(&self, message: &impl Message) {
        self.next(Act::Answer(message.encode_to_vec().into()));
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Returns the number of hanging calls that were not cancelled.
    pub(crate) fn hanging(&self) -> usize {
        self.hanging.load(SeqCst)
    }

    pub(crate) fn routes(&self) -> Routes {
        let router = Routes::default().into_axum_router();
        router.fallback_service(self.clone()).into()
    }
}

/// Every method of every service.
impl<B> tower::Service<http::Request<B>> for Recorder
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let handler = OneCall {
            recorder: self.clone(),
            path,
        };
        let mut grpc = Grpc::new(BytesCodec).max_decoding_message_size(4 * 1024 * 1024);
        Box::pin(async move { Ok(grpc.unary(handler, request).await) })
    }
}

struct OneCall {
    recorder: Recorder,
    path: String,
}

impl UnaryService<Bytes> for OneCall {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        // The gateway asks about its caller first, and continues without an answer.
        if self.path == "/bellwether.v1.ClientService/GetCaller" {
            return Box::pin(async { Err(Status::unimplemented("not part of the test")) });
        }
        let (metadata, _, message) = request.into_parts();
        let call = Call {
            path: self.path.clone(),
            metadata,
            message,
        };
        self.recorder.calls.lock().unwrap().push(call);
        let act = self.recorder.acts.lock().unwrap().pop_front();
        let count = Arc::clone(&self.recorder.hanging);
        Box::pin(async move {
            match act {
                None => Ok(Response::new(Bytes::new())),
                Some(Act::Answer(message)) => Ok(Response::new(message)),
                Some(Act::Fail(status)) => Err(status),
                Some(Act::Hang) => {
                    let _hanging = Hanging::new(count);
                    std::future::pending().await
                }
                Some(Act::Panic) => panic!("the stand-in panics on request"),
            }
        })
    }
}

/// Counts a call as hanging until this is dropped.
struct Hanging(Arc<AtomicUsize>);

impl Hanging {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count)
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}
