// Forms of device profiles and asset profiles.

import { valueAt, type FormField, type FormValues } from "@/ui/form/values";
import { PROFILE_ALARMS, storedAlarms } from "./profileAlarms";

const TRANSPORT = "profileData.transportConfiguration";
const PAYLOAD = `${TRANSPORT}.transportPayloadTypeConfiguration`;
const COAP = `${TRANSPORT}.coapDeviceTypeConfiguration`;

const is = (path: string, ...wanted: unknown[]) => (values: FormValues): boolean => wanted.includes(valueAt(values, path));
const both = (...tests: ((values: FormValues) => boolean)[]) => (values: FormValues): boolean => tests.every((one) => one(values));

const isMqtt = is("transportType", "MQTT");
const isCoap = is("transportType", "COAP");
const isProtobuf = both(isMqtt, is(`${PAYLOAD}.transportPayloadType`, "PROTOBUF"));
const isCoapProtobuf = both(isCoap, is(`${COAP}.transportPayloadTypeConfiguration.transportPayloadType`, "PROTOBUF"));

function schemas(path: string, when: (values: FormValues) => boolean): FormField[] {
  return [
    { name: `${path}.deviceTelemetryProtoSchema`, label: "Protobuf schema of telemetry", type: "code", when },
    { name: `${path}.deviceAttributesProtoSchema`, label: "Protobuf schema of attributes", type: "code", when },
    { name: `${path}.deviceRpcRequestProtoSchema`, label: "Protobuf schema of RPC requests", type: "code", when },
    { name: `${path}.deviceRpcResponseProtoSchema`, label: "Protobuf schema of RPC answers", type: "code", when },
  ];
}

const COMMON: FormField[] = [
  { name: "name", label: "Name", required: true },
  { name: "description", label: "Description", type: "long" },
  { name: "defaultRuleChainId", label: "Rule chain", type: "entity", list: "/api/ruleChains?type=CORE" },
  { name: "defaultQueueName", label: "Queue", type: "entity", list: "/api/queues?serviceType=TB_RULE_ENGINE", pick: "name" },
  { name: "defaultDashboardId", label: "Dashboard", type: "entity", list: "/api/tenant/dashboards" },
];

export const ASSET_PROFILE_FORM: FormField[] = COMMON;

