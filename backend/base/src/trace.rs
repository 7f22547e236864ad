//! OpenTelemetry spans for the path of an event: one for the call that submits it, one for the
//! decision, and one for each attempt of a resulting delivery. Without a collector there are no
//! spans, and the sender's context is passed on unchanged.

mod export;

use std::{fmt, sync::OnceLock};

use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId, Value,
    trace::{
        Span as _, SpanBuilder, SpanContext, Status, TraceContextExt as _, TraceState, Tracer as _,
    },
};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};

pub use self::export::{TraceConfig, TraceConfigError, TraceExport, start_export};
use crate::domain::TraceContext;
pub use opentelemetry::trace::SpanKind;

/// The tracer. A process has at most one, as for its log.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

tokio::task_local! {
    static CURRENT: Option<TraceContext>;
}

pub fn current_context() -> Option<TraceContext> {
    CURRENT.try_with(|it| *it).ok().flatten()
}

pub async fn run_in_context<F: Future>(context: Option<TraceContext>, work: F) -> F::Output {
    CURRENT.scope(context, work).await
}

/// A span that ends on drop. Without a tracer, contains only the parent's context.
#[derive(Debug)]
pub struct Span {
    made: Option<Box<SdkSpan>>,
    context: Option<TraceContext>,
}

impl Span {
    /// Begins a span with a parent, or a new trace.
    pub fn with_parent(name: &'static str, kind: SpanKind, parent: Option<TraceContext>) -> Self {
        let Some(tracer) = TRACER.get() else {
            return Self {
                made: None,
                context: parent,
            };
        };
        let around = parent.map_or_else(Context::new, |parent| {
            Context::new().with_remote_span_context(span_context(parent))
        });
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        let made = tracer.build_with_context(builder, &around);
        let context = made.span_context();
        let own = TraceContext {
            trace: context.trace_id().to_bytes(),
            span: context.span_id().to_bytes(),
            is_sampled: context.is_sampled(),
        };
        // A new trace that is not sampled has no further cost.
        let context = (own.is_sampled || parent.is_some()).then_some(own);
        Self {
            made: Some(Box::new(made)),
            context,
        }
    }

    /// Begins a span if there is a parent.
    pub fn start(name: &'static str, kind: SpanKind, parent: Option<TraceContext>) -> Self {
        match parent {
            Some(_) => Self::with_parent(name, kind, parent),
            None => Self {
                made: None,
                context: None,
            },
        }
    }

    pub fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// Adds an attribute, which is only computed if the span is recorded.
    pub fn set_attribute<V: Into<Value>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        if let Some(made) = &mut self.made {
            made.set_attribute(KeyValue::new(key, value()));
        }
    }

    pub fn fail(&mut self, why: impl fmt::Display) {
        if let Some(made) = &mut self.made {
            made.set_status(Status::error(why.to_string()));
        }
    }
}

fn span_context(context: TraceContext) -> SpanContext {
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
