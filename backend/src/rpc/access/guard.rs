//! Lets a call in, or answers in its place.

use std::{
    error::Error as StdError,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use tonic::{Status, body::Body, metadata::MetadataMap, service::Routes};
use tower::{Layer, Service};

use super::{
    Peer, Refusals,
    body::{UntilRevoked, Way},
    capacity::{Capacities, Share},
    rate_limit,
    refusals::Why,
};
use crate::{
    error::Error,
    ops::client::{Caller, Keys},
    rpc::{
        audit,
        methods::{Method, Need, method},
    },
};

/// The header of the published interface; gRPC metadata of the same name.
const API_KEY_HEADER: &str = "zenoss-api-key";

/// Where a gateway in this process says whom it calls for; what comes from a socket says nothing by
/// it that is believed.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The one method by which a caller may end its own key; its answer still arrives.
const REVOKE_CLIENT: &str = "/bellwether.v1.ClientService/RevokeClient";

/// The one admission of calls, whichever way they come in: knows who calls, whether they may, and
/// whether the service has the capacity for it.
#[derive(Debug, Clone)]
pub struct Guard {
    keys: Arc<Keys>,
    refusals: Arc<Refusals>,
    capacities: Capacities,
}

/// A call that may be made.
#[derive(Debug)]
pub struct Admitted {
    method: &'static Method,
    caller: Option<Caller>,
    share: Option<Share>,
}

/// A call that may not be made.
#[derive(Debug)]
pub struct Denied {
    status: Status,
    caller: Option<Caller>,
}

impl Guard {
    /// A guard that knows these keys, and counts whom it refuses.
    pub fn new(keys: Arc<Keys>, refusals: Arc<Refusals>) -> Self {
        Self {
            keys,
            refusals,
            capacities: Capacities::new(),
        }
    }

    /// Puts the guard before all services, and before the answer to unknown methods.
    pub fn protect(&self, routes: Routes) -> Routes {
        routes.into_axum_router().layer(self.clone()).into()
    }

    /// Lets a call in whose key has the role that its method needs, within its client's rate and
    /// the capacity of its class, in this order. `peer` is the address it came from.
    ///
    /// # Errors
    /// What the caller is told instead.
    pub async fn admit(
        &self,
        path: &str,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Admitted, Denied> {
        let method = method(path);
        let need = method.map(|method| method.need);
        let caller = match self.identify(need, headers).await {
            Ok(caller) => caller,
            Err(error) => {
                if matches!(error, Error::Unauthenticated(_)) {
                    let address = peer.or_else(|| forwarded(headers));
                    self.refusals.address(address, self.keys.now_ms());
                }
                let status = error.into();
                return Err(Denied {
                    status,
                    caller: None,
                });
            }
        };
        let checked = match &caller {
            Some(caller) => self.check(need, caller).map_err(Status::from),
            None => Ok(()),
        };
        let found = checked.and_then(|()| {
            let method = method.ok_or_else(|| Status::from(unknown_method()))?;
            Ok((method, self.capacities.share(method.class)?))
        });
        match found {
            Ok((method, share)) => Ok(Admitted {
                method,
                caller,
                share,
            }),
            Err(status) => Err(Denied { status, caller }),
        }
    }

    /// Lets a call in that comes as a message, past HTTP; answers what `call` does for its caller.
    ///
    /// # Errors
    /// What the caller is told instead, with the metadata of that answer.
    pub async fn pass<F>(
        &self,
        path: &str,
        headers: &HeaderMap,
        message: Bytes,
        call: impl FnOnce(Caller, Bytes) -> F,
    ) -> Result<(MetadataMap, Bytes), Status>
    where
        F: Future<Output = Result<(MetadataMap, Bytes), Status>>,
    {
        let admitted = match self.admit(path, headers, None).await {
            Ok(admitted) => admitted,
            Err(Denied { mut status, caller }) => {
                self.write_rates(caller.as_ref(), status.metadata_mut().as_mut());
                return Err(status);
            }
        };
        let Some(caller) = admitted.caller else {
            // A method for everybody knows no caller on whose behalf it could be called so.
            return Err(unknown_method().into());
        };
        let taken = match &admitted.share {
            Some(share) => share.take(&message),
            None => Ok(()),
        };
        let mut answer = match taken {
            Ok(()) => call(caller.clone(), message).await,
            Err(status) => Err(status),
        };
        let metadata = match &mut answer {
            Ok((metadata, _)) => metadata,
            Err(status) => status.metadata_mut(),
        };
        self.write_rates(Some(&caller), metadata.as_mut());
        answer
    }

    /// Writes the `RateLimit` fields of an answer to that caller.
    fn write_rates(&self, caller: Option<&Caller>, headers: &mut HeaderMap) {
        if let Some(caller) = caller {
            rate_limit::write(&caller.meter.limits(self.keys.now_ms()), headers);
        }
    }

    /// Who calls; none for methods that need no key.
    async fn identify(
        &self,
        need: Option<Need>,
        headers: &HeaderMap,
    ) -> Result<Option<Caller>, Error> {
        if need == Some(Need::Nothing) {
            return Ok(None);
        }
        let caller = self.keys.find(key_of(headers)?).await?.ok_or_else(|| {
            Error::Unauthenticated("the key is not known; it may have been revoked".into())
        })?;
        Ok(Some(caller))
    }

    /// Whether the caller may call that now.
    fn check(&self, need: Option<Need>, caller: &Caller) -> Result<(), Error> {
        let need = need.ok_or_else(unknown_method)?;
        let (now_ms, client) = (self.keys.now_ms(), &caller.name);
        if need.allows(caller.role) {
            let taken = caller.meter.take_call(client, now_ms);
            return taken.inspect_err(|_beyond| {
                self.refusals.client(Why::Rate, client.as_str(), now_ms);
            });
        }
        self.refusals.client(Why::Role, client.as_str(), now_ms);
        Err(Error::PermissionDenied(format!(
            "this needs the role `{}`; the key of `{}` has the role `{}`",
            need.word(),
            caller.name,
            caller.role.word()
        )))
    }
}

fn unknown_method() -> Error {
    Error::Unimplemented("this service does not have the method that was called".into())
}

/// The address that a gateway in this process says it calls for.
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(FORWARDED_FOR)?.to_str().ok()?.parse().ok()
}

/// The key that a call carries.
fn key_of(headers: &HeaderMap) -> Result<&str, Error> {
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

impl<S> Layer<S> for Guard {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded {
            guard: self.clone(),
            inner,
        }
    }
}

/// A service behind a [`Guard`].
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    guard: Guard,
    inner: S,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<S, In, Out> Service<Request<In>> for Guarded<S>
where
    S: Service<Request<Body>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send,
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
        // The clone was not asked whether it is ready; the original was.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let guard = self.guard.clone();
        Box::pin(async move {
            let request = request.map(Body::new);
            let peer = request.extensions().get::<Peer>().map(|Peer(peer)| *peer);
            let path = request.uri().path();
            let (caller, mut response) = match guard.admit(path, request.headers(), peer).await {
                Ok(admitted) => {
                    let caller = admitted.caller.clone();
                    (caller, admitted.call(&mut inner, request).await?)
                }
                Err(Denied { status, caller }) => (caller, status.into_http()),
            };
            guard.write_rates(caller.as_ref(), response.headers_mut());
            Ok(response)
        })
    }
}

