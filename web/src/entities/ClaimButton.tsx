// Users of a customer take a device as their own.

import { Button, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { ReactElement } from "react";
import { t } from "@/i18n";
import { Claiming } from "@/widgets/input/ClaimForm";

export default function ClaimButton(): ReactElement {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button onClick={open}>{t("Claim a device")}</Button>
      <Modal opened={opened} onClose={close} title={t("Claim a device")} closeButtonProps={{ "aria-label": t("Close") }}>
        <Claiming settings={{}} label={t("Claim a device")} />
      </Modal>
    </>
  );
}
