// The form of an action: what a click does, as widgets, symbols and the head of a dashboard store it.

import { safeUrl } from "@/dashboard/actions";
import { MOBILE_TYPES } from "@/dashboard/edit/mobileAction";
import { namesOf, type MobileFunction } from "@/dashboard/mobile";
import { valueAt, type FormField, type FormValues } from "@/ui/form/values";

export const ACTION_TYPES = [
  { value: "openDashboardState", label: "Opens a state" },
  { value: "updateDashboardState", label: "Changes the present state" },
  { value: "openDashboard", label: "Opens another dashboard" },
  { value: "openURL", label: "Opens an address" },
  { value: "custom", label: "Runs a function" },
  { value: "customPretty", label: "Runs a function with a template" },
  { value: "mobileAction", label: "Mobile action" },
];
const NOTHING = { value: "doNothing", label: "Nothing" };

const MOBILE_LABELS: readonly { value: string; label: string }[] = [
  { value: "takePictureFromGallery", label: "Takes a picture from the gallery" },
  { value: "takePhoto", label: "Takes a photo" },
  { value: "mapDirection", label: "Shows the way on a map" },
  { value: "mapLocation", label: "Shows a place on a map" },
  { value: "scanQrCode", label: "Scans a QR code" },
  { value: "makePhoneCall", label: "Calls a number" },
  { value: "getLocation", label: "Gets the position of the phone" },
  { value: "takeScreenshot", label: "Takes a picture of the screen" },
  { value: "deviceProvision", label: "Provisions a device" },
];
const FUNCTION_LABELS: Record<MobileFunction, { label: string }> = {
  getLocationFunction: { label: "Place: function" },
  getPhoneNumberFunction: { label: "Number: function" },
  processImageFunction: { label: "What is done with the picture: function" },
  processQrCodeFunction: { label: "What is done with the code: function" },
  processLocationFunction: { label: "What is done with the position: function" },
  processLaunchResultFunction: { label: "After the other app was opened: function" },
  handleProvisionSuccessFunction: { label: "After a device was provisioned: function" },
  handleEmptyResultFunction: { label: "If nothing came of it: function" },
  handleErrorFunction: { label: "If it failed: function" },
  handleNonMobileFallbackFunction: { label: "Without the mobile app: function" },
};
const PROVISION_TYPES = [
  { value: "auto", label: "Any way" },
  { value: "wiFi", label: "Wi-Fi" },
  { value: "ble", label: "Bluetooth LE" },
  { value: "softAp", label: "Access point of the device" },
];
const PLACEMENTS = [
  { value: "top", label: "above" },
  { value: "topLeft", label: "above, from the left" },
  { value: "topRight", label: "above, from the right" },
  { value: "right", label: "on the right" },
  { value: "rightTop", label: "on the right, from the top" },
  { value: "rightBottom", label: "on the right, from the bottom" },
  { value: "bottom", label: "below" },
  { value: "bottomLeft", label: "below, from the left" },
  { value: "bottomRight", label: "below, from the right" },
  { value: "left", label: "on the left" },
  { value: "leftTop", label: "on the left, from the top" },
  { value: "leftBottom", label: "on the left, from the bottom" },
];
const ARGUMENTS = "function ($event, widgetContext, entityId, entityName, additionalParams, entityLabel)";

const badAddress = (url: string): string | undefined => (safeUrl(url) === undefined ? "The address of this action is none that may be opened." : undefined);

/** Fields of what a mobile action asks of a phone. */
function mobileFields(at: (name: string) => string, when: NonNullable<FormField["when"]>): FormField[] {
  const chosen = (values: FormValues): string => String(valueAt(values, at("mobileAction.type")) ?? "");
  const has = (name: string) => (values: FormValues): boolean => when(values) && MOBILE_TYPES.some((one) => one.type === chosen(values) && (one.parts as readonly string[]).includes(name));
  const functions = Object.keys(FUNCTION_LABELS) as MobileFunction[];
  return [
    { name: at("mobileAction.type"), label: "What the phone does", type: "select", required: true, options: MOBILE_LABELS, when, help: "Made for ThingsBoard's mobile app. A browser does what it can of it, and says so where it can't." },
    { name: at("mobileAction.saveToGallery"), label: "Save the picture to the gallery", type: "boolean", when: has("saveToGallery") },
    { name: at("mobileAction.provisionType"), label: "How the device is reached", type: "select", required: true, options: PROVISION_TYPES, when: has("provisionType") },
    ...functions.map((name): FormField => ({ name: at(`mobileAction.${name}`), ...FUNCTION_LABELS[name], type: "code", help: `function (${namesOf(name).join(", ")})`, when: has(name) })),
  ];
}

