// Chooses a widget to add: one of the frequent kinds, or any type by search, kind or bundle.

import { Button, Drawer, Group, SegmentedControl, Stack, Switch, Text, TextInput, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useEffect, useId, useRef, useState, type KeyboardEvent, type ReactElement } from "react";
import { plural, t } from "@/i18n";
import { EmptyState, notify, Problem, Waiting } from "@/ui/feedback";
import { ImportButton } from "@/ui/ImportButton";
import { newWidget, WIDGET_KINDS, type WidgetKind } from "@/widgets/catalog";
import type { NewWidget } from "@/widgets/fromType";
import { ChoiceList, optionId } from "./ChoiceList";
import { KINDS, kindsFor, useChoices, type Choice, type Shelf } from "./choices";
import { Bundles, FrequentKinds } from "./Shelves";
import classes from "./add.module.css";

const STEPS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5 };
const ALL: Shelf = { id: "all" };

function titleOf(shelf: Shelf): string {
  if (shelf.id === "bundle") {
    return shelf.title;
  }
  return shelf.id === "own" ? t("Our own widgets") : shelf.id === "symbols" ? t("SCADA symbols") : t("All widgets");
}

type Add = (made: NewWidget, isSymbol: boolean) => void;

function Chooser({ onAdd, onFile }: Pick<AddWidgetProps, "onAdd" | "onFile">): ReactElement {
  const id = useId();
  const pane = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const [typed, setTyped] = useState("");
  const [debounced] = useDebouncedValue(typed, 200);
  const search = debounced.trim();
  const [kind, setKind] = useState("");
  const [withDeprecated, setWithDeprecated] = useState(false);
  const [shelf, setShelf] = useState<Shelf>(ALL);
  const [moved, setMoved] = useState(-1);
  const [making, setMaking] = useState(false);
  const isStart = shelf.id === "all" && search === "";
  const { choices, total, waiting, problem, more } = useChoices({ shelf, search, kind, withDeprecated, withoutFrequent: isStart });
  const active = Math.min(moved, choices.length - 1);
  // What is sought anew is seen from its beginning, and Enter takes the first that a search finds.
  useEffect(() => {
    setMoved(search === "" ? -1 : 0);
    pane.current?.scrollTo({ top: 0 });
  }, [search, kind, shelf, withDeprecated]);

  const open = (next: Shelf): void => {
    setShelf(next);
    setTyped("");
    field.current?.focus();
  };
  const choose = async (choice: Choice): Promise<void> => {
    if (making) {
      return;
    }
    setMaking(true);
    try {
      const made = await choice.make();
      onAdd(made, choice.isSymbol);
    } catch (error) {
      notify.error(error);
      setMaking(false);
    }
  };
  const keys = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    const chosen = choices[active];
    if (step !== undefined && choices.length > 0) {
      event.preventDefault();
      setMoved(Math.min(Math.max(0, active + step), choices.length - 1));
    } else if (event.key === "Enter" && chosen !== undefined && typed.trim() === search) {
      event.preventDefault();
      void choose(chosen);
    }
  };
  const addKind = (one: WidgetKind): void => onAdd({ widget: newWidget(one, t(one.title)), size: one.size }, false);
  const frequent = isStart ? kindsFor(WIDGET_KINDS, "", kind) : [];
  return (
    <>
      <Stack gap="xs">
        <TextInput
          ref={field}
          data-autofocus
          role="combobox"
          aria-expanded="true"
          aria-autocomplete="list"
          aria-controls={id}
          aria-activedescendant={active >= 0 ? optionId(id, active) : undefined}
          aria-label={t("Search widgets")}
          placeholder={t("Search by name, description or tag")}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          onKeyDown={keys}
        />
        <Group gap="sm">
          <SegmentedControl size="xs" aria-label={t("Kind of widget")} value={kind} onChange={setKind} data={[{ value: "", label: t("All") }, ...KINDS.map(({ value, label }) => ({ value, label: t(label) }))]} />
          <Switch label={t("Deprecated, too")} checked={withDeprecated} onChange={(event) => setWithDeprecated(event.currentTarget.checked)} />
          <ImportButton label={t("From a file")} take={onFile} />
        </Group>
      </Stack>
      <div ref={pane} className={classes["pane"]} tabIndex={0} role="group" aria-label={t("Widgets")}>
        <Stack gap="md" p={2}>
          {frequent.length > 0 && <FrequentKinds kinds={frequent} onChoose={addKind} />}
          {shelf.id === "all" && <Bundles search={search} onOpen={open} />}
          <Group gap="sm">
            {shelf.id !== "all" && (
              <Button size="compact-sm" variant="default" onClick={() => open(ALL)}>
                {t("Back to all")}
              </Button>
            )}
            <Title order={3} size="h5">
              {titleOf(shelf)}
            </Title>
            <Text size="sm" role="status">
              {waiting && choices.length === 0 ? "" : plural(total, "{n} widget", "{n} widgets")}
            </Text>
          </Group>
          {problem !== null && problem !== undefined && <Problem error={problem} />}
          {!waiting && !problem && choices.length === 0 && <EmptyState>{t(search === "" ? "Nothing is here yet." : "Nothing matches the search.")}</EmptyState>}
        </Stack>
        <ChoiceList id={id} pane={pane} choices={choices} total={total} active={active} more={more} onChoose={(choice) => void choose(choice)} />
        {waiting && <Waiting />}
      </div>
    </>
  );
}

interface AddWidgetProps {
  opened: boolean;
  onClose: () => void;
  onAdd: Add;
  /** Takes the text of a file that somebody has exported. */
  onFile: (text: string) => Promise<void>;
}

export function AddWidget({ opened, onClose, onAdd, onFile }: AddWidgetProps): ReactElement {
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      position="right"
      size="xl"
      title={t("Add a widget")}
      closeButtonProps={{ "aria-label": t("Close") }}
      transitionProps={{ duration: 0 }}
      classNames={{ content: classes["drawer"] ?? "", body: classes["body"] ?? "" }}
    >
      <Chooser onAdd={onAdd} onFile={onFile} />
    </Drawer>
  );
}
