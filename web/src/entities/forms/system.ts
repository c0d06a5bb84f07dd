// Forms of queues and of tenant profiles with their limits.

import { initialValues, isObject, valueAt, withValue, type FormField, type FormValues } from "@/ui/form/values";

export const QUEUE_FORM: FormField[] = [
  { name: "name", label: "Name", required: true, once: true },
  { name: "topic", label: "Topic", help: "Made from the name when empty" },
  { name: "partitions", label: "Partitions", type: "number", required: true, initial: 10 },
  { name: "pollInterval", label: "Poll interval, ms", type: "number", required: true, initial: 25 },
  { name: "packProcessingTimeout", label: "Most time for a pack, ms", type: "number", required: true, initial: 2000 },
  { name: "consumerPerPartition", label: "A consumer for each partition", type: "boolean", initial: true },
  { name: "", label: "How messages are given out", type: "heading" },
  {
    name: "submitStrategy.type", label: "Order", type: "select", required: true, initial: "BURST",
    options: ["BURST", "BATCH", "SEQUENTIAL_BY_ORIGINATOR", "SEQUENTIAL_BY_TENANT", "SEQUENTIAL"],
  },
  { name: "submitStrategy.batchSize", label: "Size of a batch", type: "number", initial: 1000 },
  { name: "", label: "What follows a failure", type: "heading" },
  {
    name: "processingStrategy.type", label: "Failures", type: "select", required: true, initial: "SKIP_ALL_FAILURES",
    options: ["SKIP_ALL_FAILURES", "SKIP_ALL_FAILURES_AND_TIMED_OUT", "RETRY_ALL", "RETRY_FAILED", "RETRY_TIMED_OUT", "RETRY_FAILED_AND_TIMED_OUT"],
  },
  { name: "processingStrategy.retries", label: "Retries (0 for no end)", type: "number", initial: 3 },
  { name: "processingStrategy.failurePercentage", label: "Failures that are let go, %", type: "number", initial: 0 },
  { name: "processingStrategy.pauseBetweenRetries", label: "Pause before a retry, s", type: "number", initial: 3 },
  { name: "processingStrategy.maxPauseBetweenRetries", label: "Longest pause, s", type: "number", initial: 3 },
];

const isIsolated = (values: FormValues): boolean => values["isolatedTbRuleEngine"] === true;
const OWN_QUEUES = "profileData.queueConfiguration";
/** The server wants this one among the queues of tenants that have their own. */
const MAIN = { ...initialValues(QUEUE_FORM, {}), name: "Main" };

/** Completes a queue as the server wants it. */
export function completeQueue(queue: FormValues): FormValues {
  return { ...queue, topic: queue["topic"] || `tb_rule_engine.${String(queue["name"]).toLowerCase()}` };
}

/** Tenants that share the queues of the installation have none in their profile. */
export function completeTenantProfile(profile: FormValues): FormValues {
  const stored = valueAt(profile, OWN_QUEUES);
  const queues = Array.isArray(stored) && stored.length > 0 ? stored.filter(isObject) : [MAIN];
  return withValue(profile, OWN_QUEUES, isIsolated(profile) ? queues.map(completeQueue) : null);
}

const number = (name: string, label: string): FormField => ({ name: `profileData.configuration.${name}`, label, type: "number", initial: 0 });
const rates = (name: string, label: string): FormField => ({ name: `profileData.configuration.${name}`, label, type: "rates" });
const heading = (label: string): FormField => ({ name: "", label, type: "heading" });

