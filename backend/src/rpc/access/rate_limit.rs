//! The `RateLimit` headers of a response: the caller's remaining quota.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::ops::client::{Limit, Unit};

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

pub(super) fn write(limits: &[Limit], headers: &mut HeaderMap) {
    let state = |limit: &Limit| {
        let (name, _) = unit_names(limit.unit);
        format!("\"{name}\";r={};t={}", limit.left, limit.seconds_until_full)
    };
    let policy = |limit: &Limit| {
        let (name, unit) = unit_names(limit.unit);
        format!("\"{name}\";q={};w=1{unit}", limit.per_second)
    };
    let members: [(_, Vec<_>); 2] = [
        (RATE_LIMIT, limits.iter().map(state).collect()),
        (RATE_LIMIT_POLICY, limits.iter().map(policy).collect()),
    ];
    for (name, members) in members {
        if let Ok(value) = HeaderValue::try_from(members.join(", "))
            && !members.is_empty()
        {
            headers.insert(name, value);
        }
    }
}

fn unit_names(unit: Unit) -> (&'static str, &'static str) {
    match unit {
        Unit::Requests => ("requests", ""),
        Unit::Events => ("events", ";qu=\"events\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_headers_report_remaining_quota() {
        let limit = |unit, per_second, left, seconds_until_full| Limit {
            unit,
            per_second,
            left,
            seconds_until_full,
        };
        let limits = [
            limit(Unit::Requests, 5, 4, 1),
            limit(Unit::Events, 100, 0, 3),
        ];
        let mut headers = HeaderMap::new();
        write(&limits, &mut headers);
        assert_eq!(
            headers["ratelimit"],
            "\"requests\";r=4;t=1, \"events\";r=0;t=3"
        );
        assert_eq!(
            headers["ratelimit-policy"],
            "\"requests\";q=5;w=1, \"events\";q=100;w=1;qu=\"events\""
        );
        let mut none = HeaderMap::new();
        write(&[], &mut none);
        assert!(none.is_empty());
    }
}
