// HTML with styles and code that a dashboard brings along: it runs in a sandboxed frame, as the code of tenants' types does.

import type { ReactElement } from "react";
import { list, text } from "@/dashboard/model";
import { t } from "@/i18n";
import { EmptyState } from "@/ui/feedback";
import { SandboxedCode } from "../CustomWidget";
import type { WidgetProps } from "../registry";

export default function HtmlContainer(props: WidgetProps): ReactElement {
  const { settings } = props.widget;
  const code = { html: text(settings["html"]) ?? "", css: text(settings["css"]) ?? "", js: text(settings["js"]) ?? "" };
  return (
    <>
      {settings["type"] === "ANGULAR" && <EmptyState>{t("This is an Angular template: its HTML is shown, its bindings are not run.")}</EmptyState>}
      <SandboxedCode {...props} code={code} resources={list(settings["resources"]).length} />
    </>
  );
}
