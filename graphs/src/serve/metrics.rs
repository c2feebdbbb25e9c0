//! The metrics of a served graph: a recorder for the whole process, and what the process itself uses.

use std::time::SystemTime;

use anyhow::Context as _;
use metrics::{Unit, describe_gauge, gauge};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use omni_flow_transports::metrics::{LIST, MetricType};
use tokio::runtime::Handle;

/// What is recorded in this process.
#[derive(Clone)]
pub struct Recorder(PrometheusHandle);

impl Recorder {
    /// Records from now on. Once per process.
    ///
    /// # Errors
    /// Somebody records already.
    pub fn install() -> anyhow::Result<Self> {
        let mut histograms = LIST.iter().filter_map(|f| match f.kind {
            MetricType::Histogram(buckets) => Some((Matcher::Full(f.name.to_owned()), buckets)),
            _ => None,
        });
        let builder = histograms.try_fold(PrometheusBuilder::new(), |builder, (name, buckets)| {
            builder.set_buckets_for_metric(name, buckets)
        });
        let recorder = builder.context("the buckets of a metric")?.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).context("metrics are recorded already")?;
        omni_flow::describe_metrics();
        for (name, unit, meaning) in [
            ("omni_flow_build_info", Unit::Count, "1, with the version"),
            ("omni_flow_start_time_seconds", Unit::Seconds, "when the process began, Unix time"),
            ("omni_flow_runtime_workers", Unit::Count, "async worker threads"),
            ("omni_flow_runtime_queue_depth", Unit::Count, "tasks that wait for a worker in the shared queue"),
            ("process_resident_memory_bytes", Unit::Bytes, "memory in use"),
            ("process_open_fds", Unit::Count, "open files"),
            ("process_cpu_seconds_total", Unit::Seconds, "processor time used"),
        ] {
            describe_gauge!(name, unit, meaning);
        }
        gauge!("omni_flow_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        gauge!("omni_flow_start_time_seconds").set(began.as_secs_f64());
        Ok(Self(handle))
    }
    /// Everything as text.
    pub fn render(&self) -> String {
        if let Ok(runtime) = Handle::try_current() {
            let m = runtime.metrics();
            gauge!("omni_flow_runtime_workers").set(m.num_workers() as f64);
            gauge!("omni_flow_runtime_queue_depth").set(m.global_queue_depth() as f64);
        }
        process();
        self.0.run_upkeep();
        self.0.render()
    }
}

/// What the system says of this process, where it says it in files.
#[cfg(target_os = "linux")]
fn process() {
    if let Some(bytes) = resident() {
        gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
    if let Ok(fds) = std::fs::read_dir("/proc/self/fd") {
        gauge!("process_open_fds").set(fds.count() as f64);
    }
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    gauge!("process_cpu_seconds_total").set(used.tv_sec as f64 + used.tv_nsec as f64 * 1e-9);
}

#[cfg(not(target_os = "linux"))]
fn process() {}

/// `VmRSS` of `/proc/self/status`, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}
