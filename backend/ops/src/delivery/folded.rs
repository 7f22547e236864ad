//! Messages sent as part of a digest.

use super::Deliveries;
use crate::{
    domain::{Delivery, DeliveryState},
    error::Error,
    store::Stored,
};

/// Maximum number of times that a digest can have been sent again.
const AGAIN_MAX: usize = 1_000;

impl Deliveries {
    /// Returns the delivery to retry for a message: the message itself, or the latest copy of the
    /// digest it died with. Returns [`Error::FailedPrecondition`] if the digest is not dead, and
    /// [`Error::NotFound`] if it is no longer stored.
    pub(super) async fn find_digest(
        &self,
        delivery: Stored<Delivery>,
    ) -> Result<Stored<Delivery>, Error> {
        let Some(digest) = delivery.value.folding.digest_id() else {
            return Ok(delivery);
        };
        if delivery.value.state != DeliveryState::Dead {
            return Err(Error::FailedPrecondition(format!(
                "part of the digest `{digest}`; resend the digest instead"
            )));
        }
        let mut carrier = self.find(digest).await?;
        for _ in 0..AGAIN_MAX {
            match carrier.value.retried_as {
                Some(newer) => carrier = self.find(newer).await?,
                None => break,
            }
        }
        Ok(carrier)
    }
}
