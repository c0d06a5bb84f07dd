// What stands above the list of all widgets: the frequent kinds, and the bundles.

import { Title, UnstyledButton } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useId, type KeyboardEvent, type ReactElement } from "react";
import { api } from "@/api/client";
import type { Entity, EntityId } from "@/api/types";
import { NULL_ID, nameOf } from "@/entities/kinds";
import { t } from "@/i18n";
import { Problem, Waiting } from "@/ui/feedback";
import type { WidgetKind } from "@/widgets/catalog";
import { Picture } from "./ChoiceList";
import { previewOf, type Shelf } from "./choices";
import classes from "./add.module.css";

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Moves among the items of a menu, round its ends. */
function move(event: KeyboardEvent<HTMLElement>): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=menuitem]")];
  const step = STEPS[event.key];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const next = event.key === "Home" ? 0 : event.key === "End" ? items.length - 1 : step === undefined || at < 0 ? undefined : (at + step + items.length) % items.length;
  if (next !== undefined) {
    event.preventDefault();
    items[next]?.focus();
  }
}

/** What most dashboards are made of, at hand without a search. */
export function FrequentKinds({ kinds, onChoose }: { kinds: readonly WidgetKind[]; onChoose: (kind: WidgetKind) => void }): ReactElement {
  const heading = useId();
  return (
    <section>
      <Title order={3} size="h5" mb={6} id={heading}>
        {t("Often used")}
      </Title>
      <div role="menu" aria-labelledby={heading} className={classes["frequent"]} onKeyDown={move}>
        {kinds.map((kind, n) => (
          <UnstyledButton key={kind.fqn} role="menuitem" tabIndex={n === 0 ? 0 : -1} className={classes["kind"] ?? ""} onClick={() => onChoose(kind)}>
            {t(kind.title)}
          </UnstyledButton>
        ))}
      </div>
    </section>
  );
}

interface Bundle extends Entity {
  tenantId: EntityId;
  image?: string | null;
  description?: string | null;
}

function ShelfButton({ label, hint, image, icon, onOpen }: { label: string; hint?: string; image?: string | undefined; icon: string; onOpen: () => void }): ReactElement {
  return (
    <UnstyledButton className={classes["shelf"] ?? ""} title={hint} onClick={onOpen}>
      <Picture link={image} icon={icon} size="2rem" />
      {label}
    </UnstyledButton>
  );
}

/** The bundles of the installation and the tenant's own, besides what is in none. */
export function Bundles({ search, onOpen }: { search: string; onOpen: (shelf: Shelf) => void }): ReactElement | null {
  const bundles = useQuery({ queryKey: ["list", "bundles to add"], queryFn: () => api.get<Bundle[]>("/api/widgetsBundles/all") });
  const wanted = search.toLowerCase();
  const found = (bundles.data ?? []).filter((bundle) => wanted === "" || `${nameOf(bundle)} ${bundle.description ?? ""}`.toLowerCase().includes(wanted));
  // The tenant's own come first: there are few of them, and somebody has made them for this.
  const ordered = [...found.filter((bundle) => bundle.tenantId.id !== NULL_ID), ...found.filter((bundle) => bundle.tenantId.id === NULL_ID)];
  if (wanted !== "" && ordered.length === 0) {
    return null;
  }
  return (
    <section>
      <Title order={3} size="h5" mb={6}>
        {t("Widget bundles")}
      </Title>
      {bundles.isPending && <Waiting />}
      {bundles.isError && <Problem error={bundles.error} />}
      <div className={classes["shelves"]}>
        {wanted === "" && (
          <>
            <ShelfButton label={t("Our own widgets")} icon="edit" onOpen={() => onOpen({ id: "own" })} />
            <ShelfButton label={t("SCADA symbols")} icon="mdi:pump" onOpen={() => onOpen({ id: "symbols" })} />
          </>
        )}
        {ordered.map((bundle) => (
          <ShelfButton
            key={bundle.id.id}
            label={nameOf(bundle)}
            {...(bundle.description ? { hint: bundle.description } : {})}
            image={previewOf(bundle.image)}
            icon="dashboard"
            onOpen={() => onOpen({ id: "bundle", bundle: bundle.id.id, title: nameOf(bundle) })}
          />
        ))}
      </div>
    </section>
  );
}
