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
    server::{Grpc, NamedService, UnaryService},
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
        let mut routes = Routes::builder();
        routes
            .add_service(Recorded::<Triggers>::new(self))
            .add_service(Recorded::<Destinations>::new(self))
            .add_service(Recorded::<Config>::new(self))
            .add_service(Recorded::<Rules>::new(self))
            .add_service(Recorded::<Deliveries>::new(self))
            .add_service(Recorded::<EventQuery>::new(self))
            .add_service(Recorded::<EventManagement>::new(self))
            .add_service(Recorded::<Overview>::new(self))
            .add_service(Recorded::<SignIns>::new(self))
            .add_service(Recorded::<Settings>::new(self))
            .add_service(Recorded::<Silences>::new(self))
            .add_service(Recorded::<Calendars>::new(self))
            .add_service(Recorded::<Groups>::new(self))
            .add_service(Recorded::<Drills>::new(self))
            .add_service(Recorded::<Heartbeats>::new(self))
            .add_service(Recorded::<Contacts>::new(self))
            .add_service(Recorded::<Schedules>::new(self))
            .add_service(Recorded::<Policies>::new(self))
            .add_service(Recorded::<Responses>::new(self))
            .add_service(Recorded::<Inhibitions>::new(self))
            .add_service(Recorded::<IntakeMappings>::new(self))
            .add_service(Recorded::<Views>::new(self))
            .add_service(Recorded::<Enrichments>::new(self))
            .add_service(Recorded::<Audit>::new(self))
            .add_service(Recorded::<Pending>::new(self))
            .add_service(Recorded::<Insight>::new(self))
            .add_service(Recorded::<DataReceiver>::new(self))
            .add_service(Recorded::<Health>::new(self));
        routes.routes()
    }
}

/// A gRPC service of the fake backend. `N` only carries the name of the service.
struct Recorded<N> {
    recorder: Recorder,
    name: std::marker::PhantomData<fn() -> N>,
}

impl<N> Recorded<N> {
    fn new(recorder: &Recorder) -> Self {
        Self {
            recorder: recorder.clone(),
            name: std::marker::PhantomData,
        }
    }
}

impl<N> Clone for Recorded<N> {
    fn clone(&self) -> Self {
        Self::new(&self.recorder)
    }
}

trait Named {
    const NAME: &'static str;
}

macro_rules! services {
    ($($marker:ident = $name:literal;)*) => {$(
        struct $marker;
        impl Named for $marker {
            const NAME: &'static str = $name;
        }
    )*};
}

services! {
    Triggers = "bellwether.v1.TriggerService";
    Destinations = "bellwether.v1.DestinationService";
    Config = "bellwether.v1.ConfigService";
    Rules = "bellwether.v1.RuleService";
    Deliveries = "bellwether.v1.DeliveryService";
    EventQuery = "bellwether.v1.EventQueryService";
    EventManagement = "bellwether.v1.EventManagementService";
    Overview = "bellwether.v1.OverviewService";
    SignIns = "bellwether.v1.SignInService";
    Settings = "bellwether.v1.SettingsService";
    Silences = "bellwether.v1.SilenceService";
    Calendars = "bellwether.v1.CalendarService";
    Groups = "bellwether.v1.GroupService";
    Drills = "bellwether.v1.DrillService";
    Heartbeats = "bellwether.v1.HeartbeatService";
    Contacts = "bellwether.v1.ContactService";
    Schedules = "bellwether.v1.ScheduleService";
    Policies = "bellwether.v1.EscalationPolicyService";
    Responses = "bellwether.v1.ResponseService";
    Inhibitions = "bellwether.v1.InhibitionService";
    IntakeMappings = "bellwether.v1.IntakeMappingService";
    Views = "bellwether.v1.ViewService";
    Enrichments = "bellwether.v1.EnrichmentTableService";
    Audit = "bellwether.v1.AuditService";
    Pending = "bellwether.v1.PendingService";
    Insight = "bellwether.v1.InsightService";
    DataReceiver = "zenoss.cloud.DataReceiverService";
    Health = "grpc.health.v1.Health";
}

impl<N: Named> NamedService for Recorded<N> {
    const NAME: &'static str = N::NAME;
}

impl<N> tower::Service<http::Request<Body>> for Recorded<N> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let handler = OneCall {
            recorder: self.recorder.clone(),
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
