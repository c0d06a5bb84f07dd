// Says that the code of a dashboard may act, and takes that back.

import { Button, Group, Text } from "@mantine/core";
import { useEffect, useState, type ReactElement } from "react";
import type { Board } from "@/dashboard/board";
import { t } from "@/i18n";
import { allowedTo, useConsents, withdraw } from "@/sandbox/consent";
import type { Right } from "@/sandbox/services";

export default function ConsentNote({ board, userId }: { board: Board; userId: string }): ReactElement | null {
  const [right, setRight] = useState<Right>();
  const changes = useConsents(({ changes }) => changes);
  useEffect(() => {
    let current = true;
    void allowedTo({ userId, dashboardId: board.id, code: `${board.code()}\n` }).then((found) => current && setRight(found));
    return () => {
      current = false;
    };
  }, [board, userId, changes]);
  return right === undefined ? null : (
    <Group gap="xs" mt={4}>
      <Text size="xs">{t(right === "change" ? "You have allowed the code of this dashboard to read and change data with your rights." : "You have allowed the code of this dashboard to read data with your rights.")}</Text>
      <Button size="compact-xs" variant="default" onClick={() => withdraw({ userId, dashboardId: board.id })}>
        {t("Withdraw")}
      </Button>
    </Group>
  );
}
