// What is shown at the path of each row of the table of screens. Each screen is loaded when somebody opens it.

import type { ReactElement } from "react";
import { BROKER_PAGES } from "@/screens/broker/pages";
import { GALLERIES, LIBRARIES } from "@/screens/resources/model";
import { SETTINGS_PAGES } from "@/screens/settings/pages";
import { drawing, loadable } from "@/ui/loadable";
import { dashboardScreen } from "./ahead";
import { SCREENS } from "./screens";

const Home = loadable(() => import("@/screens/home/Home"));
const Alarms = loadable(() => import("@/screens/alarms/Alarms"));
const AuditLog = loadable(() => import("@/screens/auditLog/AuditLog"));
const Profile = loadable(() => import("@/screens/account/Profile"));
const Security = loadable(() => import("@/screens/account/Security"));
const Dashboard = drawing(dashboardScreen);
const RuleChain = loadable(() => import("@/screens/ruleChain/RuleChain"));
const RuleChains = loadable(() => import("@/screens/ruleChain/RuleChains"));
const OverloadScreen = loadable(() => import("@/screens/overload/OverloadScreen"));
const Broker = loadable(() => import("@/screens/broker/Broker"));
const Images = loadable(() => import("@/screens/resources/Images"));
const Resources = loadable(() => import("@/screens/resources/Resources"));
const SymbolEditor = loadable(() => import("@/screens/symbols/SymbolEditor"));
const WidgetEditor = loadable(() => import("@/screens/widgets/WidgetEditor"));
const WidgetLibrary = loadable(() => import("@/screens/widgets/WidgetLibrary"));
const Usage = loadable(() => import("@/screens/usage/Usage"));
const Settings = loadable(() => import("@/screens/settings/Settings"));
const EntityList = loadable(() => import("@/entities/EntityList"));
const EntityPage = loadable(() => import("@/entities/EntityPage"));

type Shown = (id: string) => ReactElement;

const SHOWN: Record<string, Shown> = {
  "/home": () => <Home />,
  "/alarms/alarms": () => <Alarms />,
  "/dashboards/:id": (id) => <Dashboard id={id} />,
  "/dashboard/:id": (id) => <Dashboard id={id} />,
  "/ruleChains": () => <RuleChains />,
  "/ruleChains/:id": (id) => <RuleChain key={id} id={id} />,
  "/security-settings/auditLogs": () => <AuditLog />,
  "/overload": () => <OverloadScreen />,
  ...Object.fromEntries(BROKER_PAGES.map(({ path }): [string, Shown] => [path, () => <Broker path={path} />])),
  ...Object.fromEntries(GALLERIES.map((gallery): [string, Shown] => [gallery.path, () => <Images key={gallery.path} gallery={gallery} />])),
  ...Object.fromEntries(LIBRARIES.map((library): [string, Shown] => [library.path, () => <Resources key={library.path} library={library} />])),
  ...Object.fromEntries(
    (["tenant", "system"] as const).flatMap((scope) => {
      const shown: Shown = (id) => <SymbolEditor key={id} scope={scope} id={id} />;
      // The second is the address that ThingsBoard's links have.
      return [`/resources/scada-symbols/${scope}/:id/edit`, `/resources/scada-symbols/${scope}/:id`].map((path): [string, Shown] => [path, shown]);
    }),
  ),
  "/resources/widgets-library/widget-types/:id": (id) => <WidgetEditor key={id} id={id} />,
  "/resources/widgets-library/widgets-bundles": () => <WidgetLibrary />,
  "/usage": () => <Usage />,
  "/account/profile": () => <Profile />,
  "/account/security": () => <Security />,
  ...Object.fromEntries(SETTINGS_PAGES.map((page): [string, Shown] => [page.path, () => <Settings key={page.path} page={page} />])),
};

/** What is shown by path: screens of their own, and the list and the page of each kind of entities. */
export const ROUTES: Readonly<Record<string, Shown>> = {
  ...Object.fromEntries(
    SCREENS.flatMap(({ path, kind }): [string, Shown][] =>
      kind === undefined ? [] : [[path, path === kind.path ? () => <EntityList kind={kind} /> : (id) => <EntityPage key={id} kind={kind} id={id} />]],
    ),
  ),
  ...SHOWN,
};