impl Admitted {
    /// Makes the call, which ends when its key is revoked. What a unary call brings is measured.
    async fn call<S, Out>(
        self,
        inner: &mut S,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Request<Body>, Response = Response<Out>>,
        Out: hyper::body::Body<Data = Bytes> + Send + 'static,
        Out::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let Self {
            method,
            caller,
            share,
        } = self;
        let until_revoked = |body, way| match &caller {
            Some(caller) => Body::new(UntilRevoked::new(body, way, caller.revoked.clone())),
            None => body,
        };
        let is_revocation = request.uri().path() == REVOKE_CLIENT;
        if let Some(caller) = &caller {
            request.extensions_mut().insert(caller.clone());
        }
        let request = request.map(|body| {
            let body = until_revoked(body, Way::In);
            match &share {
                Some(share) if !method.class.is_streaming() => share.measure(body),
                _ => body,
            }
        });
        let response = inner.call(request).await?.map(Body::new);
        if let (Some(audit), Some(caller)) = (method.audit, &caller)
            && !response.headers().contains_key(Status::GRPC_STATUS)
        {
            audit::note(audit, &caller.name, response.extensions());
        }
        let response = if is_revocation {
            response
        } else {
            response.map(|body| until_revoked(body, Way::Out))
        };
        Ok(match share {
            Some(share) => response.map(|body| share.hold(body)),
            None => response,
        })
    }
}
