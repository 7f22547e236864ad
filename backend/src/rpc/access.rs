//! Authentication and authorization of calls: from the key to the role that the method requires.

mod body;
mod capacity;
mod deadline;
mod entries;
mod guard;
mod inflate;
mod line;
mod origin;
mod rate_limit;
mod refusals;
mod scanning;
mod signed_in_users;

use std::net::IpAddr;

use tonic::{Request, Status};

use crate::{error::Error, ops::client::Caller};

pub use deadline::requested_timeout;
pub use guard::{
    AdmittedCall, CallGuard, CallGuardService, DIALECT_HEADER, RejectedCall, intake_bytes_max,
    response_code,
};
pub use refusals::{Refusals, reason_labels as refusal_words};
pub use scanning::too_large_status;
pub use signed_in_users::SignedInUsers;

#[derive(Debug, Clone, Copy)]
struct CallAddress(Option<IpAddr>);

pub fn address<T>(request: &Request<T>) -> Option<IpAddr> {
    request.extensions().get::<CallAddress>()?.0
}

pub fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Error::Unauthenticated("the call has no key".into()).into())
}

#[cfg(test)]
pub(super) mod tests;
