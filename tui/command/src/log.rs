//! The target and format of log lines.

use bellwether_process::plain_file;
use tracing::Subscriber;
use tracing_subscriber::{
    Layer, Registry, fmt::MakeWriter, layer::SubscriberExt, registry::LookupSpan,
};

use crate::config::{LogFormat, Settings};
use crate::failure::Failure;

pub(crate) fn log_to_stderr(settings: &Settings) {
    install_subscriber(settings, std::io::stderr);
}

pub(crate) fn log_to_file(settings: &Settings, path: &std::path::Path) -> Result<(), Failure> {
    let file = plain_file::open_for_append(path)
        .map_err(|error| Failure::new(format!("failed to write {}: {error}", path.display())))?;
    install_subscriber(settings, std::sync::Mutex::new(file));
    Ok(())
}

fn install_subscriber<W>(settings: &Settings, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = match settings.log_format {
        LogFormat::Text => text_layer(writer),
        LogFormat::Json => json_layer(writer),
    };
    let subscriber = Registry::default().with(lines.with_filter(settings.log_filter.clone()));
    // The result is ignored: this function is called once per process, and a second call would only
    // have no effect.
    drop(tracing::subscriber::set_global_default(subscriber));
    for message in &settings.loose {
        tracing::warn!("{message}");
    }
}

type LogLayer<S> = Box<dyn Layer<S> + Send + Sync>;

fn text_layer<S, W>(writer: W) -> LogLayer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    Box::new(layer.with_writer(writer))
}

fn json_layer<S, W>(writer: W) -> LogLayer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().json();
    Box::new(layer.flatten_event(true).with_writer(writer))
}