export const DEVICE_PROFILE_FORM: FormField[] = [
  ...COMMON,
  { name: "firmwareId", label: "Firmware", type: "entity", list: "/api/otaPackages/{id.id}/FIRMWARE", when: (values) => values["id"] !== undefined },
  { name: "softwareId", label: "Software", type: "entity", list: "/api/otaPackages/{id.id}/SOFTWARE", when: (values) => values["id"] !== undefined },
  { name: "type", label: "Kind", type: "select", options: ["DEFAULT"], initial: "DEFAULT", when: () => false },
  { name: "profileData.configuration.type", label: "Kind", initial: "DEFAULT", when: () => false },
  { name: "", label: "Transport", type: "heading" },
  { name: "transportType", label: "Transport", type: "select", options: ["DEFAULT", { value: "MQTT", label: "MQTT" }, { value: "COAP", label: "CoAP" }], required: true, initial: "DEFAULT" },
  { name: `${TRANSPORT}.deviceTelemetryTopic`, label: "Topic of telemetry", help: "v1/devices/me/telemetry when empty", when: isMqtt },
  { name: `${TRANSPORT}.deviceAttributesTopic`, label: "Topic of attributes", help: "v1/devices/me/attributes when empty", when: isMqtt },
  { name: `${TRANSPORT}.deviceAttributesSubscribeTopic`, label: "Topic to subscribe attributes", when: isMqtt },
  { name: `${PAYLOAD}.transportPayloadType`, label: "Payload", type: "select", options: [{ value: "JSON", label: "JSON" }, { value: "PROTOBUF", label: "Protobuf" }], initial: "JSON", when: isMqtt },
  ...schemas(PAYLOAD, isProtobuf),
  { name: `${PAYLOAD}.enableCompatibilityWithJsonPayloadFormat`, label: "Payloads in JSON are understood, too", type: "boolean", when: isProtobuf },
  { name: `${PAYLOAD}.useJsonPayloadFormatForDefaultDownlinkTopics`, label: "JSON on the usual topics towards devices", type: "boolean", when: isProtobuf },
  { name: `${TRANSPORT}.sendAckOnValidationException`, label: "Wrong payloads are acknowledged", type: "boolean", when: isMqtt },
  { name: `${COAP}.coapDeviceType`, label: "CoAP devices", type: "select", options: ["DEFAULT"], initial: "DEFAULT", when: isCoap },
  {
    name: `${COAP}.transportPayloadTypeConfiguration.transportPayloadType`, label: "Payload", type: "select",
    options: [{ value: "JSON", label: "JSON" }, { value: "PROTOBUF", label: "Protobuf" }], initial: "JSON", when: isCoap,
  },
  ...schemas(`${COAP}.transportPayloadTypeConfiguration`, isCoapProtobuf),
  { name: `${TRANSPORT}.clientSettings.powerMode`, label: "Saving of power", type: "select", options: [{ value: "PSM", label: "PSM" }, { value: "E_DRX", label: "eDRX" }, { value: "DRX", label: "None" }], when: isCoap },
  { name: `${TRANSPORT}.clientSettings.psmActivityTimer`, label: "Time of activity, ms", type: "number", when: both(isCoap, is(`${TRANSPORT}.clientSettings.powerMode`, "PSM")) },
  { name: `${TRANSPORT}.clientSettings.pagingTransmissionWindow`, label: "Window of paging, ms", type: "number", when: both(isCoap, is(`${TRANSPORT}.clientSettings.powerMode`, "E_DRX")) },
  { name: "", label: "Alarms", type: "heading" },
  PROFILE_ALARMS,
  { name: "", label: "Provisioning", type: "heading" },
  {
    name: "provisionType", label: "Devices provision themselves", type: "select", required: true, initial: "DISABLED",
    options: [
      { value: "DISABLED", label: "No" },
      { value: "ALLOW_CREATE_NEW_DEVICES", label: "Yes, new ones too" },
      { value: "CHECK_PRE_PROVISIONED_DEVICES", label: "Those that were created before" },
      { value: "X509_CERTIFICATE_CHAIN", label: "By the chain of their certificate" },
    ],
  },
  {
    name: "provisionDeviceKey", label: "Provisioning key", help: "Made by the server when empty",
    when: is("provisionType", "ALLOW_CREATE_NEW_DEVICES", "CHECK_PRE_PROVISIONED_DEVICES"),
  },
  {
    name: "profileData.provisionConfiguration.provisionDeviceSecret", label: "Provisioning secret", secret: true, help: "Made by the server when empty",
    when: is("provisionType", "ALLOW_CREATE_NEW_DEVICES", "CHECK_PRE_PROVISIONED_DEVICES"),
  },
  { name: "profileData.provisionConfiguration.provisionDeviceSecret", label: "Certificate of the authority (PEM)", type: "code", when: is("provisionType", "X509_CERTIFICATE_CHAIN") },
  { name: "profileData.provisionConfiguration.certificateRegExPattern", label: "Pattern that finds the name in the common name", help: "For example (.*)\\.company\\.com", when: is("provisionType", "X509_CERTIFICATE_CHAIN") },
  { name: "profileData.provisionConfiguration.allowCreateNewDevicesByX509Certificate", label: "New devices are created", type: "boolean", when: is("provisionType", "X509_CERTIFICATE_CHAIN") },
];

/** Makes the parts of a device profile agree that are stored twice. */
export function completeDeviceProfile(values: FormValues): FormValues {
  const data = (values["profileData"] ?? {}) as FormValues;
  const transport = (data["transportConfiguration"] ?? {}) as FormValues;
  const provision = (data["provisionConfiguration"] ?? {}) as FormValues;
  return {
    ...values,
    profileData: {
      ...data,
      ...("alarms" in data ? { alarms: storedAlarms(data["alarms"]) } : {}),
      transportConfiguration: { ...transport, type: values["transportType"] ?? "DEFAULT" },
      provisionConfiguration: { ...provision, type: values["provisionType"] ?? "DISABLED" },
    },
  };
}
