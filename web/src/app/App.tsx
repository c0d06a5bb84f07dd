// Who is logged in, and the screen of the present path within the shell.

import { Button, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Component, lazy, Suspense, useEffect, type ReactElement, type ReactNode } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { api, goToLogin } from "@/api/client";
import { currentClaims } from "@/api/session";
import type { EntityId, User } from "@/api/types";
import { KINDS } from "@/entities/kinds";
import { t, useLanguage } from "@/i18n";
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
          <Route path="/dashboards/:id">{({ id }) => <Dashboard id={id} />}</Route>
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

export function App(): ReactElement {
  useLanguage();
  const claims = currentClaims();
  const user = useQuery({
    queryKey: ["own user"],
    enabled: claims !== undefined,
    queryFn: () => api.get<User & { customerId?: EntityId }>("/api/auth/user"),
  });
  const isKnown = claims !== undefined;
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
      <Shell>
        <Screens />
      </Shell>
    </SessionContext>
  );
}
