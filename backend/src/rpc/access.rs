//! Who calls, and what they may do: from the key of a call to the role its method needs.

mod body;
mod guard;
mod keys;
mod meter;
mod refusals;
mod table;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

use crate::{
    domain::{Name, RecordId, Role},
    error::Error,
};

pub use guard::Guard;
pub use keys::Keys;
pub use meter::Meter;
pub use refusals::Refusals;
pub use table::{METHODS, Need};

/// The client whose key a call carries.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Tells it from an earlier client of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// What it may do.
    pub role: Role,
    /// What it may still ask for.
    pub meter: Arc<Meter>,
    /// Cancelled when the key is revoked. Calls are ended by [`Guard`] then; only work that
    /// outlives its call has to look at it.
    pub revoked: CancellationToken,
}

#[cfg(test)]
impl Caller {
    /// A caller who may do everything, as often as it likes.
    pub(crate) fn admin() -> Self {
        Self {
            id: RecordId::from_parts(0, 1),
            name: Name::parse("admin").unwrap(),
            role: Role::Admin,
            meter: Arc::new(Meter::new(crate::domain::Rates::default(), 0)),
            revoked: CancellationToken::new(),
        }
    }
}

/// The address that a call came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub std::net::IpAddr);

/// The caller of a request that came through [`Guard`].
///
/// # Errors
/// `UNAUTHENTICATED` when the request did not.
pub fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Error::Unauthenticated("the call carries no key".into()).into())
}

#[cfg(test)]
mod tests;
