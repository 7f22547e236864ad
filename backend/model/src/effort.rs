//! Cancellation and offloading of long computations through the host process.

use std::sync::OnceLock;

pub trait ComputeHost: Send + Sync {
    /// Whether the caller has disconnected. Any result is then acceptable.
    fn is_caller_gone(&self) -> bool;

    /// Runs uninterruptible work on a thread where it does not block other work.
    fn run_offloaded(&self, work: &mut (dyn FnMut() + Send));
}

static HOST: OnceLock<&'static dyn ComputeHost> = OnceLock::new();

/// Sets the host process; only the first call has an effect. Without a host, every computation runs
/// to completion.
pub fn set_host(host: &'static dyn ComputeHost) {
    let _ = HOST.set(host);
}

pub(crate) fn is_caller_gone() -> bool {
    HOST.get().is_some_and(|host| host.is_caller_gone())
}

pub(crate) fn run_offloaded<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let Some(host) = HOST.get() else {
        return work();
    };
    let mut work = Some(work);
    let mut done = None;
    host.run_offloaded(&mut || done = work.take().map(|work| work()));
    done.expect("a host runs the work once")
}
