// Who is logged in, and the screen of the present path within the shell.

import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Component, useEffect, type ReactElement, type ReactNode } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { api, goToLogin } from "@/api/client";
import { bringsLogIn, currentClaims, enterAsVisitor, EXPIRED_LINKS, loginPath, SessionEnded, withoutLogIn, type TokenClaims } from "@/api/session";
import type { User } from "@/api/types";
import { t, takeLanguage, useLanguage } from "@/i18n";
import { messageOf, Problem, TextLink, Waiting } from "@/ui/feedback";
import { useScreenTitle } from "@/ui/pageTitle";
import { ConnectionBanner } from "./ConnectionBanner";
import { BARE, beginOf, detourOf, onlyOf } from "./begin";
import { ROUTES } from "./routes";
import { SCREENS } from "./screens";
import { takeSearchWish } from "./searchWish";
import { SessionContext, useSession } from "./session";
import { Shell } from "./Shell";
import { UserMenu } from "./UserMenu";

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
        <Text>{t("Load it again. If it stays so, tell the administrator of the installation what you did.")}</Text>
        <Button onClick={() => location.reload()}>{t("Load it again")}</Button>
      </Stack>
    );
  }
}

/** Says so where a screen is not for the role; the server would refuse it as well. */
function NoAccess(): ReactElement {
  return (
    <Stack align="start">
      <Title order={1}>{t("This is not for your role")}</Title>
      <Text>{t("Your role has no access to this.")} {t("Ask your administrator if you need to do this.")}</Text>
      <TextLink to="/home">{t("Home")}</TextLink>
    </Stack>
  );
}

function NoPage(): ReactElement {
  useScreenTitle(t("There is no page here"));
  return (
    <Stack align="start">
      <Title order={1}>{t("There is no page here")}</Title>
      <Text>{t("The address may be mistyped, or what was here is deleted. The search (Ctrl K) finds all that there is.")}</Text>
      <TextLink to="/home">{t("Home")}</TextLink>
    </Stack>
  );
}

/** A screen under its name. */
function Titled({ label, children }: { label: string; children: ReactNode }): ReactNode {
  useScreenTitle(label);
  return children;
}

function Screens(): ReactElement {
  const [path] = useLocation();
  const { user, authority } = useSession();
  return (
    <ScreenBoundary key={path}>
        <Switch>
          <Route path="/">
            <Redirect to={beginOf(user)} replace />
          </Route>
          {SCREENS.map(({ path: pattern, label, roles }) => (
            <Route key={pattern} path={pattern}>
              {(params) => <Titled label={t(label)}>{roles.includes(authority) ? ROUTES[pattern]?.((params as { id?: string }).id ?? "") : <NoAccess />}</Titled>}
            </Route>
          ))}
          <Route>
            <NoPage />
          </Route>
        </Switch>
    </ScreenBoundary>
  );
}

/** Who came by a public link has no account, so what there is to know is in the token. */
function visitorOf(claims: TokenClaims): User {
  return { id: { entityType: "USER", id: claims.userId }, authority: "CUSTOMER_USER", email: t("Visitor") };
}

/** Returns whoever uses this page; nobody leads to the log-in page. */
async function loadUser(): Promise<User> {
  const publicId = new URLSearchParams(location.search).get("publicId");
  if (publicId !== null && BARE.test(location.pathname)) {
    await enterAsVisitor(publicId).catch((error: unknown) => {
      throw error instanceof SessionEnded ? new Error("This public link does not work any more. Ask whoever gave it to you for a new one.") : error;
    });
  }
  const claims = currentClaims();
  return claims?.isPublic === true ? visitorOf(claims) : api.get<User>("/api/auth/user");
}

export function App(): ReactElement {
  useLanguage();
  const [path] = useLocation();
  const isPublic = BARE.test(path) && new URLSearchParams(location.search).has("publicId");
  const isTooOld = path in EXPIRED_LINKS;
  const isKnown = (isPublic || currentClaims() !== undefined) && !isTooOld;
  const user = useQuery({ queryKey: ["own user"], enabled: isKnown, queryFn: loadUser });
  useEffect(() => {
    if (isTooOld) {
      location.replace(loginPath(path));
    } else if (!isKnown) {
      goToLogin();
    }
  }, [isKnown, isTooOld, path]);
  const wanted = user.data?.additionalInfo?.lang;
  useEffect(() => {
    void takeLanguage(wanted);
  }, [wanted]);
  useEffect(() => {
    // Not before the session has turned out to hold: otherwise it is what the log-in page needs.
    if (user.isSuccess && bringsLogIn(new URLSearchParams(location.search))) {
      history.replaceState(history.state, "", withoutLogIn(location.href));
    }
  }, [user.isSuccess]);
  const only = user.data === undefined ? undefined : onlyOf(user.data);
  const hasNoSearch = user.isError || only !== undefined;
  useEffect(() => {
    if (hasNoSearch) {
      // Who is given one screen only has no search that would take it, nor has who can't be told: the keys are the browser's again.
      takeSearchWish();
    }
  }, [hasNoSearch]);
  if (user.isPending) {
    return <Waiting />;
  }
  if (user.isError) {
    return <Problem error={user.error} />;
  }
  const detour = detourOf(user.data, path);
  if (detour !== undefined) {
    return <Redirect to={detour} replace />;
  }
  const isOnly = only !== undefined;
  const session = { user: user.data, authority: user.data.authority, customerId: user.data.customerId?.id ?? "" };
  return (
    <SessionContext value={session}>
      {BARE.test(path) || isOnly ? (
        <main>
          <ConnectionBanner />
          {isOnly && (
            <Group justify="flex-end" px="md" pt="xs">
              {!BARE.test(path) && <TextLink to="/">{t("Dashboard")}</TextLink>}
              <UserMenu />
            </Group>
          )}
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
