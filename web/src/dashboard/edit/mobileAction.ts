// What a stored action begins with when its type is chosen. Fields that are unheard of stay.

import { object, text, type Json } from "../json";

const COMMON = ["handleEmptyResultFunction", "handleErrorFunction", "handleNonMobileFallbackFunction"] as const;
const PICTURE = ["processImageFunction", "saveToGallery", ...COMMON] as const;
const MAP = ["getLocationFunction", "processLaunchResultFunction", ...COMMON] as const;

/** Types of mobile actions, each with what is stored for it. */
export const MOBILE_TYPES = [
  { type: "takePictureFromGallery", parts: PICTURE },
  { type: "takePhoto", parts: PICTURE },
  { type: "mapDirection", parts: MAP },
  { type: "mapLocation", parts: MAP },
  { type: "scanQrCode", parts: ["processQrCodeFunction", ...COMMON] },
  { type: "makePhoneCall", parts: ["getPhoneNumberFunction", "processLaunchResultFunction", ...COMMON] },
  { type: "getLocation", parts: ["processLocationFunction", ...COMMON] },
  { type: "takeScreenshot", parts: PICTURE },
  { type: "deviceProvision", parts: ["handleProvisionSuccessFunction", "provisionType", ...COMMON] },
] as const;
type Part = (typeof MOBILE_TYPES)[number]["parts"][number];

const fromAttributes = (keys: string, last: string): string =>
  `// May return the value, or a promise or an observable of it.
return widgetContext.attributeService.getEntityAttributes(entityId, "SERVER_SCOPE", ${keys}).pipe(
  widgetContext.rxjs.map((found) => ${last})
);`;
const toAttributes = (attributes: string): string =>
  `if (entityId) {
  widgetContext.attributeService.saveEntityAttributes(entityId, "SERVER_SCOPE", ${attributes}).subscribe(
    () => widgetContext.showSuccessToast("Saved"),
    (problem) => widgetContext.showErrorToast(problem.message)
  );
}`;

/** What somebody can begin with: examples that work, for attributes with these names. */
const BEGINNINGS: Record<Part, unknown> = {
  processImageFunction: toAttributes('[{ key: "image", value: imageUrl }]'),
  saveToGallery: false,
  getLocationFunction: fromAttributes('["latitude", "longitude"]', '["latitude", "longitude"].map((key) => Number(found.find((one) => one.key === key)?.value))'),
  getPhoneNumberFunction: fromAttributes('["phone"]', "found[0]?.value"),
  processQrCodeFunction: "widgetContext.showSuccessToast(code);",
  processLocationFunction: toAttributes('[{ key: "latitude", value: latitude }, { key: "longitude", value: longitude }]'),
  processLaunchResultFunction: "",
  handleProvisionSuccessFunction: 'widgetContext.showSuccessToast(deviceName + " is provisioned");',
  provisionType: "auto",
  handleEmptyResultFunction: "",
  handleErrorFunction: "widgetContext.showErrorToast(error);",
  handleNonMobileFallbackFunction: "",
};
const PARTS = Object.keys(BEGINNINGS);

/** Brings what is asked of a phone in line with its type: what belongs to others goes, what is missing begins with an example. */
export function settleMobile(mobile: Json): Json {
  const known = MOBILE_TYPES.find(({ type }) => type === mobile["type"]);
  if (known === undefined) {
    return mobile;
  }
  const own: readonly string[] = known.parts;
  const kept = Object.entries(mobile).filter(([name]) => !PARTS.includes(name) || own.includes(name));
  const begun = Object.entries(BEGINNINGS).filter(([name]) => own.includes(name) && (mobile[name] ?? null) === null);
  return { ...Object.fromEntries(kept), ...Object.fromEntries(begun) };
}

const STATE = ["targetDashboardStateId", "setEntityId", "stateEntityParamName", "openRightLayout"];
const DIALOG = ["openInSeparateDialog", "dialogTitle", "dialogHideDashboardToolbar", "dialogWidth", "dialogHeight"];
const POPOVER = ["openInPopover", "popoverPreferredPlacement", "popoverHideOnClickOutside", "popoverHideDashboardToolbar", "popoverWidth", "popoverHeight", "popoverStyle"];
/** What each type of actions stores. */
const OWN: Readonly<Record<string, readonly string[]>> = {
  openDashboardState: [...STATE, ...DIALOG, ...POPOVER],
  updateDashboardState: STATE,
  openDashboard: ["targetDashboardId", "targetDashboardStateId", "setEntityId", "stateEntityParamName", "openNewBrowserTab"],
  openURL: ["url", "openNewBrowserTab"],
  custom: ["customFunction"],
  customPretty: ["customFunction", "customHtml", "customCss", "customResources"],
  mobileAction: ["mobileAction"],
  doNothing: [],
};
const ALL = new Set(Object.values(OWN).flat());

/** Brings an action in line with what was changed in it: another type has other fields, another mobile type other functions. */
export function settleAction(action: Json, before: Json): Json {
  const own = OWN[text(action["type"]) ?? ""];
  const typed = own === undefined || action["type"] === before["type"] ? action : Object.fromEntries(Object.entries(action).filter(([name]) => !ALL.has(name) || own.includes(name)));
  const mobile = object(typed["mobileAction"]);
  return mobile["type"] === object(before["mobileAction"])["type"] ? typed : { ...typed, mobileAction: settleMobile(mobile) };
}
