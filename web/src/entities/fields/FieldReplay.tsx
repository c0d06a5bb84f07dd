// Tries a calculated field, an alarm rule, or the alarm rules of a device profile, as their form has them, on stored telemetry, before they go live.

import { Alert, Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { draftWithProfileNode } from "@/replay/profileNode";
import { Replay } from "@/replay/Replay";
import type { Tried } from "@/replay/request";
import { Problem, Waiting } from "@/ui/feedback";
import { AS_OPENED } from "@/ui/FieldsForm";
import { valueAt, type FormValues } from "@/ui/form/values";
import { ALARMS, seriesOfAlarms } from "../forms/profileAlarms";
import type { EntityKind } from "../kinds";
import { storedForm } from "../saving";
import { chainNamedIn, chainOf, devicesOf, firstKeys, profileOf, seriesOf, targetOf } from "./replayed";

interface Props {
  kind: EntityKind;
  values: FormValues;
  onClose: () => void;
}

const ABOUT: Record<string, string> = {
  ALARM_RULE: "Tries the alarm rule, as it stands in the form, on stored telemetry. Nothing is stored, nobody is told, and nothing leaves the platform.",
  CALCULATED_FIELD: "Tries the calculated field, as it stands in the form, on stored telemetry. Nothing is stored, and nothing leaves the platform.",
  DEVICE_PROFILE: "Tries the alarm rules of the profile, as they stand in the form, on stored telemetry of the chosen devices. Nothing is stored, nobody is told, and nothing leaves the platform.",
};

export default function FieldReplay({ kind, values, onClose }: Props): ReactElement {
  const isProfile = kind.type === "DEVICE_PROFILE";
  const target = isProfile ? profileOf(values) : targetOf(values);
  const chain = useQuery({
    queryKey: ["chain of target", target, values["defaultRuleChainId"]],
    ...AS_OPENED,
    refetchOnReconnect: false,
    queryFn: async () => (await (isProfile ? chainNamedIn(values) : chainOf(target))) ?? null,
  });
  const [hasNode, setHasNode] = useState(true);
  const name = typeof values["name"] === "string" ? values["name"] : "";
  const isSmall = useMediaQuery("(max-width: 48em)") ?? false;
  const devicesAlone = target !== undefined && !target.entityType.startsWith("DEVICE") ? ` ${t("Only what devices have sent is replayed: something of an asset or customer is evaluated where the rule chain or a calculated field writes there.")}` : "";
  const tried = async (entered: string): Promise<Tried> => {
    if (!isProfile) {
      return { calculatedFields: [storedForm(kind, values)] };
    }
    const own = valueAt(values, "defaultRuleChainId.id");
    const draft = await draftWithProfileNode(entered, typeof own === "string" ? own : undefined);
    setHasNode(draft === undefined);
    return { alarmRules: valueAt(storedForm(kind, values), ALARMS), ...(draft === undefined ? {} : { metadata: draft }) };
  };
  return (
    <Modal opened onClose={onClose} size="90rem" fullScreen={isSmall} title={t("Replay: {name}", { name: name === "" ? t(kind.singular) : name })} closeButtonProps={{ "aria-label": t("Close") }}>
      {chain.isPending && <Waiting />}
      {chain.isError && <Problem error={chain.error} />}
      {!hasNode && (
        <Alert color="yellow" mb="sm" role="status">
          {t("The rule chain has no node “device profile”, which evaluates such rules. The replay has one before the first node; without one in the chain they do nothing.")}
        </Alert>
      )}
      {chain.data !== undefined && (
        <Replay
          about={t(ABOUT[kind.type] ?? "") + devicesAlone}
          known={{ ...devicesOf(target), keys: isProfile ? [] : firstKeys(kind.type, values), ...(chain.data === null ? {} : { ruleChainId: chain.data }) }}
          tried={tried}
          needed={isProfile ? seriesOfAlarms(valueAt(values, ALARMS)) : seriesOf(values)}
          blocked={target === undefined && !isProfile ? t("Choose first whom it is for.") : undefined}
          {...(kind.type === "ALARM_RULE" ? { alarmType: name } : {})}
        />
      )}
    </Modal>
  );
}
