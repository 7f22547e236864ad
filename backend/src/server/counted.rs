//! Counts every call by its status, whether it comes from the service or a layer.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use http::{Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::{
    metrics::Metrics,
    rpc::{access::response_code, code::code_label, methods::find_method},
};

const UNKNOWN: &str = "unknown";

#[derive(Debug, Clone)]
pub(super) struct CountedLayer(pub(super) Metrics);

impl<S> Layer<S> for CountedLayer {
    type Service = CountedService<S>;

    fn layer(&self, inner: S) -> CountedService<S> {
        CountedService {
            inner,
            metrics: self.0.clone(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct CountedService<S> {
    inner: S,
    metrics: Metrics,
}

impl<S, Incoming, Outgoing> Service<Request<Incoming>> for CountedService<S>
where
    S: Service<Request<Incoming>, Response = Response<Outgoing>>,
    S::Future: Send + 'static,
{
    type Response = Response<Outgoing>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let (begin, metrics) = (Instant::now(), self.metrics.clone());
        let name = method_name(request.uri().path());
        let answering = self.inner.call(request);
        Box::pin(async move {
            let response = answering.await?;
            metrics.record_call(
                name,
                code_label(response_code(response.headers())),
                begin.elapsed(),
            );
            Ok(response)
        })
    }
}

pub(super) async fn measure_call<T>(
    metrics: &Metrics,
    path: &str,
    call: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let begin = Instant::now();
    let answer = call.await;
    let code = answer.as_ref().err().map_or(Code::Ok, Status::code);
    metrics.record_call(method_name(path), code_label(code), begin.elapsed());
    answer
}

fn method_name(path: &str) -> &'static str {
    find_method(path).map_or(UNKNOWN, |method| method.path.trim_start_matches('/'))
}
