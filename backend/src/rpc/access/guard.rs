//! Admits calls, or rejects them.

use std::{
    error::Error as StdError,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bellwether_process::listen::{Activity, Proxies, REQUEST_ID};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use tokio::time::Instant;
use tonic::{Code, Status, body::Body, metadata::MetadataMap, service::Routes};
use tower::{Layer, Service};

use super::{
    CallAddress, Refusals, SignedInUsers,
    body::{BodyDirection, CallEnds, EndingBody, SmallBody},
    capacity::{Capacities, CapacityHolder, CapacityShare},
    deadline::{deadline_exceeded, requested_timeout},
    inflate::{self, InflatedBody},
    line::AccessLogLine,
    origin::Origin,
    rate_limit,
    refusals::RefusalReason,
    scanning::run_call,
};
use crate::{
    domain::Dialect,
    error::Error,
    limits::{DIALECT_BYTES_MAX, REQUEST_BYTES_MAX, UNAUTHENTICATED_REQUEST_BYTES_MAX},
    oidc::SignIns,
    ops::{
        audit::AuditLog,
        client::{Caller, Keys},
    },
    rpc::{
        audit as audit_line,
        methods::{EXPORT_LOGS, Method, PUT_EVENTS, Permission, RECEIVE_WEBHOOK, find_method},
    },
    scan::{ScanService, Scanner},
    store::audit::{self, Actor},
};

/// Header with the key in the public interface; the gRPC metadata has the same name.
const API_KEY_HEADER: &str = "zenoss-api-key";

/// Header with the dialect from which a request was translated.
pub const DIALECT_HEADER: &str = "bellwether-dialect";

/// Methods with which a caller can revoke its own key. The response is sent even though the key was
/// revoked.
const ENDING: [&str; 2] = [
    "/bellwether.v1.ClientService/RevokeClient",
    "/bellwether.v1.ClientService/RotateClientKey",
];

/// The admission of all calls: authentication, authorization and capacity.
#[derive(Debug, Clone)]
pub struct CallGuard {
    keys: Arc<Keys>,
    refusals: Arc<Refusals>,
    audit: Arc<AuditLog>,
    capacities: Capacities,
    scans: ScanService,
    proxies: Arc<Proxies>,
    users: Option<Arc<SignedInUsers>>,
}

#[derive(Debug)]
pub struct AdmittedCall {
    method: &'static Method,
    caller: Option<Caller>,
    share: Option<CapacityShare>,
    /// The threads and the client of a call that may scan many records.
    scan: Option<(ScanService, Scanner)>,
}

#[derive(Debug)]
pub struct RejectedCall {
    status: Status,
    caller: Option<Caller>,
}

impl CallGuard {
    /// Creates a guard that accepts these keys, and that counts and audits rejected calls. Calls
    /// that scan many records run on `scans`.
    pub fn new(
        keys: Arc<Keys>,
        refusals: Arc<Refusals>,
        audit: Arc<AuditLog>,
        scans: ScanService,
    ) -> Self {
        Self {
            keys,
            refusals,
            audit,
            capacities: Capacities::new(),
            scans,
            proxies: Arc::default(),
            users: None,
        }
    }

    #[must_use]
    pub fn with_trusted_proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = Arc::new(proxies);
        self
    }

    #[must_use]
    pub fn with_users(self, users: Option<Arc<SignedInUsers>>) -> Self {
        Self { users, ..self }
    }

    pub fn watcher_count(&self) -> usize {
        self.capacities.watch_count()
    }

    /// Puts the guard in front of all services, and of the response to unknown methods.
    pub fn protect_routes(&self, routes: Routes) -> Routes {
        routes.into_axum_router().layer(self.clone()).into()
    }

    /// Admits a call whose key has the required role, within its client's rate and the capacity of
    /// its class, checked in this order.
    async fn admit_call(
        &self,
        path: &str,
        headers: &HeaderMap,
        origin: &Origin,
    ) -> Result<AdmittedCall, RejectedCall> {
        let method = find_method(path);
        let need = method.map(|method| method.need);
        let caller = if need == Some(Permission::Nothing) {
            None
        } else {
            match self.identify_caller(headers, origin).await {
                Ok(caller) => Some(caller),
                Err(status) => {
                    return Err(RejectedCall {
                        status,
                        caller: None,
                    });
                }
            }
        };
        let checked = match &caller {
            Some(caller) => self.check(need, caller, dialect(path, headers)),
            None => Ok(()),
        };
        if let (Err(error @ Error::PermissionDenied(_)), Some(caller), Some(method)) =
            (&checked, &caller, method)
        {
            let by = self.actor(caller, method, origin);
            self.audit.record_refused(by, &error.to_string());
        }
        let checked = checked.map_err(Status::from);
        let found = checked.and_then(|()| {
            let method = method.ok_or_else(|| Status::from(unknown_method()))?;
            let holder = CapacityHolder::for_call(caller.as_ref(), origin.connected);
            let scan = method.scans.then(|| {
                let scanner = Scanner {
                    client: holder.holder_key(),
                    reads: method.audit.is_none(),
                };
                (self.scans.clone(), scanner)
            });
            Ok((
                method,
                self.capacities.reserve_share(method.class, holder)?,
                scan,
            ))
        });
        match found {
            Ok((method, share, scan)) => Ok(AdmittedCall {
                method,
                caller,
                share,
                scan,
            }),
            Err(status) => Err(RejectedCall { status, caller }),
        }
    }

    /// Admits a call that arrives as a message without HTTP, and returns the result of `call`.
    pub async fn admit_and_call<F>(
        &self,
        path: &str,
        headers: &HeaderMap,
        message: Bytes,
        call: impl FnOnce(Caller, Bytes) -> F,
    ) -> Result<(MetadataMap, Bytes), Status>
    where
        F: Future<Output = Result<(MetadataMap, Bytes), Status>>,
    {
        let origin = Origin::determine(headers, None, &self.proxies);
        let mut line = AccessLogLine::new(find_method(path), headers, origin.address);
        let admitted = match self.admit_call(path, headers, &origin).await {
            Ok(admitted) => admitted,
            Err(RejectedCall { mut status, caller }) => {
                self.write_rate_headers(caller.as_ref(), status.metadata_mut().as_mut());
                line.set_client(caller.as_ref().map(|it| &it.name));
                line.write(status.code());
                return Err(status);
            }
        };
        line.set_client(admitted.caller.as_ref().map(|it| &it.name));
        let Some(caller) = admitted.caller else {
            // A method that requires no key cannot be called this way, because the call would have
            // no caller.
            return Err(unknown_method().into());
        };
        let reserved = match &admitted.share {
            Some(share) => share.take_memory(&message),
            None => Ok(()),
        };
        let mut answer = match reserved {
            Ok(()) => call(caller.clone(), message).await,
            Err(status) => Err(status),
        };
        let metadata = match &mut answer {
            Ok((metadata, _)) => metadata,
            Err(status) => status.metadata_mut(),
        };
        self.write_rate_headers(Some(&caller), metadata.as_mut());
        line.write(answer.as_ref().err().map_or(Code::Ok, Status::code));
        answer
    }

    fn write_rate_headers(&self, caller: Option<&Caller>, headers: &mut HeaderMap) {
        if let Some(caller) = caller {
            rate_limit::write(&caller.meter.limits(self.keys.now_ms()), headers);
        }
    }

    /// Identifies the caller of a gateway in this process.
    ///
    /// # Errors
    /// Returns the rejection of a missing or unknown key or certificate. It is delayed if there
    /// were many rejections from the address.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller, Status> {
        let origin = Origin::determine(headers, None, &self.proxies);
        self.identify_caller(headers, &origin).await
    }

    async fn identify_caller(
        &self,
        headers: &HeaderMap,
        origin: &Origin,
    ) -> Result<Caller, Status> {
        let address = origin.address;
        let found = match bearer_key(headers) {
            Ok(key) => match &self.users {
                Some(users) if SignIns::is_token(key) => users.find(key).await.map(Some),
                _ => self.keys.find(key, address).await,
            },
            Err(none) => {
                let shown = origin.certificate(headers);
                let found = self.keys.find_certificate(&shown, address).await;
                found.and_then(|found| found.map_or(Err(none), |caller| Ok(Some(caller))))
            }
        };
        let found = found.and_then(|found| {
            found.ok_or_else(|| {
                Error::Unauthenticated("the key is unknown; it may have been revoked".into())
            })
        });
        let error = match found {
            Ok(caller) => return Ok(caller),
            Err(error) => error,
        };
        if matches!(error, Error::Unauthenticated(_)) {
            self.audit_unauthenticated(address, "", &error.to_string())
                .await;
        }
        Err(error.into())
    }

    /// Audits a call with a missing, unknown or insufficient credential. Delays the call if there
    /// were many such calls from its address.
    async fn audit_unauthenticated(
        &self,
        address: Option<IpAddr>,
        method: &'static str,
        why: &str,
    ) {
        let by = Actor {
            client: String::new(),
            address,
            agent: String::new(),
            method,
            time_ms: self.keys.now_ms(),
            scope: Arc::default(),
        };
        self.audit.record_refused(by, why);
        let wait = self.refusals.refuse_address(address, self.keys.now_ms());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn audit_denied_call(&self, by: Actor, answer: &HeaderMap) {
        if response_code(answer) == Code::PermissionDenied
            && let Some(status) = Status::from_header_map(answer)
        {
            self.audit.record_refused(by, status.message());
        }
    }

    fn actor(&self, caller: &Caller, method: &'static Method, origin: &Origin) -> Actor {
        Actor {
            client: caller.name.to_string(),
            address: origin.address,
            agent: origin.agent.clone(),
            method: &method.path,
            time_ms: self.keys.now_ms(),
            scope: Arc::clone(&caller.scope),
        }
    }

    /// Returns the client on whose behalf a call makes changes. A call that reads the whole store
    /// is written to the audit log first.
    ///
    /// # Errors
    /// Returns an error if the audit entry cannot be written.
    async fn audited_actor(
        &self,
        admitted: &AdmittedCall,
        origin: &Origin,
    ) -> Result<Option<Actor>, Status> {
        let (Some(audit), Some(caller)) = (&admitted.method.audit, &admitted.caller) else {
            return Ok(None);
        };
        let by = self.actor(caller, admitted.method, origin);
        if audit.audits_reads() {
            self.audit.record_read(&by, &audit.what).await?;
        }
        Ok(Some(by))
    }

    /// Checks whether the caller may make the call now. A granted dialect may be sent with any
    /// role.
    fn check(
        &self,
        need: Option<Permission>,
        caller: &Caller,
        dialect: Option<Dialect>,
    ) -> Result<(), Error> {
        let need = need.ok_or_else(unknown_method)?;
        let (now_ms, client) = (self.keys.now_ms(), &caller.name);
        let is_granted = || dialect.is_some_and(|it| caller.dialects.contains(&it));
        if need.allows_role(caller.role) || need == Permission::Ingest && is_granted() {
            let counted = caller.meter.take_call(client, now_ms);
            return counted.inspect_err(|_beyond| {
                self.refusals
                    .refuse_client(RefusalReason::Rate, client.as_str(), now_ms);
            });
        }
        self.refusals
            .refuse_client(RefusalReason::Role, client.as_str(), now_ms);
        Err(Error::PermissionDenied(format!(
            "requires the role `{}`; the key of `{}` has the role `{}`",
            need.as_str(),
            caller.name,
            caller.role.as_str()
        )))
    }
}

