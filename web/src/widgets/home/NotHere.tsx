// Widgets of things that this product doesn't have: what they are of, and what to use instead.

import type { ReactElement } from "react";
import { t } from "@/i18n";
import { EmptyState, TextLink } from "@/ui/feedback";
import type { WidgetProps } from "../registry";

const REASONS: readonly { names: RegExp; hint: string; path?: string }[] = [
  { names: /unread_notifications/, hint: "There is no notification centre yet. Alarms are on their own screen.", path: "/alarms/alarms" },
  { names: /edge/, hint: "There are no edges here: devices and gateways connect directly.", path: "/entities/devices" },
  { names: /mobile_app_qr_code/, hint: "There is no mobile app: the pages themselves work on phones." },
  { names: /iot_hub/, hint: "ThingsBoard's catalogue of solutions is not part of this product." },
];

export default function NotHere({ widget }: WidgetProps): ReactElement {
  const reason = REASONS.find(({ names }) => names.test(widget.fqn));
  return (
    <EmptyState>
      {t(reason?.hint ?? "")} {reason?.path !== undefined && <TextLink to={reason.path}>{t("Go there")}</TextLink>}
    </EmptyState>
  );
}
