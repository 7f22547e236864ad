//! What goes out in a digest, not separately.

use super::Deliveries;
use crate::{
    domain::{Delivery, DeliveryState},
    error::Error,
    store::Stored,
};

/// How often a digest may have been sent again.
const AGAIN_MAX: usize = 1_000;

impl Deliveries {
    /// The delivery to send again for one: itself, or the newest one of the digest that it died with.
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`] where its digest did not die, [`Error::NotFound`] where that is not
    /// kept any more, and those of the store.
    pub(super) async fn carrier(
        &self,
        delivery: Stored<Delivery>,
    ) -> Result<Stored<Delivery>, Error> {
        let Some(digest) = delivery.value.folding.digest() else {
            return Ok(delivery);
        };
        if delivery.value.state != DeliveryState::Dead {
            return Err(Error::FailedPrecondition(format!(
                "it is in the digest `{digest}` and is not sent separately; resend the digest"
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
