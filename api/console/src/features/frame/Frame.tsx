// What stands around every page: who is signed in, where one can go, light or dark, the keys.

import {
  Button,
  Masthead,
  MastheadBrand,
  MastheadContent,
  MastheadMain,
  MastheadToggle,
  Nav,
  NavItem,
  NavList,
  Page,
  PageSection,
  PageSidebar,
  PageSidebarBody,
  PageToggleButton,
  SkipToContent,
  Spinner,
  Toolbar,
  ToolbarContent,
  ToolbarGroup,
  ToolbarItem,
} from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { useAct } from "../../hooks/useAct";
import { enter, useSession } from "../../hooks/useSession";
import { signOut } from "../../lib/client";
import { PLACES } from "../../lib/places";
import { Problem } from "../../ui/Problem";
import { Keys } from "./Keys";
import { SignIn } from "./SignIn";
import { ThemeChoice } from "./ThemeChoice";

export function Frame() {
  const queries = useQueryClient();
  const path = useLocation({ select: (location) => location.pathname });
  const who = useSession();
  const leave = useAct({ mutationFn: signOut, onSuccess: () => enter(queries, null) });

  if (who.isPending) return <Spinner aria-label="Loading" />;
  if (who.isError) {
    return (
      <main className="hr-signin">
        <Problem error={who.error} />
      </main>
    );
  }
  if (who.data === null) return <SignIn />;

  const { principal_id: principal, role, permissions } = who.data;
  const places = PLACES.filter(({ needs }) => permissions.includes(needs));
  const masthead = (
    <Masthead>
      <MastheadMain>
        <MastheadToggle>
          <PageToggleButton isHamburgerButton aria-label="Navigation" />
        </MastheadToggle>
        <MastheadBrand>
          <Link to="/" className="hr-brand">
            <img src="/console/favicon.svg" alt="" />
            Headrace
          </Link>
        </MastheadBrand>
      </MastheadMain>
      <MastheadContent>
        <Toolbar isStatic>
          <ToolbarContent>
            <ToolbarGroup align={{ default: "alignEnd" }}>
              <ToolbarItem>
                <Keys places={places} />
              </ToolbarItem>
              <ToolbarItem>
                <ThemeChoice />
              </ToolbarItem>
              <ToolbarItem>
                <Button variant="secondary" onClick={() => leave.mutate()}>
                  Sign out<span className="hr-role"> ({role})</span>
                </Button>
              </ToolbarItem>
            </ToolbarGroup>
          </ToolbarContent>
        </Toolbar>
      </MastheadContent>
    </Masthead>
  );
  const sidebar = (
    <PageSidebar>
      <PageSidebarBody>
        <Nav aria-label="Pages">
          <NavList>
            {places.map(({ to, title }) => {
              const here = to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
              return (
                <NavItem key={to} isActive={here}>
                  <Link to={to} aria-current={here ? "page" : undefined}>
                    {title}
                  </Link>
                </NavItem>
              );
            })}
          </NavList>
        </Nav>
      </PageSidebarBody>
    </PageSidebar>
  );
  return (
    <Page
      masthead={masthead}
      sidebar={sidebar}
      isManagedSidebar
      mainContainerId="content"
      skipToContent={<SkipToContent href="#content">Skip to content</SkipToContent>}
    >
      {leave.isError && (
        <PageSection>
          <Problem error={leave.error} />
        </PageSection>
      )}
      <Outlet key={principal} />
    </Page>
  );
}
