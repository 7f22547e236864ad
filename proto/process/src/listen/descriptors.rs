//! Computes the number of connections that the descriptor limit of the process allows.

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of listeners in one process: gRPC and REST.
const LISTENERS: usize = 2;
/// Minimum and maximum number of descriptors reserved for the store, deliveries and everything
/// else.
const RESERVED: (usize, usize) = (64, 1_024);

/// Returns the number of connections that one listener may have. Raises the soft descriptor limit
/// as far as the system allows, and reserves a quarter for the store and for deliveries.
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
        connection_share(usize::try_from(given).unwrap_or(usize::MAX))
    })
}

#[cfg(not(unix))]
pub(super) fn for_connections() -> usize {
    usize::MAX
}

#[cfg_attr(
    not(unix),
    expect(dead_code, reason = "only Unix limits file descriptors")
)]
fn connection_share(given: usize) -> usize {
    let reserved = (given / 4).clamp(RESERVED.0, RESERVED.1);
    (given.saturating_sub(reserved) / LISTENERS).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_most_descriptors_and_some_are_reserved() {
        let shares = [10, 256, 1_024, 20_000].map(connection_share);
        assert_eq!(shares, [1, 96, 384, 9_488]);
    }
}