export const TENANT_PROFILE_FORM: FormField[] = [
  { name: "name", label: "Name", required: true },
  { name: "description", label: "Description", type: "long" },
  { name: "profileData.configuration.type", label: "Kind", initial: "DEFAULT", when: () => false },
  { name: "isolatedTbRuleEngine", label: "Its tenants have queues of their own", type: "boolean" },
  {
    name: OWN_QUEUES, label: "Queues", type: "rows", when: isIsolated, fields: QUEUE_FORM, begin: [MAIN],
    rowTitle: (queue) => ({ title: String(queue["name"] ?? ""), note: String(queue["topic"] ?? "") }),
  },
  { ...heading("Entities"), help: "0 is no limit" },
  number("maxDevices", "Devices"),
  number("maxAssets", "Assets"),
  number("maxCustomers", "Customers"),
  number("maxUsers", "Users"),
  number("maxDashboards", "Dashboards"),
  number("maxRuleChains", "Rule chains"),
  number("maxOtaPackagesInBytes", "OTA packages, bytes"),
  number("maxResourcesInBytes", "Resources, bytes"),
  number("maxResourceSize", "Largest resource, bytes"),
  heading("Each month"),
  number("maxTransportMessages", "Messages of devices"),
  number("maxTransportDataPoints", "Data points of devices"),
  number("maxREExecutions", "Rule engine executions"),
  number("maxJSExecutions", "JavaScript executions"),
  number("maxTbelExecutions", "TBEL executions"),
  number("maxDPStorageDays", "Days of stored data points"),
  number("maxCreatedAlarms", "Created alarms"),
  number("maxEmails", "E-mails"),
  { name: "profileData.configuration.smsEnabled", label: "Text messages are allowed", type: "boolean", initial: true },
  { ...number("maxSms", "Text messages"), when: (values) => valueAt(values, "profileData.configuration.smsEnabled") !== false },
  number("warnThreshold", "Warn from this part of a limit (0.8 for 80 %)"),
  heading("Kept for days"),
  number("defaultStorageTtlDays", "Time series"),
  number("alarmsTtlDays", "Alarms"),
  number("rpcTtlDays", "Commands"),
  number("queueStatsTtlDays", "Statistics of queues"),
  number("ruleEngineExceptionsTtlDays", "Exceptions of the rule engine"),
  heading("Rate limits"),
  rates("transportTenantMsgRateLimit", "Messages of the tenant"),
  rates("transportTenantTelemetryMsgRateLimit", "Telemetry messages of the tenant"),
  rates("transportTenantTelemetryDataPointsRateLimit", "Data points of the tenant"),
  rates("transportDeviceMsgRateLimit", "Messages of a device"),
  rates("transportDeviceTelemetryMsgRateLimit", "Telemetry messages of a device"),
  rates("transportDeviceTelemetryDataPointsRateLimit", "Data points of a device"),
  rates("transportGatewayMsgRateLimit", "Messages of a gateway"),
  rates("transportGatewayTelemetryMsgRateLimit", "Telemetry messages of a gateway"),
  rates("transportGatewayTelemetryDataPointsRateLimit", "Data points of a gateway"),
  rates("transportGatewayDeviceMsgRateLimit", "Messages of a device behind a gateway"),
  rates("transportGatewayDeviceTelemetryMsgRateLimit", "Telemetry messages of a device behind a gateway"),
  rates("transportGatewayDeviceTelemetryDataPointsRateLimit", "Data points of a device behind a gateway"),
  rates("tenantServerRestLimitsConfiguration", "REST requests of the tenant"),
  rates("customerServerRestLimitsConfiguration", "REST requests of a customer"),
  rates("wsUpdatesPerSessionRateLimit", "Updates of a WebSocket session"),
  rates("tenantEntityExportRateLimit", "Exports of entities"),
  rates("tenantEntityImportRateLimit", "Imports of entities"),
  heading("WebSocket"),
  number("maxWsSessionsPerTenant", "Sessions of the tenant"),
  number("maxWsSessionsPerCustomer", "Sessions of a customer"),
  number("maxWsSessionsPerRegularUser", "Sessions of a user"),
  number("maxWsSessionsPerPublicUser", "Sessions of a public user"),
  number("maxWsSubscriptionsPerTenant", "Subscriptions of the tenant"),
  number("maxWsSubscriptionsPerCustomer", "Subscriptions of a customer"),
  number("maxWsSubscriptionsPerRegularUser", "Subscriptions of a user"),
  number("maxWsSubscriptionsPerPublicUser", "Subscriptions of a public user"),
  number("wsMsgQueueLimitPerSession", "Waiting messages of a session"),
  heading("Rules and calculated fields"),
  number("maxRuleNodeExecutionsPerMessage", "Rule nodes that a message may pass"),
  number("maxDebugModeDurationMinutes", "Minutes of full debugging"),
  { ...number("maxCalculatedFieldsPerEntity", "Calculated fields of an entity"), initial: 5 },
  { ...number("maxArgumentsPerCF", "Arguments of a calculated field"), initial: 10 },
  { ...number("maxDataPointsPerRollingArg", "Points in a window"), initial: 1000 },
  { ...number("maxRelationLevelPerCfArgument", "Levels of relations"), initial: 2 },
  { ...number("maxRelatedEntitiesToReturnPerCfArgument", "Related entities"), initial: 100 },
  { ...number("maxStateSizeInKBytes", "State of a field, KiB"), initial: 32 },
  { ...number("maxSingleValueArgumentSizeInKBytes", "A single value, KiB"), initial: 2 },
  { ...number("minAllowedScheduledUpdateIntervalInSecForCF", "Shortest interval of updates, s"), initial: 10 },
  { ...number("minAllowedDeduplicationIntervalInSecForCF", "Shortest interval of deduplication, s"), initial: 10 },
  { ...number("minAllowedAggregationIntervalInSecForCF", "Shortest interval of aggregation, s"), initial: 60 },
];
