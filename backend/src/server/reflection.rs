//! Server reflection, built for its first caller: reading the descriptors takes a fifth of the time
//! that the service needs to start.

use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bellwether_proto::FILE_DESCRIPTOR_SET;
use tonic::{
    body::Body,
    codegen::{Service, http::Request},
    server::NamedService,
    service::Routes,
};
use tonic_reflection::server::Builder;

const VALID: &str = "the descriptors are part of the program";

/// Adds both versions of the interface; some clients support only the older one.
pub(super) fn add_services(routes: Routes) -> Routes {
    routes
        .add_service(Lazy::new(|| builder().build_v1().expect(VALID)))
        .add_service(Lazy::new(|| builder().build_v1alpha().expect(VALID)))
}

fn builder() -> Builder<'static> {
    Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// A service that is always ready, as those of tonic are.
struct Lazy<S> {
    service: Arc<OnceLock<S>>,
    build: fn() -> S,
}

impl<S> Lazy<S> {
    fn new(build: fn() -> S) -> Self {
        Self {
            service: Arc::default(),
            build,
        }
    }
}

impl<S> Clone for Lazy<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            build: self.build,
        }
    }
}

impl<S: NamedService> NamedService for Lazy<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<Request<Body>> + Clone> Service<Request<Body>> for Lazy<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        self.service.get_or_init(self.build).clone().call(request)
    }
}
