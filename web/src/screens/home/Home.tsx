// The first screen: a dashboard where one was chosen for home, else what each role wants to know first.

import { Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { ask } from "@/api/typed";
import { useSession } from "@/app/session";
import { t } from "@/i18n";
import { Waiting } from "@/ui/feedback";
import { loadable } from "@/ui/loadable";
import ThingsHome from "./ThingsHome";

const SystemHome = loadable(() => import("./SystemHome"));
const HomeDashboard = loadable(() => import("./HomeDashboard"));

export default function Home(): ReactElement {
  const { authority } = useSession();
  const isSystem = authority === "SYS_ADMIN";
  const home = useQuery({ queryKey: ["home dashboard"], enabled: !isSystem, queryFn: async () => (await ask("GET /api/dashboard/home/info")) ?? null, retry: false });
  const id = home.data?.dashboardId?.id;
  if (!isSystem && home.isPending) {
    return <Waiting />;
  }
  if (id !== undefined) {
    return <HomeDashboard id={id} hideToolbar={home.data?.hideDashboardToolbar !== false} />;
  }
  return (
    <>
      <Title order={1} size="h2" mb="md">
        {t("Home")}
      </Title>
      {isSystem ? <SystemHome /> : <ThingsHome />}
    </>
  );
}
