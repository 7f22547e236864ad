//! Union and difference of spans.

use super::Span;

pub(super) fn merge_spans(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|it| (it.start_ms, it.end_ms));
    let mut all: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match all.last_mut() {
            Some(last) if span.start_ms == last.start_ms && span.end_ms == last.end_ms => {}
            Some(last) if span.start_ms <= last.end_ms => {
                last.end_ms = last.end_ms.max(span.end_ms);
                last.longer_ms += span.longer_ms;
            }
            _ => all.push(span),
        }
    }
    all
}

/// Subtracts the spans `out` from `spans`; both are sorted. Clock changes within a span that is cut
/// are no longer counted: its `longer_ms` is 0.
pub(super) fn subtract_spans(spans: &[Span], out: &[Span]) -> Vec<Span> {
    let mut left = Vec::with_capacity(spans.len());
    for span in spans {
        let mut rest = *span;
        let first = out.partition_point(|it| it.end_ms <= span.start_ms);
        for other in &out[first..] {
            if other.start_ms >= rest.end_ms {
                break;
            }
            if other.start_ms > rest.start_ms {
                left.push(Span {
                    end_ms: other.start_ms,
                    longer_ms: 0,
                    ..rest
                });
            }
            rest = Span {
                start_ms: other.end_ms.min(rest.end_ms),
                longer_ms: 0,
                ..rest
            };
        }
        if rest.start_ms < rest.end_ms {
            left.push(rest);
        }
    }
    left
}
