// Keeps the failure of one widget from taking the others along.

import { Button, Text } from "@mantine/core";
import { Component, type ReactNode } from "react";
import { t } from "@/i18n";
import { messageOf } from "@/ui/feedback";

export class WidgetBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    return this.state.error === undefined ? (
      this.props.children
    ) : (
      <div role="alert">
        <Text size="sm">{t("This widget has failed: {problem}", { problem: messageOf(this.state.error) })}</Text>
        <Button size="compact-sm" variant="default" onClick={() => this.setState({ error: undefined })}>
          {t("Try again")}
        </Button>
      </div>
    );
  }
}
