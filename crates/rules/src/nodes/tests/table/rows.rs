//! What is expected of each type.

use serde_json::{Value, json};

use crate::nodes::filter::types::{ENTITY_LABELS, MSG_LABELS};

const SUCCESS: &[&str] = &["Success", "Failure"];
const TRUE: &[&str] = &["True", "False", "Failure"];
const UUID: &str = "2f9b6cc6-3b65-4d1b-a2a1-3c0f5f6d7e80";

/// What is expected of a type.
pub(super) struct Row {
    pub(super) class: &'static str,
    pub(super) relations: &'static [&'static str],
    /// The field that a person has to fill in first, and all of those that have to be.
    pub(super) lacks: Option<(&'static str, Value)>,
    /// Fields with a value that must be refused; the error begins with the name.
    pub(super) wrong: Vec<(&'static str, Value)>,
    /// Fields of the default configuration that nothing here reads.
    pub(super) unread: &'static [&'static str],
}

impl Row {
    fn lacks(mut self, field: &'static str, filled: Value) -> Self {
        self.lacks = Some((field, filled));
        self
    }

    const fn unread(mut self, fields: &'static [&'static str]) -> Self {
        self.unread = fields;
        self
    }

    /// A wrong value where other fields have these values.
    fn wrong(mut self, field: &'static str, patch: Value) -> Self {
        self.wrong.push((field, patch));
        self
    }
}

