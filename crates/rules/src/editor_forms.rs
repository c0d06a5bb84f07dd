//! How ThingsBoard's own editor shows each node type: the form that it opens, the symbol, and the page of help.
//!
//! The forms are components of that editor, so only their names are here. A type without a name would get a
//! field of raw JSON there, and no way to try its script out.

/// What the editor shows of a node type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditorForm {
    /// Class without its prefix, such as `filter.TbJsFilterNode`.
    pub class: &'static str,
    /// Component of the editor that holds the form.
    pub directive: &'static str,
    /// Name of a Material symbol; where it is empty the editor shows the symbol of the category.
    pub icon: &'static str,
    /// Page about it below [`GUIDE`]; empty where there is none.
    page: &'static str,
}

/// Where the pages about nodes are.
const GUIDE: &str = "https://thingsboard.io/docs/user-guide/rule-engine-2-0/nodes/";
/// Where the pages of newer nodes are.
const REFERENCE: &str = "https://thingsboard.io/docs/";

impl EditorForm {
    /// Address of the page about it, or an empty text.
    pub fn doc_url(&self) -> String {
        let base = if self.page.starts_with("reference/") {
            REFERENCE
        } else {
            GUIDE
        };
        match self.page {
            "" => String::new(),
            page => format!("{base}{page}/"),
        }
    }
}

/// What the editor shows of the node type of a class without its prefix.
pub fn find(class: &str) -> Option<&'static EditorForm> {
    FORMS.iter().find(|form| form.class == class)
}

/// One line a node type, which the formatter would spread over six.
macro_rules! forms {
    ($($class:literal $directive:literal $icon:literal $page:literal;)*) => {
        &[$(EditorForm { class: $class, directive: $directive, icon: $icon, page: $page }),*]
    };
}

