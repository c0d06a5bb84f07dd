// Lets people choose to be told of new alarms.

import { Button, Checkbox, Popover, Stack, Text } from "@mantine/core";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { notify } from "@/ui/feedback";
import { beep } from "./beep";
import { chooseNotices, useNoticeSettings } from "./noticeSettings";

export function NoticeChoice(): ReactElement {
  const settings = useNoticeSettings();
  const chooseBrowser = async (browser: boolean): Promise<void> => {
    const allowed = !browser || ("Notification" in window && (await Notification.requestPermission()) === "granted");
    if (!allowed) {
      notify.error(t("This browser doesn't permit notifications of this page."));
    }
    chooseNotices({ ...settings, browser: browser && allowed });
  };
  return (
    <Popover position="bottom-end" withinPortal trapFocus>
      <Popover.Target>
        <Button size="compact-sm" variant={settings.sound || settings.browser ? "light" : "default"}>
          {t("Tell me")}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap={8} maw={280}>
          <Text size="sm">{t("When a new alarm comes, as long as a page of this site is open:")}</Text>
          <Checkbox
            label={t("Sound")}
            checked={settings.sound}
            onChange={(event) => {
              const sound = event.currentTarget.checked;
              chooseNotices({ ...settings, sound });
              if (sound) {
                beep();
              }
            }}
          />
          <Checkbox label={t("Notification of the browser")} checked={settings.browser} onChange={(event) => void chooseBrowser(event.currentTarget.checked)} />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
