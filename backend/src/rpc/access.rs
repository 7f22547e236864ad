//! Who calls, and what they may do: from the key of a call to the role its method needs.

mod body;
mod capacity;
mod deadline;
mod entries;
mod guard;
mod inflate;
mod line;
mod origin;
mod people;
mod rate_limit;
mod refusals;
mod scanning;

use std::net::IpAddr;

use tonic::{Request, Status};

use crate::{error::Error, ops::client::Caller};

pub use deadline::timeout_asked;
pub use guard::{Admitted, DIALECT_HEADER, Denied, Guard, Guarded, code_of, intake_bytes_max};
pub use people::People;
pub use refusals::{Refusals, words as refusal_words};
pub use scanning::too_large;

/// Where a call comes from, as far as it is known.
#[derive(Debug, Clone, Copy)]
struct CallAddress(Option<IpAddr>);

/// The address that a request comes from; none where that is not known.
pub fn address<T>(request: &Request<T>) -> Option<IpAddr> {
    request.extensions().get::<CallAddress>()?.0
}

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
