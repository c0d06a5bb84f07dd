// Tries a calculated field or alarm rule, as its form has it, on stored telemetry, before it goes live.

import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { Replay } from "@/replay/Replay";
import { Problem, Waiting } from "@/ui/feedback";
import type { FormValues } from "@/ui/form/values";
import type { EntityKind } from "../kinds";
import { storedForm } from "../saving";
import { chainOf, devicesOf, firstKeys, seriesOf, targetOf } from "./replayed";

interface Props {
  kind: EntityKind;
  values: FormValues;
  onClose: () => void;
}

export default function FieldReplay({ kind, values, onClose }: Props): ReactElement {
  const target = targetOf(values);
  const chain = useQuery({ queryKey: ["chain of target", target], queryFn: async () => (await chainOf(target)) ?? null });
  const isRule = kind.type === "ALARM_RULE";
  const name = typeof values["name"] === "string" ? values["name"] : "";
  const isSmall = useMediaQuery("(max-width: 48em)") ?? false;
  const about = isRule
    ? t("Tries the alarm rule, as it stands in the form, on stored telemetry. Nothing is stored, nobody is told, and nothing leaves the platform.")
    : t("Tries the calculated field, as it stands in the form, on stored telemetry. Nothing is stored, and nothing leaves the platform.");
  const devicesAlone = target !== undefined && !target.entityType.startsWith("DEVICE") ? ` ${t("Only what devices have sent is replayed: something of an asset or customer is evaluated where the rule chain or a calculated field writes there.")}` : "";
  return (
    <Modal opened onClose={onClose} size="90rem" fullScreen={isSmall} title={t("Replay: {name}", { name: name === "" ? t(kind.singular) : name })} closeButtonProps={{ "aria-label": t("Close") }}>
      {chain.isPending && <Waiting />}
      {chain.isError && <Problem error={chain.error} />}
      {chain.isSuccess && (
        <Replay
          about={about + devicesAlone}
          known={{ ...devicesOf(target), keys: firstKeys(kind.type, values), ...(chain.data === null ? {} : { ruleChainId: chain.data }) }}
          tried={() => ({ calculatedFields: [storedForm(kind, values)] })}
          needed={seriesOf(values)}
          blocked={target === undefined ? t("Choose first whom it is for.") : undefined}
          {...(isRule ? { alarmType: name } : {})}
        />
      )}
    </Modal>
  );
}