/// Returns the dialect of a call that sends events; `None` for the native interface.
fn dialect(path: &str, headers: &HeaderMap) -> Option<Dialect> {
    match path {
        EXPORT_LOGS => Some(Dialect::Otlp),
        PUT_EVENTS | RECEIVE_WEBHOOK => {
            Dialect::from_name(headers.get(DIALECT_HEADER)?.to_str().ok()?)
        }
        _ => None,
    }
}

pub fn intake_bytes_max(headers: &HeaderMap) -> usize {
    if headers.contains_key(DIALECT_HEADER) {
        DIALECT_BYTES_MAX
    } else {
        REQUEST_BYTES_MAX
    }
}

fn bytes_max(method: &Method, headers: &HeaderMap) -> usize {
    match &*method.path {
        EXPORT_LOGS => DIALECT_BYTES_MAX,
        PUT_EVENTS => intake_bytes_max(headers),
        _ => REQUEST_BYTES_MAX,
    }
}

fn unknown_method() -> Error {
    Error::Unimplemented("unknown method".into())
}

/// Returns the status in the headers of a response. A stream reports later errors in its trailers.
pub fn response_code(headers: &HeaderMap) -> Code {
    headers
        .get(Status::GRPC_STATUS)
        .map_or(Code::Ok, |code| Code::from_bytes(code.as_bytes()))
}

