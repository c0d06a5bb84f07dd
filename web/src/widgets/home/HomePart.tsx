// Parts of ThingsBoard's home pages that stand within cards: what is here of them, for those who may see it.

import { useContext, type ReactElement } from "react";
import { SessionContext } from "@/app/session";
import { t } from "@/i18n";
import { FeatureList, ServersTable, VersionLine } from "@/screens/home/SystemParts";
import { EmptyState } from "@/ui/feedback";
import type { HomePartName } from "../templates";
import GettingStarted from "./GettingStarted";
import UsageInfo from "./UsageInfo";

const PARTS: Record<HomePartName, { shown: () => ReactElement | null; ofSystem: boolean }> = {
  steps: { shown: GettingStarted, ofSystem: false },
  usage: { shown: UsageInfo, ofSystem: false },
  servers: { shown: ServersTable, ofSystem: true },
  features: { shown: FeatureList, ofSystem: true },
  version: { shown: VersionLine, ofSystem: false },
};

export default function HomePart({ name }: { name: HomePartName }): ReactElement {
  const role = useContext(SessionContext)?.authority;
  const { shown: Shown, ofSystem } = PARTS[name];
  return role === undefined || (ofSystem && role !== "SYS_ADMIN") ? <EmptyState>{t("System administrators see this.")}</EmptyState> : <Shown />;
}
