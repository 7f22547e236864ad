//! Metrics of the process: version, start time and resource usage. Values that the system does not
//! provide are omitted.

use std::pin::Pin;

use prometheus_client::{
    metrics::{
        counter::ConstCounter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

use super::{MetricsSource, render_registry};

#[derive(Debug)]
pub struct ProcessMetrics {
    version: &'static str,
    started_seconds: f64,
    replaced: fn() -> u64,
}

impl ProcessMetrics {
    /// Creates the metrics of a process that starts now; `replaced` returns the number of malformed
    /// characters replaced in received events.
    pub fn new(version: &'static str, replaced: fn() -> u64) -> Self {
        let now = jiff::Timestamp::now();
        Self {
            version,
            started_seconds: now.as_duration().as_secs_f64(),
            replaced,
        }
    }

    fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        let build = Family::<[(&str, &str); 1], Gauge>::default();
        build.get_or_create(&[("version", self.version)]).set(1);
        registry.register(
            "bellwether_build_info",
            "Version of the binary; always 1",
            build,
        );
        registry.register(
            "process_start_time_seconds",
            "Start time of the process, in seconds since 1970",
            ConstGauge::new(self.started_seconds),
        );
        registry.register(
            "bellwether_replaced_characters",
            "Malformed characters replaced in received data",
            ConstCounter::new((self.replaced)()),
        );
        if let Some(seconds) = usage::cpu_seconds() {
            registry.register(
                "process_cpu_seconds",
                "CPU time, user and system",
                ConstCounter::new(seconds),
            );
        }
        let numbers = [
            (
                "process_resident_memory_bytes",
                "Memory in use",
                usage::memory_bytes(),
            ),
            (
                "process_open_fds",
                "Open files and sockets",
                usage::open_descriptors(),
            ),
            (
                "process_max_fds",
                "Limit of open files and sockets",
                usage::descriptors_max(),
            ),
        ];
        for (name, help, number) in numbers {
            if let Some(number) = number {
                registry.register(name, help, ConstGauge::new(number));
            }
        }
        registry
    }
}

impl MetricsSource for ProcessMetrics {
    fn render(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async { render_registry(&self.registry()) })
    }
}

#[cfg(target_os = "linux")]
mod usage {
    use std::fs;

    use rustix::{
        process::{Resource, getrlimit},
        time::{ClockId, clock_gettime},
    };

    pub(super) fn cpu_seconds() -> Option<f64> {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let seconds = u32::try_from(used.tv_sec).ok()?;
        let nanoseconds = u32::try_from(used.tv_nsec).ok()?;
        Some(f64::from(seconds) + f64::from(nanoseconds) / 1e9)
    }

    pub(super) fn memory_bytes() -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    }

    pub(super) fn open_descriptors() -> Option<u64> {
        let open = fs::read_dir("/proc/self/fd").ok()?.count();
        // The count excludes the descriptor of the directory that is being read.
        u64::try_from(open).ok()?.checked_sub(1)
    }

    pub(super) fn descriptors_max() -> Option<u64> {
        getrlimit(Resource::Nofile).current
    }
}

#[cfg(not(target_os = "linux"))]
mod usage {
    pub(super) fn cpu_seconds() -> Option<f64> {
        None
    }

    pub(super) fn memory_bytes() -> Option<u64> {
        None
    }

    pub(super) fn open_descriptors() -> Option<u64> {
        None
    }

    pub(super) fn descriptors_max() -> Option<u64> {
        None
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn process_metrics_are_present() {
        let text = ProcessMetrics::new("1.2.3", || 0).render().await;
        for name in [
            "bellwether_build_info{version=\"1.2.3\"} ",
            "process_start_time_seconds ",
            "process_cpu_seconds_total ",
            "process_resident_memory_bytes ",
            "process_open_fds ",
            "process_max_fds ",
        ] {
            let value = text.lines().find(|line| line.starts_with(name));
            let value: f64 = value.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
            assert!(value > 0.0, "{text}");
        }
    }
}
