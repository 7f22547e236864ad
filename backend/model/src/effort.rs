//! How long computations give way: what they ask of the process that runs them.

use std::sync::OnceLock;

/// The process that runs a computation.
pub trait Host: Send + Sync {
    /// Whether the caller is gone, so that any result will do.
    fn is_over(&self) -> bool;

    /// Runs work that cannot be interrupted where it does not hold up others.
    fn apart(&self, work: &mut (dyn FnMut() + Send));
}

static HOST: OnceLock<&'static dyn Host> = OnceLock::new();

/// Sets the process; the first one stays. Without one, every computation runs to its end.
pub fn run_by(host: &'static dyn Host) {
    let _ = HOST.set(host);
}

/// Whether the caller of this computation is gone.
pub(crate) fn is_over() -> bool {
    HOST.get().is_some_and(|host| host.is_over())
}

/// Runs work that cannot be interrupted.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let Some(host) = HOST.get() else {
        return work();
    };
    let mut work = Some(work);
    let mut done = None;
    host.apart(&mut || done = work.take().map(|work| work()));
    done.expect("a host runs the work once")
}
