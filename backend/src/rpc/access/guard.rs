//! The layer that lets a call through, or answers in its place.

use std::{
    error::Error as StdError,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use tonic::{Status, body::Body, service::Routes};
use tower::{Layer, Service};

use super::{
    Caller, Keys,
    body::{UntilRevoked, Way},
    table::{Need, need_of},
};
use crate::error::Error;

/// The header of the published interface; gRPC metadata of the same name.
const API_KEY_HEADER: &str = "zenoss-api-key";

/// The one method by which a caller may end its own key; its answer still arrives.
const REVOKE_CLIENT: &str = "/bellwether.v1.ClientService/RevokeClient";

/// Lets only those calls through whose key has the role that the method needs, puts the
/// [`Caller`] into their extensions, and ends them when the key is revoked.
#[derive(Debug, Clone)]
pub struct Guard {
    keys: Arc<Keys>,
}

impl Guard {
    /// A guard that knows these keys.
    pub fn new(keys: Arc<Keys>) -> Self {
        Self { keys }
    }

    /// Puts the guard before all services, and before the answer to unknown methods.
    pub fn protect(&self, routes: Routes) -> Routes {
        routes.into_axum_router().layer(self.clone()).into()
    }

    /// Who calls; none for methods that need no key.
    async fn admit(&self, path: &str, headers: &HeaderMap) -> Result<Option<Caller>, Error> {
        let need = need_of(path);
        if need == Some(Need::Nothing) {
            return Ok(None);
        }
        let key = key_of(headers)?;
        let caller = self.keys.find(key).await?.ok_or_else(|| {
            Error::Unauthenticated("the key is not known; it may have been revoked".into())
        })?;
        let need = need.ok_or_else(|| {
            Error::Unimplemented("this service does not have the method that was called".into())
        })?;
        if need.allows(caller.role) {
            return Ok(Some(caller));
        }
        Err(Error::PermissionDenied(format!(
            "this needs the role `{}`; the key of `{}` has the role `{}`",
            need.word(),
            caller.name,
            caller.role.word()
        )))
    }
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
            let mut request = request.map(Body::new);
            match guard.admit(request.uri().path(), request.headers()).await {
                Err(error) => Ok(Status::from(error).into_http()),
                Ok(None) => Ok(inner.call(request).await?.map(Body::new)),
                Ok(Some(caller)) => {
                    let until_revoked =
                        |body, way| Body::new(UntilRevoked::new(body, way, caller.revoked.clone()));
                    request.extensions_mut().insert(caller.clone());
                    let is_revocation = request.uri().path() == REVOKE_CLIENT;
                    let request = request.map(|body| until_revoked(body, Way::In));
                    let response = inner.call(request).await?.map(Body::new);
                    if is_revocation {
                        return Ok(response);
                    }
                    Ok(response.map(|body| until_revoked(body, Way::Out)))
                }
            }
        })
    }
}