interface Options {
  /** Whether an action may do nothing, where there is always one. */
  mayDoNothing?: boolean;
  /** Whether the states of the dashboard are around the form. */
  knowsStates?: boolean;
}

/** Fields of an action; `path` is where it is stored, empty if the form is about nothing else. */
export function actionFields(path: string, { mayDoNothing = false, knowsStates = false }: Options = {}): FormField[] {
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  const is = (...types: string[]) => (values: FormValues): boolean => types.includes(String(valueAt(values, at("type")) ?? ""));
  const isOn = (name: string) => (values: FormValues): boolean => valueAt(values, at(name)) === true;
  const toState = is("openDashboardState", "updateDashboardState");
  const toPlace = is("openDashboardState", "updateDashboardState", "openDashboard");
  const opens = is("openDashboardState");
  const code = is("custom", "customPretty");
  const inDialog = (values: FormValues): boolean => opens(values) && isOn("openInSeparateDialog")(values);
  const inPopover = (values: FormValues): boolean => opens(values) && !inDialog(values) && isOn("openInPopover")(values);
  const state: FormField = knowsStates
    ? { name: at("targetDashboardStateId"), label: "State", type: "select", optionsFrom: ({ options }) => options?.["states"] ?? [], when: toState }
    : { name: at("targetDashboardStateId"), label: "State", help: "Id of a state of the dashboard.", when: toState };
  return [
    { name: at("type"), label: "What it does", type: "select", required: true, options: mayDoNothing ? [NOTHING, ...ACTION_TYPES] : ACTION_TYPES },
    { name: at("targetDashboardId"), label: "Dashboard", type: "entity", list: "/api/tenant/dashboards", pick: "id", one: "/api/dashboard/", when: is("openDashboard") },
    state,
    { name: at("targetDashboardStateId"), label: "State of that dashboard", help: "Id of a state of the dashboard.", when: is("openDashboard") },
    { name: at("setEntityId"), label: "For the entity that was clicked", type: "boolean", otherwise: true, when: toPlace },
    { name: at("stateEntityParamName"), label: "Name of the parameter", help: "Empty for the entity that the state is about.", when: (values) => toPlace(values) && valueAt(values, at("setEntityId")) !== false },
    { name: at("openRightLayout"), label: "In the right part", type: "boolean", when: toState },
    { name: at("openInSeparateDialog"), label: "In a dialog", type: "boolean", when: opens },
    { name: at("dialogTitle"), label: "Title of the dialog", when: inDialog },
    { name: at("dialogWidth"), label: "Width (% of the page)", type: "number", when: inDialog },
    { name: at("dialogHeight"), label: "Height (% of the page)", type: "number", when: inDialog },
    { name: at("dialogHideDashboardToolbar"), label: "Without the toolbar", type: "boolean", otherwise: true, when: inDialog },
    { name: at("openInPopover"), label: "Beside what was clicked", type: "boolean", when: (values) => opens(values) && !inDialog(values) },
    { name: at("popoverPreferredPlacement"), label: "Preferred side", type: "select", options: PLACEMENTS, otherwise: "top", when: inPopover },
    { name: at("popoverWidth"), label: "Width", otherwise: "25vw", when: inPopover },
    { name: at("popoverHeight"), label: "Height", otherwise: "25vh", when: inPopover },
    { name: at("popoverHideOnClickOutside"), label: "A click elsewhere closes it", type: "boolean", otherwise: true, when: inPopover },
    { name: at("popoverHideDashboardToolbar"), label: "Without the toolbar", type: "boolean", otherwise: true, when: inPopover },
    { name: at("url"), label: "Address", when: is("openURL"), problem: badAddress },
    { name: at("openNewBrowserTab"), label: "In a new tab", type: "boolean", when: is("openDashboard", "openURL") },
    { name: at("customFunction"), label: "Function", type: "code", help: ARGUMENTS, when: code },
    { name: at("customHtml"), label: "Template (HTML)", type: "code", when: is("customPretty") },
    { name: at("customCss"), label: "Style (CSS)", type: "code", when: is("customPretty") },
    ...mobileFields(at, is("mobileAction")),
  ];
}
