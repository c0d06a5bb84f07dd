// What a widget asked for and what came, beside the dashboard.

import { Drawer } from "@mantine/core";
import type { ReactElement } from "react";
import type { Datasource } from "@/dashboard/model";
import type { SourceRequest } from "@/dashboard/source";
import { t } from "@/i18n";
import DataInspector, { QuestionInspector } from "./DataInspector";

interface DrawerProps {
  title: string;
  widget: string;
  requests: readonly (SourceRequest | undefined)[];
  /** What it shows; widgets that ask for themselves have none. */
  sources: Datasource[] | undefined;
  onClose: () => void;
}

export default function DataDrawer({ title, widget, requests, sources, onClose }: DrawerProps): ReactElement {
  return (
    <Drawer opened onClose={onClose} position="right" size="lg" title={t("Data of {title}", { title })} closeButtonProps={{ "aria-label": t("Close") }}>
      {sources === undefined ? <QuestionInspector widget={widget} /> : <DataInspector requests={requests} sources={sources} />}
    </Drawer>
  );
}
