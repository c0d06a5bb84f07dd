// What older controls begin with and choose from; once for what draws them and for their forms.

import type { Json } from "@/dashboard/json";

/** The columns of a table of stored commands, by the names that settings have for them. */
export const COLUMNS = [
  { value: "rpcId", label: "ID" },
  { value: "messageType", label: "Kind" },
  { value: "status", label: "Status" },
  { value: "method", label: "Method" },
  { value: "createdTime", label: "Created" },
  { value: "expirationTime", label: "Expires" },
] as const;

/** The colours of a slide toggle. */
export const SLIDER_COLORS = [
  { value: "accent", label: "Orange", color: "#ff5722" },
  { value: "primary", label: "Blue", color: "#305680" },
  { value: "warn", label: "Red", color: "#f44336" },
];

/** A board of pins. */
export const GPIO: Json = {
  switchPanelBackgroundColor: "#008a00",
  ledPanelBackgroundColor: "#008a00",
  gpioStatusRequest: { method: "getGpioStatus", paramsBody: "{}" },
  gpioStatusChangeRequest: { method: "setGpioStatus", paramsBody: '{"pin": "{$pin}", "enabled": "{$enabled}"}' },
  parseGpioStatusFunction: "return body[pin] === true;",
};
