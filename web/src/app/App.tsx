// Who is logged in, and the screen of the present path within the shell.

import { Button, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Component, lazy, Suspense, useEffect, type ReactElement, type ReactNode } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { api, goToLogin } from "@/api/client";
import { currentClaims, enterAsVisitor, SessionEnded, type TokenClaims } from "@/api/session";
import type { EntityId, User } from "@/api/types";
import { KINDS } from "@/entities/kinds";
import { t, useLanguage } from "@/i18n";
import { SETTINGS_PAGES } from "@/screens/settings/pages";
import { messageOf, Problem, Waiting } from "@/ui/feedback";
import { SessionContext } from "./session";
import { Shell } from "./Shell";

const Home = lazy(() => import("@/screens/home/Home"));
const Alarms = lazy(() => import("@/screens/alarms/Alarms"));
const AuditLog = lazy(() => import("@/screens/auditLog/AuditLog"));
const Account = lazy(() => import("@/screens/account/Account"));
const Dashboard = lazy(() => import("@/screens/dashboard/Dashboard"));
const RuleChain = lazy(() => import("@/screens/ruleChain/RuleChain"));
const RuleChains = lazy(() => import("@/screens/ruleChain/RuleChains"));
const Usage = lazy(() => import("@/screens/usage/Usage"));
const Settings = lazy(() => import("@/screens/settings/Settings"));
const EntityList = lazy(() => import("@/entities/EntityList"));
const EntityPage = lazy(() => import("@/entities/EntityPage"));

/** Shows what failed instead of a white page, and leaves the menu usable. */
class ScreenBoundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    return this.state.error === undefined ? (
      this.props.children
    ) : (
      <Stack role="alert" align="start">
        <Title order={1}>{t("This screen has failed")}</Title>
        <Text>{messageOf(this.state.error)}</Text>
        <Button onClick={() => location.reload()}>{t("Load it again")}</Button>
      </Stack>
    );
  }
}

function Screens(): ReactElement {
  const [path] = useLocation();
  return (
    <ScreenBoundary key={path}>
      <Suspense fallback={<Waiting />}>
        <Switch>
          <Route path="/">
            <Redirect to="/home" replace />
          </Route>
          <Route path="/home" component={Home} />
          <Route path="/alarms/alarms" component={Alarms} />
          <Route path="/security-settings/auditLogs" component={AuditLog} />
          <Route path="/account/security" component={Account} />
          <Route path="/usage" component={Usage} />
          {SETTINGS_PAGES.map((page) => (
            <Route key={page.path} path={page.path}>
              <Settings key={page.path} page={page} />
            </Route>
          ))}
          <Route path="/dashboards/:id">{({ id }) => <Dashboard id={id} />}</Route>
          <Route path="/dashboard/:id">{({ id }) => <Dashboard id={id} />}</Route>
          <Route path="/ruleChains" component={RuleChains} />
          <Route path="/ruleChains/:id">{({ id }) => <RuleChain key={id} id={id} />}</Route>
          {KINDS.map((kind) => (
            <Route key={kind.path} path={kind.path}>
              <EntityList kind={kind} />
            </Route>
          ))}
          {KINDS.map((kind) => (
            <Route key={`${kind.path}/:id`} path={`${kind.path}/:id`}>
              {({ id }) => <EntityPage key={id} kind={kind} id={id} />}
            </Route>
          ))}
          {KINDS.map((kind) => (
            <Route key={`${kind.path}/:id/details`} path={`${kind.path}/:id/details`}>
              {({ id }) => <EntityPage key={id} kind={kind} id={id} />}
            </Route>
          ))}
          <Route>
            <Title order={1}>{t("There is no page here")}</Title>
          </Route>
        </Switch>
      </Suspense>
    </ScreenBoundary>
  );
}

type OwnUser = User & { customerId?: EntityId };

/** Who came by a public link has no account, so what there is to know is in the token. */
function visitorOf(claims: TokenClaims): OwnUser {
  return { id: { entityType: "USER", id: claims.userId }, authority: "CUSTOMER_USER", email: t("Visitor") };
}

/** Returns whoever uses this page; nobody leads to the log-in page. */
async function loadUser(): Promise<OwnUser> {
  const publicId = new URLSearchParams(location.search).get("publicId");
  if (publicId !== null && BARE.test(location.pathname)) {
    await enterAsVisitor(publicId).catch((error: unknown) => {
      throw error instanceof SessionEnded ? new Error("This public link does not work any more. Ask whoever gave it to you for a new one.") : error;
    });
  }
  const claims = currentClaims();
  return claims?.isPublic === true ? visitorOf(claims) : api.get<OwnUser>("/api/auth/user");
}

/** Paths of a dashboard alone, without menu. */
const BARE = /^\/dashboard\//;

export function App(): ReactElement {
  useLanguage();
  const [path] = useLocation();
  const isPublic = BARE.test(path) && new URLSearchParams(location.search).has("publicId");
  const isKnown = isPublic || currentClaims() !== undefined;
  const user = useQuery({ queryKey: ["own user"], enabled: isKnown, queryFn: loadUser });
  useEffect(() => {
    if (!isKnown) {
      goToLogin();
    }
  }, [isKnown]);
  if (user.isPending) {
    return <Waiting />;
  }
  if (user.isError) {
    return <Problem error={user.error} />;
  }
  const session = { user: user.data, authority: user.data.authority, customerId: user.data.customerId?.id ?? "" };
  return (
    <SessionContext value={session}>
      {BARE.test(path) ? (
        <main>
          <Screens />
        </main>
      ) : (
        <Shell>
          <Screens />
        </Shell>
      )}
    </SessionContext>
  );
}
