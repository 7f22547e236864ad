//! Spans of what happens to an event, for a collector of OpenTelemetry: one of the call that brings
//! it, one of the decision, one of each attempt of a delivery that follows from it. Without a
//! collector there are none, and the context that a sender gave is passed on as it is.

mod export;

use std::{fmt, sync::OnceLock};

use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId, Value,
    trace::{
        Span as _, SpanBuilder, SpanContext, Status, TraceContextExt as _, TraceState, Tracer as _,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};

pub use self::export::{BadTraces, Exporting, TraceConfig, export};
use crate::domain::TraceContext;
pub use opentelemetry::trace::SpanKind;

/// What makes spans; the process has one or none, as it has one log.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

tokio::task_local! {
    /// What the work of this task follows from.
    static CURRENT: Option<TraceContext>;
}

/// What the work of this task follows from.
pub fn current() -> Option<TraceContext> {
    CURRENT.try_with(|it| *it).ok().flatten()
}

/// Does work that follows from something.
pub async fn within<F: Future>(context: Option<TraceContext>, work: F) -> F::Output {
    CURRENT.scope(context, work).await
}

/// A span that ends when this is dropped; where no span is made, what it follows from.
#[derive(Debug)]
pub struct Span {
    made: Option<Box<SdkSpan>>,
    context: Option<TraceContext>,
}

impl Span {
    /// Begins a span that follows from another one, or a trace.
    pub fn begin(name: &'static str, kind: SpanKind, parent: Option<TraceContext>) -> Self {
        let Some(tracer) = TRACER.get() else {
            return Self {
                made: None,
                context: parent,
            };
        };
        let around = parent.map_or_else(Context::new, |parent| {
            Context::new().with_remote_span_context(remote(parent))
        });
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        let made = tracer.build_with_context(builder, &around);
        let context = made.span_context();
        let own = TraceContext {
            trace: context.trace_id().to_bytes(),
            span: context.span_id().to_bytes(),
            is_sampled: context.is_sampled(),
        };
        // What no one sees costs nothing further.
        let context = (own.is_sampled || parent.is_some()).then_some(own);
        Self {
            made: Some(Box::new(made)),
            context,
        }
    }

    /// Begins a span that follows from another one; none without that.
    pub fn of(name: &'static str, kind: SpanKind, parent: Option<TraceContext>) -> Self {
        match parent {
            Some(_) => Self::begin(name, kind, parent),
            None => Self {
                made: None,
                context: None,
            },
        }
    }

    /// What follows from it has this.
    pub fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// Says something about it, which is made only if it is shown.
    pub fn note<V: Into<Value>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        if let Some(made) = &mut self.made {
            made.set_attribute(KeyValue::new(key, value()));
        }
    }

    /// Says that it failed.
    pub fn fail(&mut self, why: impl fmt::Display) {
        if let Some(made) = &mut self.made {
            made.set_status(Status::error(why.to_string()));
        }
    }
}

fn remote(context: TraceContext) -> SpanContext {
    let flags = if context.is_sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::default()
    };
    SpanContext::new(
        TraceId::from_bytes(context.trace),
        SpanId::from_bytes(context.span),
        flags,
        true,
        TraceState::default(),
    )
}
