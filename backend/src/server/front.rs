//! Serves unary intake calls without the router, and passes other calls to it.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bellwether_proto::server::Server;
use http::{Request, Response};
use tonic::{body::Body, service::Routes};
use tower::{Layer, Service, util::MapResponse};
use tower_http::catch_panic::CatchPanic;

use super::{
    counted::{CountedLayer, CountedService},
    deadline::{DeadlineLayer, DeadlineService},
    decoding,
    direct::Direct,
    panics,
};
use crate::rpc::access::{CallGuard, CallGuardService};

type Rewrite = fn(Response<Body>) -> Response<Body>;
type GuardedService<S> = CountedService<
    CatchPanic<MapResponse<DeadlineService<CallGuardService<S>>, Rewrite>, panics::PanicHandler>,
>;

#[derive(Clone)]
pub(super) struct Front {
    intake: GuardedService<Server>,
    others: Routes,
}

impl Front {
    /// Creates the front. `intake` must have the same layers as the services in `others`.
    pub(super) fn new(
        guard: &CallGuard,
        counted: &CountedLayer,
        intake: Server,
        others: Routes,
    ) -> Self {
        let guarded = DeadlineLayer.layer(guard.layer(intake));
        let rewritten = MapResponse::new(guarded, decoding::rewrite_response as Rewrite);
        Self {
            intake: counted.layer(panics::catch_panic_layer().layer(rewritten)),
            others,
        }
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Front").finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // `intake` is always ready.
        Service::<Request<Body>>::poll_ready(&mut self.others, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.uri().path() == Direct::METHOD {
            let answer = self.intake.call(request);
            return Box::pin(async move { Ok(answer.await?.map(Body::new)) });
        }
        Box::pin(Service::call(&mut self.others, request))
    }
}
