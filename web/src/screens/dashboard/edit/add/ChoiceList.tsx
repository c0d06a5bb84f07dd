// All that can be added as a list, of which only what is seen is drawn. The search field moves through it.

import { Badge, Group, Image, Text } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useRef, useState, type ReactElement, type RefObject } from "react";
import { t } from "@/i18n";
import { Icon } from "@/icons/Icon";
import { useImage } from "@/ui/images";
import { KINDS, type Choice } from "./choices";
import classes from "./add.module.css";

/** Height of a row with its distance to the next, as the style sheet has it. */
const ROW_PX = 92;
const ICONS: Record<string, string> = { timeseries: "show_chart", latest: "speed", rpc: "touch_app", alarm: "notifications", static: "dashboard" };

export const optionId = (list: string, n: number): string => `${list}-${n}`;

/** The picture of a type, or a sign of its kind. */
export function Picture({ link, icon, size }: { link: string | undefined; icon: string; size: string }): ReactElement {
  const { url, failed } = useImage(link);
  return (
    <span className={classes["picture"]} aria-hidden="true">
      {url !== undefined && !failed ? <Image src={url} alt="" fit="contain" h="100%" w="100%" loading="lazy" decoding="async" /> : <Icon name={icon} size={size} />}
    </span>
  );
}

interface ChoiceListProps {
  id: string;
  /** What scrolls: the list, and what stands above it. */
  pane: RefObject<HTMLDivElement | null>;
  choices: readonly Choice[];
  total: number;
  /** Which one keys would choose; none below zero. */
  active: number;
  more: (() => void) | undefined;
  onChoose: (choice: Choice) => void;
}

export function ChoiceList({ id, pane, choices, total, active, more, onChoose }: ChoiceListProps): ReactElement {
  const list = useRef<HTMLDivElement>(null);
  const [scrollMargin, setScrollMargin] = useState(0);
  // What stands above the list comes later than the list.
  useLayoutEffect(() => setScrollMargin(list.current?.offsetTop ?? 0));
  const drawn = useVirtualizer({ count: choices.length, getScrollElement: () => pane.current, estimateSize: () => ROW_PX, overscan: 4, scrollMargin, useFlushSync: false });
  const items = drawn.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= choices.length - 5) {
      more?.();
    }
  }, [last, choices.length, more]);
  useEffect(() => {
    if (active >= 0) {
      drawn.scrollToIndex(active);
    }
  }, [active, drawn]);
  return (
    <div ref={list} id={id} role="listbox" aria-label={t("Widgets to choose from")} className={classes["list"]} style={{ height: drawn.getTotalSize() }}>
      {items.map(({ index, start }) => {
        const choice = choices[index];
        return choice === undefined ? null : (
          <div
            key={choice.key}
            id={optionId(id, index)}
            role="option"
            aria-selected={index === active}
            aria-setsize={total}
            aria-posinset={index + 1}
            className={classes["option"]}
            style={{ transform: `translateY(${start - scrollMargin}px)` }}
            onClick={() => onChoose(choice)}
          >
            <Picture link={choice.image} icon={ICONS[choice.kind] ?? "dashboard"} size="2rem" />
            <div className={classes["words"]}>
              <Group gap="xs" wrap="nowrap">
                <Text fw={600} truncate>
                  {choice.title}
                </Text>
                <Badge variant="outline" color="gray" c="var(--soft-text)" style={{ flex: "none" }}>
                  {t(KINDS.find(({ value }) => value === choice.kind)?.label ?? "Other")}
                </Badge>
                {choice.remarks.map((remark) => (
                  <Badge key={remark} variant="outline" color="gray" c="var(--soft-text)" style={{ flex: "none" }}>
                    {remark}
                  </Badge>
                ))}
              </Group>
              <Text size="sm" c="var(--soft-text)" lineClamp={2}>
                {choice.description}
              </Text>
            </div>
          </div>
        );
      })}
    </div>
  );
}