/// A type with one wrong value of one field.
fn row(class: &'static str, relations: &'static [&'static str], field: &'static str, value: Value) -> Row {
    plain(class, relations).wrong(field, json!({ field: value }))
}

/// A type whose configuration is empty.
const fn plain(class: &'static str, relations: &'static [&'static str]) -> Row {
    Row {
        class,
        relations,
        lacks: None,
        wrong: Vec::new(),
        unread: &[],
    }
}

fn filters() -> Vec<Row> {
    let default = &["default", "Failure"];
    vec![
        row("filter.TbJsFilterNode", TRUE, "tbelScript", json!("return (;"))
            .wrong("jsScript", json!({"scriptLang": "JS", "jsScript": " "})),
        row("filter.TbJsSwitchNode", &["Failure"], "scriptLang", json!("LUA")),
        row("filter.TbMsgTypeFilterNode", TRUE, "messageTypes", json!("ALARM")),
        plain("filter.TbMsgTypeSwitchNode", MSG_LABELS),
        row(
            "filter.TbOriginatorTypeFilterNode",
            TRUE,
            "originatorTypes",
            json!(["DEVISE"]),
        ),
        plain("filter.TbOriginatorTypeSwitchNode", ENTITY_LABELS),
        plain("filter.TbDeviceTypeSwitchNode", default),
        plain("filter.TbAssetTypeSwitchNode", default),
        row("filter.TbCheckMessageNode", TRUE, "messageNames", json!([1])),
        row("filter.TbCheckRelationNode", TRUE, "direction", json!("UP"))
            .lacks("entityType", json!({"entityType": "DEVICE", "entityId": UUID}))
            .wrong("entityId", json!({"entityId": "x"}))
            .wrong("entityType", json!({"entityType": "DEVISE"})),
        row(
            "filter.TbCheckAlarmStatusNode",
            TRUE,
            "alarmStatusList",
            json!(["HOT"]),
        ),
        row(
            "geo.TbGpsGeofencingFilterNode",
            TRUE,
            "perimeterType",
            json!("BOX"),
        )
        .wrong(
            "polygonsDefinition",
            json!({"fetchPerimeterInfoFromMessageMetadata": false, "polygonsDefinition": "[[1]]"}),
        ),
    ]
}

fn enrichment() -> Vec<Row> {
    let query = json!({"direction": "FROM", "deviceTypes": "default"});
    vec![
        row("metadata.TbGetAttributesNode", SUCCESS, "fetchTo", json!("BODY")),
        plain("metadata.TbGetDeviceAttrNode", SUCCESS)
            .wrong(
                "deviceRelationsQuery.deviceTypes",
                json!({ "deviceRelationsQuery": query }),
            )
            .wrong(
                "deviceRelationsQuery.direction",
                json!({"deviceRelationsQuery": {}}),
            ),
        row(
            "metadata.TbGetCustomerAttributeNode",
            SUCCESS,
            "dataToFetch",
            json!("FIELDS"),
        ),
        row(
            "metadata.TbGetTenantAttributeNode",
            SUCCESS,
            "dataMapping",
            json!({}),
        ),
        plain("metadata.TbGetRelatedAttributeNode", SUCCESS)
            .wrong("dataMapping.a", json!({"dataMapping": {"a": 5}})),
        row(
            "metadata.TbGetCustomerDetailsNode",
            SUCCESS,
            "detailsList",
            json!(["SHOE_SIZE"]),
        )
        .lacks("detailsList", json!({"detailsList": ["TITLE"]})),
        row(
            "metadata.TbGetTenantDetailsNode",
            SUCCESS,
            "fetchTo",
            json!("BODY"),
        )
        .lacks("detailsList", json!({"detailsList": ["TITLE"]})),
        row(
            "metadata.TbGetOriginatorFieldsNode",
            SUCCESS,
            "fetchTo",
            json!("BODY"),
        ),
        row(
            "metadata.TbGetTelemetryNode",
            SUCCESS,
            "startIntervalTimeUnit",
            json!("FORTNIGHTS"),
        )
        .lacks(
            "latestTsKeyNames",
            json!({"latestTsKeyNames": ["t"], "fetchMode": "ALL"}),
        )
        .wrong("limit", json!({"limit": 1}))
        .wrong("aggregation", json!({"aggregation": "MEDIAN"})),
        row(
            "metadata.TbFetchDeviceCredentialsNode",
            SUCCESS,
            "fetchTo",
            json!("BODY"),
        ),
        row(
            "metadata.CalculateDeltaNode",
            &["Success", "Failure", "Other"],
            "inputValueKey",
            json!(" "),
        )
        .wrong("round", json!({"round": 301}))
        .wrong(
            "periodValueKey",
            json!({"addPeriodBetweenMsgs": true, "periodValueKey": ""}),
        ),
    ]
}

fn transformation() -> Vec<Row> {
    vec![
        row(
            "transform.TbTransformMsgNode",
            SUCCESS,
            "tbelScript",
            json!("return {"),
        ),
        row(
            "transform.TbChangeOriginatorNode",
            SUCCESS,
            "originatorSource",
            json!("NEIGHBOUR"),
        )
        .wrong(
            "entityType",
            json!({"originatorSource": "ENTITY", "entityType": "ALARM"}),
        )
        .wrong(
            "entityNamePattern",
            json!({"originatorSource": "ENTITY", "entityType": "DEVICE"}),
        ),
        row("transform.TbCopyKeysNode", SUCCESS, "copyFrom", json!("BODY")),
        row("transform.TbDeleteKeysNode", SUCCESS, "keys", json!(["("])),
        row(
            "transform.TbRenameKeysNode",
            SUCCESS,
            "renameKeysMapping",
            json!({}),
        ),
        row("transform.TbJsonPathNode", SUCCESS, "jsonPath", json!("$[")),
        plain("transform.TbSplitArrayMsgNode", SUCCESS),
        row(
            "deduplication.TbMsgDeduplicationNode",
            SUCCESS,
            "interval",
            json!(0),
        )
        .wrong("outMsgType", json!({"strategy": "ALL"}))
        .wrong("maxPendingMsgs", json!({"maxPendingMsgs": 0}))
        .wrong("maxRetries", json!({"maxRetries": 101})),
        row("mail.TbMsgToEmailNode", SUCCESS, "toTemplate", json!(["a@b.c"])),
    ]
}

fn action() -> Vec<Row> {
    let deduplicate = |seconds: i64| json!({"type": "DEDUPLICATE", "deduplicationIntervalSecs": seconds});
    let advanced = |what: &str| json!({"type": "ADVANCED", what: {"type": "SKIP"}});
    vec![
        row(
            "telemetry.TbMsgTimeseriesNode",
            SUCCESS,
            "defaultTTL",
            json!("soon"),
        )
        .wrong(
            "processingSettings",
            json!({"processingSettings": {"type": "SOMETIMES"}}),
        )
        .wrong(
            "processingSettings.latest",
            json!({"processingSettings": advanced("timeseries")}),
        )
        .wrong(
            "processingSettings.deduplicationIntervalSecs",
            json!({"processingSettings": deduplicate(0)}),
        ),
        row(
            "telemetry.TbMsgAttributesNode",
            SUCCESS,
            "scope",
            json!("MY_SCOPE"),
        )
        .wrong(
            "processingSettings.webSockets",
            json!({"processingSettings": advanced("attributes")}),
        ),
        row(
            "telemetry.TbMsgDeleteAttributesNode",
            SUCCESS,
            "scope",
            json!("MY_SCOPE"),
        ),
        plain("telemetry.TbCalculatedFieldsNode", SUCCESS),
        row(
            "action.TbCreateAlarmNode",
            &["Created", "Updated", "False", "Failure"],
            "severity",
            json!("HOT"),
        )
        .wrong(
            "alarmDetailsBuildTbel",
            json!({"alarmDetailsBuildTbel": "return ("}),
        ),
        row(
            "action.TbClearAlarmNode",
            &["Cleared", "False", "Failure"],
            "alarmDetailsBuildTbel",
            json!(""),
        ),
        row("action.TbLogNode", SUCCESS, "tbelScript", json!(" ")),
        row("action.TbMsgCountNode", SUCCESS, "interval", json!(0)),
        row(
            "action.TbDeviceStateNode",
            &["Success", "Failure", "Rate limited"],
            "event",
            json!("ALARM"),
        ),
        row("rpc.TbSendRPCRequestNode", SUCCESS, "timeoutInSeconds", json!(-1)),
        row(
            "rpc.TbSendRPCReplyNode",
            SUCCESS,
            "sessionIdMetaDataAttribute",
            json!(5),
        ),
        row(
            "rest.TbSendRestApiCallReplyNode",
            SUCCESS,
            "requestIdMetaDataAttribute",
            json!(5),
        ),
        row("delay.TbMsgDelayNode", SUCCESS, "periodInSeconds", json!(-1)),
        row(
            "action.TbAssignToCustomerNode",
            SUCCESS,
            "customerNamePattern",
            json!({}),
        ),
        row(
            "action.TbUnassignFromCustomerNode",
            SUCCESS,
            "customerNamePattern",
            json!({}),
        ),
        row("debug.TbMsgGeneratorNode", SUCCESS, "periodInSeconds", json!(0))
            .wrong("msgCount", json!({"msgCount": -1}))
            .wrong("originatorType", json!({"originatorType": "MOON"}))
            .wrong("originatorId", json!({"originatorType": "DEVICE"})),
        row(
            "geo.TbGpsGeofencingActionNode",
            &["Success", "Entered", "Left", "Inside", "Outside", "Failure"],
            "minInsideDurationTimeUnit",
            json!("WEEKS"),
        )
        .wrong("minOutsideDuration", json!({"minOutsideDuration": -1})),
        row("action.TbCreateRelationNode", SUCCESS, "direction", json!("UP"))
            .lacks("entityType", json!({"entityType": "DEVICE"}))
            .wrong("entityType", json!({"entityType": "ALARM"})),
        row("action.TbDeleteRelationNode", SUCCESS, "direction", json!("UP"))
            .wrong("entityType", json!({"deleteForSingleEntity": true})),
        plain("action.TbCopyAttributesToEntityViewNode", SUCCESS),
        row("math.TbMathNode", SUCCESS, "operation", json!("ROOT"))
            .wrong("customFunction", json!({"customFunction": "x +"}))
            .wrong(
                "customFunction",
                json!({"customFunction": "1 + ".repeat(64) + "1"}),
            )
            .wrong(
                "arguments",
                json!({"arguments": vec![json!({"name": "x", "type": "MESSAGE_BODY", "key": "k"}); 17]}),
            )
            .wrong("result.type", json!({"result": {"type": "CONSTANT", "key": "k"}}))
            .wrong(
                "arguments[0].key",
                json!({"arguments": [{"type": "CONSTANT", "key": "five"}]}),
            ),
        row("edge.TbMsgPushToEdgeNode", SUCCESS, "scope", json!("MY_SCOPE")),
        row("edge.TbMsgPushToCloudNode", SUCCESS, "scope", json!("MY_SCOPE")),
        // There is no way to fill it in: there is no Cassandra.
        plain("action.TbSaveToCustomCassandraTableNode", SUCCESS)
            .lacks("tableName", Value::Null)
            .wrong("tableName", json!({"tableName": "cs_tb_t"})),
        row(
            "profile.TbDeviceProfileNode",
            &[
                "Alarm Created",
                "Alarm Updated",
                "Alarm Severity Updated",
                "Alarm Cleared",
                "Success",
                "Failure",
            ],
            "persistAlarmRulesState",
            json!(5),
        ),
        plain("transaction.TbSynchronizationBeginNode", SUCCESS),
        plain("transaction.TbSynchronizationEndNode", SUCCESS),
    ]
}

fn external() -> Vec<Row> {
    let key = json!({"accessKeyId": "a", "secretAccessKey": "s"});
    let lambda = json!({"accessKey": "a", "secretKey": "s", "functionName": "f"});
    let azure = json!({"clientId": "d", "credentials": {"type": "sas", "sasKey": "a2V5"}});
    let file = fieldline_testkit::fakes::google::key_file("http://localhost");
    vec![
        row("rest.TbRestApiCallNode", SUCCESS, "requestMethod", json!("FETCH"))
            .wrong(
                "maxInMemoryBufferSizeInKb",
                json!({"maxInMemoryBufferSizeInKb": 30_000}),
            )
            .wrong("proxyPort", json!({"enableProxy": true, "proxyHost": "h"})),
        row("mqtt.TbMqttNode", SUCCESS, "port", json!(70_000))
            .lacks("host", json!({"host": "h"}))
            .wrong("protocolVersion", json!({"protocolVersion": "MQTT_6"}))
            .wrong("credentials", json!({"credentials": {"type": "dance"}})),
        row("mqtt.azure.TbAzureIotHubNode", SUCCESS, "host", json!(""))
            .lacks("clientId", azure)
            .wrong(
                "credentials.sasKey",
                json!({"credentials": {"type": "sas", "sasKey": "?"}}),
            )
            .unread(&["port", "cleanSession", "ssl"]),
        row("kafka.TbKafkaNode", SUCCESS, "acks", json!("5"))
            .wrong("bootstrapServers", json!({"bootstrapServers": ""})),
        row("rabbitmq.TbRabbitMqNode", SUCCESS, "port", json!(0))
            .lacks("host", json!({"host": "h"}))
            .wrong("messageProperties", json!({"messageProperties": "FAST"})),
        row("aws.sqs.TbSqsNode", SUCCESS, "queueType", json!("LIFO"))
            .lacks("accessKeyId", key.clone())
            .wrong("delaySeconds", json!({"delaySeconds": 901})),
        row("aws.sns.TbSnsNode", SUCCESS, "region", json!("no where")).lacks("accessKeyId", key),
        row(
            "aws.lambda.TbAwsLambdaNode",
            SUCCESS,
            "requestTimeout",
            json!("soon"),
        )
        .lacks("functionName", lambda),
        row("gcp.pubsub.TbPubSubNode", SUCCESS, "projectId", json!(""))
            .lacks("serviceAccountKey", json!({ "serviceAccountKey": file }))
            .wrong("serviceAccountKey", json!({"serviceAccountKey": "{}"})),
        row("mail.TbSendEmailNode", SUCCESS, "timeout", json!("soon")).wrong(
            "smtpHost",
            json!({"useSystemSmtpSettings": false, "smtpHost": ""}),
        ),
        row("sms.TbSendSmsNode", SUCCESS, "numbersToTemplate", json!(""))
            .wrong("smsProviderConfiguration", json!({"useSystemSmsSettings": false})),
        row(
            "notification.TbSlackNode",
            SUCCESS,
            "conversationType",
            json!("SHOUT"),
        )
        .lacks("conversation.id", json!({"conversation": {"id": "C1"}})),
        row(
            "notification.TbNotificationNode",
            SUCCESS,
            "targets",
            json!(["x"]),
        )
        .lacks("targets", json!({"targets": [UUID], "templateId": {"id": UUID}}))
        .wrong("templateId", json!({"targets": [UUID], "templateId": null})),
        row("ai.TbAiNode", SUCCESS, "timeoutSeconds", json!(601))
            .lacks("modelId", json!({"modelId": UUID, "userPrompt": "?"}))
            .wrong("userPrompt", json!({"userPrompt": " "})),
    ]
}

fn flow() -> Vec<Row> {
    vec![
        row(
            "flow.TbRuleChainInputNode",
            &["Failure"],
            "ruleChainId",
            json!("x"),
        )
        .lacks("ruleChainId", json!({"ruleChainId": UUID})),
        plain("flow.TbRuleChainOutputNode", SUCCESS),
        plain("flow.TbAckNode", SUCCESS),
        plain("flow.TbCheckpointNode", SUCCESS),
    ]
}

/// All rows.
pub(super) fn rows() -> Vec<Row> {
    [
        filters(),
        enrichment(),
        transformation(),
        action(),
        external(),
        flow(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
