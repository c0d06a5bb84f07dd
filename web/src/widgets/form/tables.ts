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

/** Fields of which alarms are meant, below a path. */
export const alarmFilter = (path: string): FormField[] => [
  { name: `${path}.statusList`, label: "States", type: "several", options: STATE_LABELS },
  { name: `${path}.severityList`, label: "Severities", type: "several", options: SEVERITIES },
  { name: `${path}.typeList`, label: "Types", type: "texts" },
  { name: `${path}.assignedToCurrentUser`, label: "Only those assigned to whoever looks", type: "boolean" },
  { name: `${path}.searchPropagatedAlarms`, label: "With those of related entities", type: "boolean" },
];

const SHOWN = [
  { value: "visible", label: "Always" },
  { value: "hidden-mobile", label: "Not on phones" },
  { value: "hidden", label: "Only when it is chosen" },
];
const CHOOSABLE = [
  { value: "enabled", label: "Readers choose" },
  { value: "disabled", label: "Stays as it is" },
];
const COLUMN: FormField[] = [
  { name: "customTitle", label: "Title of the column" },
  { name: "columnWidth", label: "Width", help: "A length such as 120px or 20%." },
  { name: "defaultColumnVisibility", label: "Column is shown", type: "select", options: SHOWN, otherwise: "visible" },
  { name: "columnSelectionToDisplay", label: "Among the columns to choose", type: "select", options: CHOOSABLE, otherwise: "enabled" },
  { name: "disableSorting", label: "Can't be sorted by", type: "boolean" },
];
/** Functions of the cells of a column; `row` is what they get beside the value. */
const cells = (row: string): FormField[] => [
  { name: "useCellStyleFunction", label: "A function makes the look of its cells", type: "boolean" },
  { name: "cellStyleFunction", label: "Look of a cell: function", type: "code", help: `function (value, ${row}, ctx)`, when: ({ useCellStyleFunction: uses }) => uses === true },
  { name: "useCellContentFunction", label: "A function makes the content of its cells", type: "boolean" },
  { name: "cellContentFunction", label: "Content of a cell: function", type: "code", help: `function (value, ${row}, ctx)`, when: ({ useCellContentFunction: uses }) => uses === true },
];

const NODE = "function (nodeCtx)";
const NODES = "function (nodeCtx1, nodeCtx2)";

export const TABLE_FORMS: readonly WidgetForm[] = [
  {
    names: /^cards\.entities_hierarchy$/,
    settings: [
      { name: "nodeRelationQueryFunction", label: "What is below a node: function", type: "code", help: NODE },
      { name: "nodeHasChildrenFunction", label: "Whether there is something below a node: function", type: "code", help: NODE },
      { name: "nodeTextFunction", label: "Words of a node: function", type: "code", help: NODE },
      { name: "nodeIconFunction", label: "Icon of a node: function", type: "code", help: NODE },
      { name: "nodeOpenedFunction", label: "Whether a node is open at the beginning: function", type: "code", help: NODE },
      { name: "nodeDisabledFunction", label: "Whether a node can't be chosen: function", type: "code", help: NODE },
      { name: "nodesSortFunction", label: "Order of the nodes: function", type: "code", help: NODES },
    ],
  },
  {
    names: /^cards\.entities_table$|^entity_admin_widgets\.(device|asset)_admin_table$/,
    settings: [
      usuallyOn("displayEntityName", "Column of names"),
      { name: "entityNameColumnTitle", label: "Title of the names", when: ({ displayEntityName }) => displayEntityName !== false },
      { name: "displayEntityLabel", label: "Column of labels", type: "boolean" },
      { name: "entityLabelColumnTitle", label: "Title of the labels", when: ({ displayEntityLabel }) => displayEntityLabel === true },
      { name: "displayEntityType", label: "Column of types", type: "boolean" },
      ...rows("entityName"),
    ],
    keys: [...COLUMN, ...cells("entity")],
  },
  {
    names: /^cards\.timeseries_table$/,
    settings: [
      usuallyOn("showTimestamp", "Column of times"),
      { name: "showMilliseconds", label: "With milliseconds", type: "boolean", when: ({ showTimestamp }) => showTimestamp !== false },
      { name: "hideEmptyLines", label: "Without rows that have no value", type: "boolean" },
      { name: "useEntityLabel", label: "Tabs have the labels of entities", type: "boolean" },
      ...rows("-Timestamp"),
    ],
    keys: [...COLUMN, ...cells("rowData")],
    latestKeys: [usuallyOn("show", "Show the column"), { name: "order", label: "Place among the columns", type: "number", least: 0 }, ...COLUMN, ...cells("rowData")],
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
      ...alarmFilter("alarmFilterConfig"),
    ],
    keys: [...COLUMN, ...cells("alarm")],
  },
];
