//! Who calls, and what they may do: from the key of a call to the role its method needs.

mod body;
mod capacity;
mod deadline;
mod entries;
mod guard;
mod line;
mod origin;
mod people;
mod rate_limit;
mod refusals;

use tonic::{Request, Status};

use crate::{error::Error, ops::client::Caller};

pub use deadline::timeout_asked;
pub use guard::{Admitted, Denied, Guard, Guarded, code_of};
pub use people::People;
pub use refusals::Refusals;

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