fn bearer_key(headers: &HeaderMap) -> Result<&str, Error> {
    let bearer = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.to_str().ok()?.trim().split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
    });
    let plain = || headers.get(API_KEY_HEADER)?.to_str().ok().map(str::trim);
    bearer.or_else(plain).ok_or_else(|| {
        Error::Unauthenticated(
            "a key is missing: send `authorization: Bearer KEY` or `zenoss-api-key: KEY`".into(),
        )
    })
}

impl<S> Layer<S> for CallGuard {
    type Service = CallGuardService<S>;

    fn layer(&self, inner: S) -> CallGuardService<S> {
        CallGuardService {
            guard: self.clone(),
            inner,
        }
    }
}

#[derive(Debug, Clone)]
pub struct CallGuardService<S> {
    guard: CallGuard,
    inner: S,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, In, Out> Service<Request<In>> for CallGuardService<S>
where
    S: Service<Request<Body>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    In: hyper::body::Body<Data = Bytes> + Send + 'static,
    In::Error: Into<Box<dyn StdError + Send + Sync>>,
    Out: hyper::body::Body<Data = Bytes> + Send + 'static,
    Out::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        // Call the original, because the clone was not polled for readiness.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let guard = self.guard.clone();
        Box::pin(async move {
            let mut request = request.map(Body::new);
            let (path, headers) = (request.uri().path(), request.headers());
            let origin = Origin::determine(headers, request.extensions().get(), &guard.proxies);
            let mut line = AccessLogLine::new(find_method(path), headers, origin.address);
            let (caller, mut response) = match guard.admit_call(path, headers, &origin).await {
                Ok(admitted) => {
                    let (caller, method) = (admitted.caller.clone(), admitted.method);
                    admitted.report_authentication(request.extensions().get());
                    request.extensions_mut().insert(CallAddress(origin.address));
                    line.set_client(caller.as_ref().map(|it| &it.name));
                    let answer = match guard.audited_actor(&admitted, &origin).await {
                        Ok(None) => admitted.call(&mut inner, request).await?,
                        Ok(Some(by)) => {
                            let call =
                                audit::run_as(by.clone(), admitted.call(&mut inner, request));
                            let answer = call.await?;
                            guard.audit_denied_call(by, answer.headers());
                            answer
                        }
                        Err(status) => status.into_http(),
                    };
                    // An invalid signed link or URL counts as an invalid key.
                    if caller.is_none()
                        && response_code(answer.headers()) == Code::Unauthenticated
                        && let Some(status) = Status::from_header_map(answer.headers())
                    {
                        let (address, why) = (origin.address, status.message());
                        guard
                            .audit_unauthenticated(address, &method.path, why)
                            .await;
                    }
                    (caller, answer)
                }
                Err(RejectedCall { status, caller }) => {
                    line.set_client(caller.as_ref().map(|it| &it.name));
                    (caller, status.into_http())
                }
            };
            guard.write_rate_headers(caller.as_ref(), response.headers_mut());
            line.write(response_code(response.headers()));
            Ok(response)
        })
    }
}