/// Class, form, symbol and page of each node type.
const FORMS: &[EditorForm] = forms! {
    "action.TbAssignToCustomerNode" "tbActionNodeAssignToCustomerConfig" "add_circle" "action/assign-to-customer";
    "action.TbClearAlarmNode" "tbActionNodeClearAlarmConfig" "notifications_off" "action/clear-alarm";
    "action.TbCopyAttributesToEntityViewNode" "tbNodeEmptyConfig" "content_copy" "action/copy-to-view";
    "action.TbCreateAlarmNode" "tbActionNodeCreateAlarmConfig" "notifications_active" "action/create-alarm";
    "action.TbCreateRelationNode" "tbActionNodeCreateRelationConfig" "add_circle" "action/create-relation";
    "action.TbDeleteRelationNode" "tbActionNodeDeleteRelationConfig" "remove_circle" "action/delete-relation";
    "action.TbDeviceStateNode" "tbActionNodeDeviceStateConfig" "" "action/device-state";
    "action.TbLogNode" "tbActionNodeLogConfig" "menu" "action/log";
    "action.TbMsgCountNode" "tbActionNodeMsgCountConfig" "functions" "action/message-count";
    "action.TbSaveToCustomCassandraTableNode" "tbActionNodeCustomTableConfig" "file_upload" "action/save-to-custom-table";
    "action.TbUnassignFromCustomerNode" "tbActionNodeUnAssignToCustomerConfig" "remove_circle" "action/unassign-from-customer";
    "ai.TbAiNode" "tbExternalNodeAiConfig" "" "reference/rule-engine/nodes/external/ai-request";
    "aws.lambda.TbAwsLambdaNode" "tbExternalNodeLambdaConfig" "" "external/aws-lambda";
    "aws.sns.TbSnsNode" "tbExternalNodeSnsConfig" "" "external/aws-sns";
    "aws.sqs.TbSqsNode" "tbExternalNodeSqsConfig" "" "external/aws-sqs";
    "debug.TbMsgGeneratorNode" "tbActionNodeGeneratorConfig" "repeat" "action/generator";
    "deduplication.TbMsgDeduplicationNode" "tbTransformationNodeDeduplicationConfig" "content_copy" "transformation/deduplication";
    "delay.TbMsgDelayNode" "tbActionNodeMsgDelayConfig" "pause" "action/delay";
    "edge.TbMsgPushToCloudNode" "tbActionNodePushToCloudConfig" "cloud_upload" "action/push-to-cloud";
    "edge.TbMsgPushToEdgeNode" "tbActionNodePushToEdgeConfig" "cloud_download" "action/push-to-edge";
    "filter.TbAssetTypeSwitchNode" "tbNodeEmptyConfig" "" "filter/asset-profile-switch";
    "filter.TbCheckAlarmStatusNode" "tbFilterNodeCheckAlarmStatusConfig" "" "filter/alarm-status-filter";
    "filter.TbCheckMessageNode" "tbFilterNodeCheckMessageConfig" "" "filter/check-fields-presence";
    "filter.TbCheckRelationNode" "tbFilterNodeCheckRelationConfig" "" "filter/check-relation-presence";
    "filter.TbDeviceTypeSwitchNode" "tbNodeEmptyConfig" "" "filter/device-profile-switch";
    "filter.TbJsFilterNode" "tbFilterNodeScriptConfig" "" "filter/script";
    "filter.TbJsSwitchNode" "tbFilterNodeSwitchConfig" "" "filter/switch";
    "filter.TbMsgTypeFilterNode" "tbFilterNodeMessageTypeConfig" "" "filter/message-type-filter";
    "filter.TbMsgTypeSwitchNode" "tbNodeEmptyConfig" "" "filter/message-type-switch";
    "filter.TbOriginatorTypeFilterNode" "tbFilterNodeOriginatorTypeConfig" "" "filter/entity-type-filter";
    "filter.TbOriginatorTypeSwitchNode" "tbNodeEmptyConfig" "" "filter/entity-type-switch";
    "flow.TbAckNode" "tbNodeEmptyConfig" "" "flow/acknowledge";
    "flow.TbCheckpointNode" "tbNodeEmptyConfig" "" "flow/checkpoint";
    "flow.TbRuleChainInputNode" "tbFlowNodeRuleChainInputConfig" "" "flow/rule-chain";
    "flow.TbRuleChainOutputNode" "tbFlowNodeRuleChainOutputConfig" "" "flow/output";
    "gcp.pubsub.TbPubSubNode" "tbExternalNodePubSubConfig" "" "external/gcp-pubsub";
    "geo.TbGpsGeofencingActionNode" "tbActionNodeGpsGeofencingConfig" "" "action/gps-geofencing-events";
    "geo.TbGpsGeofencingFilterNode" "tbFilterNodeGpsGeofencingConfig" "" "filter/gps-geofencing-filter";
    "kafka.TbKafkaNode" "tbExternalNodeKafkaConfig" "" "external/kafka";
    "mail.TbMsgToEmailNode" "tbTransformationNodeToEmailConfig" "email" "transformation/to-email";
    "mail.TbSendEmailNode" "tbExternalNodeSendEmailConfig" "send" "external/send-email";
    "math.TbMathNode" "tbActionNodeMathFunctionConfig" "calculate" "action/math-function";
    "metadata.CalculateDeltaNode" "tbEnrichmentNodeCalculateDeltaConfig" "" "enrichment/calculate-delta";
    "metadata.TbFetchDeviceCredentialsNode" "tbEnrichmentNodeFetchDeviceCredentialsConfig" "" "enrichment/fetch-device-credentials";
    "metadata.TbGetAttributesNode" "tbEnrichmentNodeOriginatorAttributesConfig" "" "enrichment/originator-attributes";
    "metadata.TbGetCustomerAttributeNode" "tbEnrichmentNodeCustomerAttributesConfig" "" "enrichment/customer-attributes";
    "metadata.TbGetCustomerDetailsNode" "tbEnrichmentNodeEntityDetailsConfig" "" "enrichment/customer-details";
    "metadata.TbGetDeviceAttrNode" "tbEnrichmentNodeDeviceAttributesConfig" "" "enrichment/related-device-attributes";
    "metadata.TbGetOriginatorFieldsNode" "tbEnrichmentNodeOriginatorFieldsConfig" "" "enrichment/originator-fields";
    "metadata.TbGetRelatedAttributeNode" "tbEnrichmentNodeRelatedAttributesConfig" "" "enrichment/related-entity-data";
    "metadata.TbGetTelemetryNode" "tbEnrichmentNodeGetTelemetryFromDatabase" "" "enrichment/originator-telemetry";
    "metadata.TbGetTenantAttributeNode" "tbEnrichmentNodeTenantAttributesConfig" "" "enrichment/tenant-attributes";
    "metadata.TbGetTenantDetailsNode" "tbEnrichmentNodeEntityDetailsConfig" "" "enrichment/tenant-details";
    "mqtt.TbMqttNode" "tbExternalNodeMqttConfig" "call_split" "external/mqtt";
    "mqtt.azure.TbAzureIotHubNode" "tbExternalNodeAzureIotHubConfig" "" "external/azure-iot-hub";
    "notification.TbNotificationNode" "tbExternalNodeNotificationConfig" "notifications" "external/send-notification";
    "notification.TbSlackNode" "tbExternalNodeSlackConfig" "" "external/send-to-slack";
    "profile.TbDeviceProfileNode" "tbActionNodeDeviceProfileConfig" "" "action/device-profile";
    "rabbitmq.TbRabbitMqNode" "tbExternalNodeRabbitMqConfig" "" "external/rabbitmq";
    "rest.TbRestApiCallNode" "tbExternalNodeRestApiCallConfig" "" "external/rest-api-call";
    "rest.TbSendRestApiCallReplyNode" "tbActionNodeSendRestApiCallReplyConfig" "call_merge" "action/rest-call-reply";
    "rpc.TbSendRPCReplyNode" "tbActionNodeRpcReplyConfig" "call_merge" "action/rpc-call-reply";
    "rpc.TbSendRPCRequestNode" "tbActionNodeRpcRequestConfig" "call_made" "action/rpc-call-request";
    "sms.TbSendSmsNode" "tbExternalNodeSendSmsConfig" "sms" "external/send-sms";
    "telemetry.TbCalculatedFieldsNode" "tbNodeEmptyConfig" "published_with_changes" "action/calculated-fields";
    "telemetry.TbMsgAttributesNode" "tbActionNodeAttributesConfig" "file_upload" "action/save-attributes";
    "telemetry.TbMsgDeleteAttributesNode" "tbActionNodeDeleteAttributesConfig" "remove_circle" "action/delete-attributes";
    "telemetry.TbMsgTimeseriesNode" "tbActionNodeTimeseriesConfig" "file_upload" "action/save-timeseries";
    "transaction.TbSynchronizationBeginNode" "tbNodeEmptyConfig" "" "";
    "transaction.TbSynchronizationEndNode" "tbNodeEmptyConfig" "" "";
    "transform.TbChangeOriginatorNode" "tbTransformationNodeChangeOriginatorConfig" "find_replace" "transformation/change-originator";
    "transform.TbCopyKeysNode" "tbTransformationNodeCopyKeysConfig" "content_copy" "transformation/copy-key-value-pairs";
    "transform.TbDeleteKeysNode" "tbTransformationNodeDeleteKeysConfig" "remove_circle" "transformation/delete-key-value-pairs";
    "transform.TbJsonPathNode" "tbTransformationNodeJsonPathConfig" "functions" "transformation/json-path";
    "transform.TbRenameKeysNode" "tbTransformationNodeRenameKeysConfig" "find_replace" "transformation/rename-keys";
    "transform.TbSplitArrayMsgNode" "tbNodeEmptyConfig" "content_copy" "transformation/split-array-msg";
    "transform.TbTransformMsgNode" "tbTransformationNodeScriptConfig" "" "transformation/script";
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fieldline_core::ports::RuleNodeCatalog as _;

    use super::*;
    use crate::catalog::NodeTypeCatalog;
    use crate::node_types;

    #[test]
    fn each_node_type_has_a_form_and_no_other_has() {
        let types: BTreeSet<&str> = node_types::all().map(|node| node.class).collect();
        let forms: BTreeSet<&str> = FORMS.iter().map(|form| form.class).collect();
        assert_eq!(types, forms);
        assert_eq!(FORMS.len(), forms.len(), "a class has two forms");
    }

    #[test]
    fn descriptors_name_the_form_the_symbol_and_the_page() {
        let catalog = NodeTypeCatalog::new();
        let shown = |class: &str| {
            let class = format!("{}{class}", node_types::PREFIX);
            let descriptor = catalog.descriptors().iter().find(|it| it.class == class).unwrap();
            let node = &descriptor.configuration_descriptor.node_definition;
            (
                node.config_directive.clone(),
                node.icon.clone(),
                node.doc_url.clone(),
            )
        };
        let texts = |form: &str, icon: &str, page: String| (form.to_owned(), icon.to_owned(), page);
        assert_eq!(
            shown("action.TbClearAlarmNode"),
            texts(
                "tbActionNodeClearAlarmConfig",
                "notifications_off",
                format!("{GUIDE}action/clear-alarm/")
            )
        );
        assert_eq!(
            shown("ai.TbAiNode"),
            texts(
                "tbExternalNodeAiConfig",
                "",
                format!("{REFERENCE}reference/rule-engine/nodes/external/ai-request/")
            )
        );
        assert_eq!(
            shown("transaction.TbSynchronizationBeginNode"),
            texts("tbNodeEmptyConfig", "", String::new())
        );
    }
}
