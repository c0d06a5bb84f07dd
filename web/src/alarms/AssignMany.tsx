// Chooses who takes care of many alarms.

import { Button, Group, Modal } from "@mantine/core";
import { useState, type ReactElement } from "react";
import { t } from "@/i18n";
import { assignTo, type AlarmAct } from "./actions";
import type { Alarm } from "./alarm";
import { AssigneePicker } from "./AssigneePicker";

export default function AssignMany({ alarms, act, onClose }: { alarms: readonly Alarm[]; act: (act: AlarmAct) => Promise<void>; onClose: () => void }): ReactElement {
  const [user, setUser] = useState<string>();
  const [first] = alarms;
  const go = async (chosen: string | undefined): Promise<void> => {
    onClose();
    await act(assignTo(chosen));
  };
  return (
    <Modal opened onClose={onClose} title={t("Assign {n}", { n: alarms.length })} closeButtonProps={{ "aria-label": t("Close") }}>
      {first !== undefined && <AssigneePicker alarm={first} value={user} onChange={setUser} />}
      <Group mt="md">
        <Button disabled={user === undefined} onClick={() => void go(user)}>
          {t("Assign")}
        </Button>
        <Button variant="default" onClick={() => void go(undefined)}>
          {t("Take back")}
        </Button>
      </Group>
    </Modal>
  );
}
