// Forms for tables of entities and alarms.

import { SEVERITIES, STATE_LABELS } from "@/alarms/alarm";
import type { FormField } from "@/ui/form/values";
import type { WidgetForm } from "../forms";
import { heading, usuallyOn } from "./parts";

const rows = (order: string): FormField[] => [
  usuallyOn("enableSearch", "Search"),
  usuallyOn("enableSelectColumnDisplay", "Columns can be chosen"),
  usuallyOn("enableStickyHeader", "Head stays in view"),
  usuallyOn("displayPagination", "In pages"),
  { name: "defaultPageSize", label: "Rows per page", type: "number", when: ({ displayPagination }) => displayPagination !== false },
  { name: "defaultSortOrder", label: "Sorted by", otherwise: order, help: "Name of a column, with - before it for the greatest first." },
];

const SHOWN = [
  { value: "visible", label: "Always" },
  { value: "hidden-mobile", label: "Not on phones" },
  { value: "hidden", label: "Only when it is chosen" },
];
const COLUMN: FormField[] = [
  { name: "customTitle", label: "Title of the column" },
  { name: "columnWidth", label: "Width", help: "A length such as 120px or 20%." },
  { name: "defaultColumnVisibility", label: "Column is shown", type: "select", options: SHOWN, otherwise: "visible" },
  { name: "disableSorting", label: "Can't be sorted by", type: "boolean" },
];

export const TABLE_FORMS: readonly WidgetForm[] = [
  {
    names: /^cards\.entities_table$/,
    settings: [
      usuallyOn("displayEntityName", "Column of names"),
      { name: "entityNameColumnTitle", label: "Title of the names", when: ({ displayEntityName }) => displayEntityName !== false },
      { name: "displayEntityLabel", label: "Column of labels", type: "boolean" },
      { name: "entityLabelColumnTitle", label: "Title of the labels", when: ({ displayEntityLabel }) => displayEntityLabel === true },
      { name: "displayEntityType", label: "Column of types", type: "boolean" },
      ...rows("entityName"),
    ],
    keys: COLUMN,
  },
  {
    names: /^alarm_widgets\.alarms_table$/,
    settings: [
      usuallyOn("enableSelection", "Alarms can be selected"),
      usuallyOn("displayDetails", "Details can be opened"),
      usuallyOn("allowAcknowledgment", "Alarms can be acknowledged"),
      usuallyOn("allowClear", "Alarms can be cleared"),
      usuallyOn("allowAssign", "Alarms can be assigned"),
      usuallyOn("displayActivity", "Comments can be written"),
      usuallyOn("enableFilter", "Filters can be changed"),
      ...rows("-createdTime"),
    ],
    config: [
      heading("Filter at the beginning"),
      { name: "alarmFilterConfig.statusList", label: "States", type: "several", options: STATE_LABELS },
      { name: "alarmFilterConfig.severityList", label: "Severities", type: "several", options: SEVERITIES },
      { name: "alarmFilterConfig.typeList", label: "Types", type: "texts" },
      { name: "alarmFilterConfig.assignedToCurrentUser", label: "Only those assigned to whoever looks", type: "boolean" },
      { name: "alarmFilterConfig.searchPropagatedAlarms", label: "With those of related entities", type: "boolean" },
    ],
  },
];
