//! How many connections the system lets this process have.

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Listeners in one process: gRPC and REST.
const LISTENERS: usize = 2;
/// What is kept for the store, for deliveries and for all else, at least and at most.
const KEPT: (usize, usize) = (64, 1_024);

/// Connections that one listener may have, of the descriptors that the system gives: its limit is
/// taken up as far as it allows, and a quarter is kept for the store and for deliveries.
#[cfg(unix)]
pub(super) fn for_connections() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let given = if current != maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        maximum
    } else {
        current
    };
    given.map_or(usize::MAX, |given| {
        share(usize::try_from(given).unwrap_or(usize::MAX))
    })
}

/// The system says nothing about it.
#[cfg(not(unix))]
pub(super) fn for_connections() -> usize {
    usize::MAX
}

#[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has such a limit"))]
fn share(given: usize) -> usize {
    let kept = (given / 4).clamp(KEPT.0, KEPT.1);
    (given.saturating_sub(kept) / LISTENERS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_descriptors_are_for_connections_and_some_are_kept() {
        let shares = [10, 256, 1_024, 20_000].map(share);
        assert_eq!(shares, [1, 96, 384, 9_488]);
    }
}