impl AdmittedCall {
    fn report_authentication(&self, connection: Option<&Arc<Activity>>) {
        match (connection, &self.caller) {
            (Some(connection), Some(caller)) => connection.mark_authenticated(caller.name.as_str()),
            (Some(connection), None) if self.method.class.is_streaming() => {
                connection.exempt_from_idle_timeout();
            }
            _ => {}
        }
    }

    /// Makes the call. Ends the call if its key is revoked; ends a stream also at its deadline. The
    /// memory for a unary call's message is reserved.
    async fn call<S, Out>(
        self,
        inner: &mut S,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Out>>,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        Out: hyper::body::Body<Data = Bytes> + Send + 'static,
        Out::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let Self {
            method,
            caller,
            share,
            scan,
        } = self;
        let requested =
            requested_timeout(request.headers()).filter(|_| method.class.is_streaming());
        let ends = CallEnds {
            revoked: caller.as_ref().map(|caller| caller.revoked.clone()),
            deadline: requested.and_then(|requested| Instant::now().checked_add(requested)),
        };
        let until_ended = |body, way| match &ends {
            CallEnds {
                revoked: None,
                deadline: None,
            } => body,
            ends => Body::new(EndingBody::new(body, way, ends.clone())),
        };
        let request_id = request.headers().get(REQUEST_ID).cloned();
        let is_packed = inflate::take_gzip_header(request.headers_mut());
        let bytes_max = bytes_max(method, request.headers());
        let may_end_its_key = ENDING.contains(&request.uri().path());
        if let Some(caller) = &caller {
            request.extensions_mut().insert(caller.clone());
        }
        let request = request.map(|body| {
            let body = until_ended(body, BodyDirection::In);
            let share = share.as_ref().filter(|_| !method.class.is_streaming());
            limit_body(body, caller.is_none(), share, (bytes_max, is_packed))
        });
        let answering = run_call(inner, request, scan, method.class.is_streaming());
        let mut response = match ends.deadline {
            None => answering.await?,
            Some(at) => match tokio::time::timeout_at(at, answering).await {
                Ok(response) => response?,
                Err(_elapsed) => return Ok(deadline_exceeded().into_http()),
            },
        };
        inflate::advertise_gzip(response.headers_mut());
        if let (Some(audit), Some(caller)) = (&method.audit, &caller)
            && !response.headers().contains_key(Status::GRPC_STATUS)
        {
            audit_line::log_call(
                audit,
                &caller.name,
                request_id.as_ref(),
                response.extensions(),
            );
        }
        let response = if may_end_its_key {
            response
        } else {
            response.map(|body| until_ended(body, BodyDirection::Out))
        };
        Ok(match share {
            Some(share) => response.map(|body| share.hold_until_end(body)),
            None => response,
        })
    }
}

fn limit_body(
    body: Body,
    needs_no_key: bool,
    share: Option<&CapacityShare>,
    (bytes_max, is_packed): (usize, bool),
) -> Body {
    let unpacked = |body, bytes_max| {
        if is_packed {
            Body::new(InflatedBody::new(body, bytes_max))
        } else {
            body
        }
    };
    if needs_no_key {
        let body = Body::new(SmallBody::new(body, UNAUTHENTICATED_REQUEST_BYTES_MAX));
        return unpacked(body, UNAUTHENTICATED_REQUEST_BYTES_MAX);
    }
    match share {
        Some(share) => share.measure_body(body, bytes_max, is_packed),
        None => unpacked(body, bytes_max),
    }
}
