//! Owns the tasks of a connection's HTTP/2 streams, so that they end with the connection.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::rt::Executor;
use tokio::task::JoinSet;

/// The tasks of one connection, one per stream; the HTTP library limits the number of streams.
/// Dropping the last handle aborts the tasks.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            stream.await;
        });
    }
}
