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
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { session, signOut } from "../api/client";
import { SignIn } from "../pages/SignIn";
import { Problem } from "../widgets/Problem";
import { Keys } from "./Keys";
import { ThemeChoice } from "./ThemeChoice";

// Each page, and what its reader must be permitted.
const PLACES = [
  { to: "/", title: "Home", needs: "usage:read" },
  { to: "/topics", title: "Topics", needs: "topics:read" },
  { to: "/streams", title: "Streams", needs: "streams:read" },
  { to: "/groups", title: "Groups", needs: "groups:read" },
  { to: "/usage", title: "Usage and cost", needs: "usage:read" },
  { to: "/invoices", title: "Invoices", needs: "invoices:read" },
  { to: "/retention", title: "Retention", needs: "retention:read" },
  { to: "/reports", title: "Reports", needs: "reports:read" },
  { to: "/operations", title: "Operations", needs: "operations:read" },
  { to: "/nodes", title: "Nodes", needs: "nodes:read" },
  { to: "/keys", title: "API keys", needs: "keys:read" },
] as const;

export function Frame() {
  const queries = useQueryClient();
  const path = useLocation({ select: (location) => location.pathname });
  const who = useQuery({ queryKey: ["session"], queryFn: session, staleTime: 60_000 });

  if (who.isPending) return <Spinner aria-label="Loading" />;
  if (who.isError) {
    return (
      <main className="hr-signin">
        <Problem error={who.error} />
      </main>
    );
  }
  if (who.data === null) return <SignIn />;

  const { role, permissions } = who.data;
  const leave = async () => {
    await signOut();
    queries.removeQueries({ predicate: (query) => query.queryKey[0] !== "session" });
    queries.setQueryData(["session"], null);
  };
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
                <Keys />
              </ToolbarItem>
              <ToolbarItem>
                <ThemeChoice />
              </ToolbarItem>
              <ToolbarItem>
                <Button variant="secondary" onClick={leave}>
                  Sign out ({role})
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
            {PLACES.filter(({ needs }) => permissions.includes(needs)).map((place) => {
              const { to, title } = place;
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
      <Outlet />
    </Page>
  );
}
