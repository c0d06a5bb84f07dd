// The list of bundles of widgets; files of ThingsBoard's become bundles here.

import type { ReactElement } from "react";
import { useLocation } from "wouter";
import type { Json } from "@/dashboard/model";
import EntityList from "@/entities/EntityList";
import { KINDS } from "@/entities/kinds";
import { t } from "@/i18n";
import { ImportButton } from "@/ui/ImportButton";
import { importBundle } from "./bundle";

const KIND = KINDS.find(({ type }) => type === "WIDGETS_BUNDLE");

export default function WidgetLibrary(): ReactElement | null {
  const [, go] = useLocation();
  const bringIn = async (text: string): Promise<void> => {
    const bundle = await importBundle(JSON.parse(text) as Json);
    go(`/resources/widgets-library/widgets-bundles/${bundle.id.id}`);
  };
  return KIND === undefined ? null : <EntityList kind={KIND} tools={<ImportButton label={t("Import a bundle")} take={bringIn} />} />;
}
