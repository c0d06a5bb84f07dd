//! Background tasks that run beside the message path.

use std::sync::Arc;

use fieldline_entities::services::HousekeeperService;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use super::PlatformStores;
use super::stages::{IngestStage, RuleStage};
use crate::config::Config;
use crate::retention::RetentionWorker;
use crate::shutdown::ShutdownDeadline;
use crate::system_info::{LocalSystemInfo, SystemInfoRecorder};

/// The background tasks of a running platform.
pub(super) struct BackgroundTasks {
    /// Tasks that may be aborted: the rest of their work is done after the next start.
    interruptible: [JoinHandle<()>; 5],
    finishing: FinishingTasks,
}

/// Tasks that still have data to write after everything else has ended.
pub(super) struct FinishingTasks {
    stop: watch::Sender<bool>,
    /// In the order in which `finish` waits for them.
    tasks: [(&'static str, JoinHandle<()>); 4],
}

impl BackgroundTasks {
    pub(super) async fn start(
        stage: &IngestStage,
        stores: &PlatformStores,
        system_info: Arc<LocalSystemInfo>,
        config: &Config,
    ) -> Self {
        let RuleStage {
            devices,
            rules,
            services,
            tenant_transfer,
            ..
        } = &stage.parts;
        tokio::spawn(fieldline_rules::stats::report(rules.clone()));
        tokio::spawn(rules.mail_tokens().run_renewal());
        if let Err(error) = services.ota_packages.discard_unfinished().await {
            warn!(%error, "cannot delete uploads that were cut off");
        }
        if let Err(error) = services.resources.discard_unfinished().await {
            warn!(%error, "cannot delete files of resources that were cut off");
        }
        let context = &services.context;
        let retention = RetentionWorker {
            alarms: services.alarms.clone(),
            rpcs: services.rpc_cleanup.clone(),
            packages: services.ota_packages.clone(),
            resources: services.resources.clone(),
            events: context.stores.events.clone(),
            audit: context.stores.audit.clone(),
            clock: context.clock.clone(),
            options: config.events.clone(),
        };
        let stop = watch::Sender::new(false);
        watch_overload(stage, stores);
        let recorder = SystemInfoRecorder {
            source: system_info,
            series: stores.observed_store.clone(),
            clock: context.clock.clone(),
        };
        let housekeeper = HousekeeperService::new(context.clone(), stores.observed_store.clone());
        let (activity, usage) = (devices.activity.clone(), devices.usage.clone());
        let activity = activity.run(config.activity.clone(), stop.subscribe());
        let usage = usage.run(config.usage.clone(), stop.subscribe());
        Self {
            interruptible: [
                tokio::spawn(retention.run()),
                tokio::spawn(tenant_transfer.clone().run(stop.subscribe())),
                tokio::spawn(housekeeper.run(stop.subscribe())),
                tokio::spawn(recorder.run()),
                tokio::spawn(stores.overload.clone().run(stop.subscribe())),
            ],
            finishing: FinishingTasks {
                tasks: [
                    ("activity", tokio::spawn(activity)),
                    (
                        "OTA rollouts",
                        tokio::spawn(devices.rollouts.clone().run(stop.subscribe())),
                    ),
                    ("calls", tokio::spawn(devices.rpc.clone().run(stop.subscribe()))),
                    ("API usage", tokio::spawn(usage)),
                ],
                stop,
            },
        }
    }

    /// Aborts the interruptible tasks; returns the others, which go on.
    pub(super) fn interrupt(self) -> FinishingTasks {
        for task in self.interruptible {
            task.abort();
        }
        self.finishing
    }
}

/// Has the monitor ask all that knows what is throttled or behind, besides the stores.
fn watch_overload(stage: &IngestStage, stores: &PlatformStores) {
    let RuleStage { devices, rules, .. } = &stage.parts;
    let overload = &stores.overload;
    overload.add(stage.ingest.lag_source());
    overload.add(devices.usage.clone());
    overload.add(rules.lanes().clone());
    overload.add(rules.shared().services.scripts.ledger().clone());
}

impl FinishingTasks {
    /// Stops the tasks and waits for them. Call it after ingest has ended, or the last events they hear of are never
    /// written.
    pub(super) async fn finish(self, deadline: ShutdownDeadline) {
        self.stop.send_replace(true);
        for (name, task) in self.tasks {
            let abort = task.abort_handle();
            deadline.step(name, 0.5, task).await;
            abort.abort();
        }
    }
}
