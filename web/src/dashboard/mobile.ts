// What actions for phones ask of the device, read without trust, and which of their functions hear of it.

import { bodyOf } from "./actions";
import { object, type Json } from "./json";

const TYPES = ["takePictureFromGallery", "takePhoto", "takeScreenshot", "mapDirection", "mapLocation", "scanQrCode", "makePhoneCall", "getLocation", "deviceProvision"] as const;
export type MobileType = (typeof TYPES)[number];

/** Each function with what it is called with first; the others get what code of actions always gets. */
const FUNCTIONS = {
  getLocationFunction: [],
  getPhoneNumberFunction: [],
  processImageFunction: ["imageUrl"],
  processQrCodeFunction: ["code", "format"],
  processLocationFunction: ["latitude", "longitude"],
  processLaunchResultFunction: ["launched"],
  handleProvisionSuccessFunction: ["deviceName"],
  handleErrorFunction: ["error"],
  handleEmptyResultFunction: [],
  handleNonMobileFallbackFunction: [],
} as const;
export type MobileFunction = keyof typeof FUNCTIONS;

export interface MobileAction {
  type: MobileType;
  functions: Partial<Record<MobileFunction, string>>;
  saveToGallery: boolean;
}

/** A function of an action, as the sandbox is to call it. */
export interface CodeCall {
  body: string;
  names: string[];
  /** What it gets besides what code of actions always gets. */
  values: Json;
  /** Whether its code draws, for which it needs a page. */
  draws: boolean;
}

/** Reads what an action asks of a device; nothing if that is unheard of. */
export function readMobile(value: unknown): MobileAction | undefined {
  const stored = object(value);
  const type = TYPES.find((one) => one === stored["type"]);
  const functions = (Object.keys(FUNCTIONS) as MobileFunction[]).flatMap((name): [MobileFunction, string][] => {
    const body = bodyOf(stored[name]);
    return body === undefined || body.trim() === "" ? [] : [[name, body]];
  });
  return type === undefined ? undefined : { type, functions: Object.fromEntries(functions), saveToGallery: stored["saveToGallery"] === true };
}

/** Returns the names of what a function is called with. */
export function namesOf(name: MobileFunction): string[] {
  const rest = name === "handleNonMobileFallbackFunction" ? [] : ["entityId", "entityName", "additionalParams", "entityLabel"];
  return [...FUNCTIONS[name], "$event", "widgetContext", ...rest];
}

/** Returns how a function is called with values; nothing if the action doesn't have it. */
export function mobileCall({ functions }: MobileAction, name: MobileFunction, values: Json = {}): CodeCall | undefined {
  const body = functions[name];
  return body === undefined ? undefined : { body, names: namesOf(name), values, draws: body.includes("customDialog") };
}

/** Reads the place that a function has named. */
export function placeFrom(value: unknown): [number, number] {
  const [latitude, longitude] = Array.isArray(value) ? (value as unknown[]) : [];
  if (typeof latitude !== "number" || typeof longitude !== "number" || !(Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180)) {
    throw new Error("The action names no place.");
  }
  return [latitude, longitude];
}

/** Reads the number that a function has named: one of a telephone, nothing that tells a telephone what to do. */
export function phoneFrom(value: unknown): string {
  const phone = typeof value === "string" || typeof value === "number" ? String(value).trim() : "";
  if (!/^\+?\d[\d\s().\-/]{1,30}$/.test(phone)) {
    throw new Error("The action names no telephone number.");
  }
  return phone;
}

export function phoneAddress(phone: string): string {
  return `tel:${phone.replace(/[^\d+]/g, "")}`;
}

/** Returns the address of a map with a place, or with the way to it. */
export function mapAddress(type: "mapDirection" | "mapLocation", [latitude, longitude]: [number, number]): string {
  return type === "mapDirection"
    ? `https://www.openstreetmap.org/directions?route=%3B${latitude}%2C${longitude}`
    : `https://www.openstreetmap.org/?mlat=${latitude}&mlon=${longitude}#map=16/${latitude}/${longitude}`;
}
