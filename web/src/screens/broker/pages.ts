// The screens of the publish/subscribe broker: their paths and names.

export interface BrokerPage {
  path: string;
  label: string;
}

/** The first one is what the menu leads to; the others are reached from it. */
export const BROKER_PAGES: readonly BrokerPage[] = [
  { path: "/broker", label: "Broker" },
  { path: "/broker/sessions", label: "Client sessions" },
  { path: "/broker/subscriptions", label: "Subscriptions" },
  { path: "/broker/shared-subscriptions", label: "Shared subscriptions" },
  { path: "/broker/retained", label: "Retained messages" },
  { path: "/broker/credentials", label: "Client credentials" },
  { path: "/broker/authentication", label: "Authentication" },
  { path: "/broker/unauthorized", label: "Refused clients" },
  { path: "/broker/blocked", label: "Blocked clients" },
];
