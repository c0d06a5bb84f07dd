// What to do first, step by step.

import { List } from "@mantine/core";
import type { ReactElement } from "react";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { TextLink } from "@/ui/feedback";
import { screenFor } from "./destinations";
import classes from "./home.module.css";

const STEPS: Record<string, readonly { label: string; path: string }[]> = {
  SYS_ADMIN: [
    { label: "Set the public address and the outgoing mail", path: "/settings/general" },
    { label: "Make a profile with limits", path: "/tenantProfiles" },
    { label: "Add a tenant and its administrator", path: "/tenants" },
  ],
  TENANT_ADMIN: [
    { label: "Add a device and connect it with the command of its page", path: "/entities/devices" },
    { label: "Build a dashboard of its values", path: "/dashboards" },
    { label: "Make a rule that raises an alarm", path: "/alarms/alarm-rules" },
    { label: "Look at alarms as they come", path: "/alarms/alarms" },
    { label: "Add a customer and share the dashboard", path: "/customers" },
  ],
  CUSTOMER_USER: [
    { label: "Open a dashboard that is shared with you", path: "/dashboards" },
    { label: "Look at alarms as they come", path: "/alarms/alarms" },
  ],
};

export default function GettingStarted(): ReactElement {
  const { authority } = useSession();
  return (
    <div className={classes["links"]}>
      <List type="ordered" spacing="xs">
        {(STEPS[authority] ?? []).map(({ label, path }) => {
          const screen = screenFor(path, authority);
          return <List.Item key={label}>{screen === undefined ? t(label) : <TextLink to={screen.path}>{t(label)}</TextLink>}</List.Item>;
        })}
      </List>
    </div>
  );
}
