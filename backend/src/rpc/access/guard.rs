//! The layer that lets a call through, or answers in its place.

use std::{
    error::Error as StdError,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Request, Response, header::AUTHORIZATION};
use tonic::{Status, body::Body, service::Routes};
use tower::{Layer, Service};

use super::{
    Peer, Refusals,
    body::{UntilRevoked, Way},
    rate_limit,
    refusals::Why,
};
use crate::{
    error::Error,
    ops::client::{Caller, Keys},
    rpc::{
        audit,
        methods::{Need, method},
    },
};

/// The header of the published interface; gRPC metadata of the same name.
const API_KEY_HEADER: &str = "zenoss-api-key";

/// Where a gateway in this process says whom it calls for; what comes from a socket says nothing by
/// it that is believed.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The one method by which a caller may end its own key; its answer still arrives.
const REVOKE_CLIENT: &str = "/bellwether.v1.ClientService/RevokeClient";

/// Lets only those calls through whose key has the role that the method needs, puts the
/// [`Caller`] into their extensions, and ends them when the key is revoked.
#[derive(Debug, Clone)]
pub struct Guard {
    keys: Arc<Keys>,
    refusals: Arc<Refusals>,
}

impl Guard {
    /// A guard that knows these keys, and counts whom it refuses.
    pub fn new(keys: Arc<Keys>, refusals: Arc<Refusals>) -> Self {
        Self { keys, refusals }
    }

    /// Puts the guard before all services, and before the answer to unknown methods.
    pub fn protect(&self, routes: Routes) -> Routes {
        routes.into_axum_router().layer(self.clone()).into()
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
    fn admit(&self, need: Option<Need>, caller: &Caller) -> Result<(), Error> {
        let need = need.ok_or_else(|| {
            Error::Unimplemented("this service does not have the method that was called".into())
        })?;
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

/// The address that a call came from, as far as it is known.
fn address_of(extensions: &Extensions, headers: &HeaderMap) -> Option<IpAddr> {
    let forwarded = || headers.get(FORWARDED_FOR)?.to_str().ok()?.parse().ok();
    let peer = extensions.get::<Peer>();
    peer.map_or_else(forwarded, |Peer(address)| Some(*address))
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
            let method = method(request.uri().path());
            let need = method.map(|method| method.need);
            let caller = match guard.identify(need, request.headers()).await {
                Ok(Some(caller)) => caller,
                Ok(None) => return Ok(inner.call(request).await?.map(Body::new)),
                Err(error) => {
                    if matches!(error, Error::Unauthenticated(_)) {
                        let address = address_of(request.extensions(), request.headers());
                        guard.refusals.address(address, guard.keys.now_ms());
                    }
                    return Ok(Status::from(error).into_http());
                }
            };
            let mut response = match guard.admit(need, &caller) {
                Ok(()) => call_until_revoked(&mut inner, request, &caller).await?,
                Err(error) => Status::from(error).into_http(),
            };
            if let Some(audit) = method.and_then(|method| method.audit)
                && !response.headers().contains_key(Status::GRPC_STATUS)
            {
                audit::note(audit, &caller.name, response.extensions());
            }
            let limits = caller.meter.limits(guard.keys.now_ms());
            rate_limit::write(&limits, response.headers_mut());
            Ok(response)
        })
    }
}

/// Calls on behalf of that caller; ends the call when its key is revoked.
async fn call_until_revoked<S, Out>(
    inner: &mut S,
    mut request: Request<Body>,
    caller: &Caller,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Out>>,
    Out: hyper::body::Body<Data = Bytes> + Send + 'static,
    Out::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let until_revoked = |body, way| Body::new(UntilRevoked::new(body, way, caller.revoked.clone()));
    let is_revocation = request.uri().path() == REVOKE_CLIENT;
    request.extensions_mut().insert(caller.clone());
    let request = request.map(|body| until_revoked(body, Way::In));
    let response = inner.call(request).await?.map(Body::new);
    if is_revocation {
        return Ok(response);
    }
    Ok(response.map(|body| until_revoked(body, Way::Out)))
}
