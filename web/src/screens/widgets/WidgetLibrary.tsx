// The list of bundles of widgets; files of ThingsBoard's become bundles here.

import { Button, FileButton } from "@mantine/core";
import type { ReactElement } from "react";
import { useLocation } from "wouter";
import type { Json } from "@/dashboard/model";
import EntityList from "@/entities/EntityList";
import { KINDS } from "@/entities/kinds";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { importBundle } from "./bundle";

const KIND = KINDS.find(({ type }) => type === "WIDGETS_BUNDLE");

export default function WidgetLibrary(): ReactElement | null {
  const [, go] = useLocation();
  const bringIn = async (file: File | null): Promise<void> => {
    try {
      if (file !== null) {
        const bundle = await importBundle(JSON.parse(await file.text()) as Json);
        go(`/resources/widgets-library/widgets-bundles/${bundle.id.id}`);
      }
    } catch (error) {
      notify.error(error instanceof SyntaxError ? new Error("This file is no JSON.") : error);
    }
  };
  return KIND === undefined ? null : (
    <EntityList
      kind={KIND}
      tools={
        <FileButton accept="application/json" onChange={(file) => void bringIn(file)}>
          {(props) => (
            <Button variant="default" {...props}>
              {t("Import a bundle")}
            </Button>
          )}
        </FileButton>
      }
    />
  );
}
