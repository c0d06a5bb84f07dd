// The publish/subscribe broker: the frame of its screens, and what is said where none runs.

import { Button, Group, Stack, Title } from "@mantine/core";
import type { ReactElement } from "react";
import { Link } from "wouter";
import { useBroker } from "@/app/broker";
import { t } from "@/i18n";
import { EmptyState, Problem, Waiting } from "@/ui/feedback";
import { Blocked } from "./Blocked";
import { Credentials } from "./Credentials";
import { Overview } from "./Overview";
import { BROKER_PAGES } from "./pages";
import { Providers } from "./Providers";
import { Refused } from "./Refused";
import { Retained } from "./Retained";
import { Sessions } from "./Sessions";
import { Shared, Subscriptions } from "./Subscriptions";

const SHOWN: Readonly<Record<string, () => ReactElement>> = {
  "/broker": () => <Overview />,
  "/broker/sessions": () => <Sessions />,
  "/broker/subscriptions": () => <Subscriptions />,
  "/broker/shared-subscriptions": () => <Shared />,
  "/broker/retained": () => <Retained />,
  "/broker/credentials": () => <Credentials />,
  "/broker/authentication": () => <Providers />,
  "/broker/unauthorized": () => <Refused />,
  "/broker/blocked": () => <Blocked />,
};

export default function Broker({ path }: { path: string }): ReactElement {
  const broker = useBroker();
  return (
    <Stack gap="md">
      <Title order={1} size="h2">
        {t("Broker")}
      </Title>
      {broker.isPending && <Waiting />}
      {broker.isError && <Problem error={broker.error} />}
      {broker.data === false && <EmptyState>{t("The broker does not run. Set broker.listen in the configuration of the program, for instance to 0.0.0.0:1884, and start it anew.")}</EmptyState>}
      {broker.data === true && (
        <>
          <Group component="nav" gap={4} aria-label={t("Broker")}>
            {BROKER_PAGES.map((page, n) => (
              <Button key={page.path} component={Link} href={page.path} size="compact-sm" variant={page.path === path ? "light" : "subtle"} {...(page.path === path ? { "aria-current": "page" as const } : {})}>
                {t(n === 0 ? "Overview" : page.label)}
              </Button>
            ))}
          </Group>
          {SHOWN[path]?.()}
        </>
      )}
    </Stack>
  );
}
