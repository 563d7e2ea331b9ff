import "@patternfly/react-core/dist/styles/base.css";
import "./style.css";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  RouterProvider,
} from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Frame } from "./features/frame/Frame";
import { NotFound } from "./features/frame/NotFound";
import { Group } from "./features/groups/Group";
import { Groups } from "./features/groups/Groups";
import { ApiKeys } from "./features/keys/ApiKeys";
import { Nodes } from "./features/nodes/Nodes";
import { Operations } from "./features/operations/Operations";
import { retentionSearch } from "./features/retention/search";
import { Streams } from "./features/streams/Streams";
import { topicSearch } from "./features/topics/search";
import { Topic } from "./features/topics/Topic";
import { Topics } from "./features/topics/Topics";
import { usageSearch } from "./features/usage/search";
import { askAgain, enter } from "./hooks/useSession";
import { ApiError } from "./lib/client";

const root = createRootRoute({ component: Frame, notFoundComponent: NotFound });
// Charts come when they are asked for, so that what all pages share stays small.
const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  component: lazyRouteComponent(() => import("./features/home/Home"), "Home"),
});
const topics = createRoute({ getParentRoute: () => root, path: "/topics", component: Topics });
const streams = createRoute({ getParentRoute: () => root, path: "/streams", component: Streams });
const groups = createRoute({ getParentRoute: () => root, path: "/groups", component: Groups });
const group = createRoute({
  getParentRoute: () => root,
  path: "/groups/$name",
  component: Group,
  validateSearch: (given: Record<string, unknown>): { project?: string } => ({
    project: /^prj_[0-9a-z]{26}$/.test(String(given.project)) ? String(given.project) : undefined,
  }),
});
const operations = createRoute({
  getParentRoute: () => root,
  path: "/operations",
  component: Operations,
});
const nodes = createRoute({ getParentRoute: () => root, path: "/nodes", component: Nodes });
const keys = createRoute({ getParentRoute: () => root, path: "/keys", component: ApiKeys });
const topic = createRoute({
  getParentRoute: () => root,
  path: "/topics/$topicId",
  component: Topic,
  validateSearch: topicSearch,
});

// Pages with charts come when they are asked for, so that the first one stays small.
const usage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  component: lazyRouteComponent(() => import("./features/usage/Usage"), "Usage"),
  validateSearch: usageSearch,
});
const invoices = createRoute({
  getParentRoute: () => root,
  path: "/invoices",
  component: lazyRouteComponent(() => import("./features/invoices/Invoices"), "Invoices"),
});
const invoice = createRoute({
  getParentRoute: () => root,
  path: "/invoices/$invoiceId",
  component: lazyRouteComponent(() => import("./features/invoices/Invoice"), "Invoice"),
});
const retention = createRoute({
  getParentRoute: () => root,
  path: "/retention",
  component: lazyRouteComponent(() => import("./features/retention/Retention"), "Retention"),
  validateSearch: retentionSearch,
});
const runs = createRoute({
  getParentRoute: () => root,
  path: "/reports",
  component: lazyRouteComponent(() => import("./features/reports/Runs"), "Runs"),
});
const run = createRoute({
  getParentRoute: () => root,
  path: "/reports/$runId",
  component: lazyRouteComponent(() => import("./features/reports/Run"), "Run"),
});

const router = createRouter({
  routeTree: root.addChildren([
    home,
    topics,
    topic,
    streams,
    groups,
    group,
    usage,
    invoices,
    invoice,
    retention,
    runs,
    run,
    operations,
    nodes,
    keys,
  ]),
  basepath: "/console",
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

/** A session that ended makes room for the page that asks for the password; one of another tab
is learnt. */
function refused(error: Error): void {
  if (!(error instanceof ApiError)) return;
  if (error.status === 401) enter(queries, null);
  else if (error.problem.code === "CSRF_TOKEN_INVALID") askAgain(queries);
}

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: refused }),
  mutationCache: new MutationCache({ onError: refused }),
  defaultOptions: {
    queries: {
      // A node learns the key of a new session within a moment; until then the answer is 503.
      // What the request itself is refused for is no better a second time.
      retry: (failures, error) => {
        if (!(error instanceof ApiError)) return failures < 1;
        return failures < (error.status === 503 ? 5 : error.status >= 500 ? 1 : 0);
      },
      retryDelay: 1000,
      refetchOnWindowFocus: false,
      staleTime: 1000,
    },
  },
});

const place = document.getElementById("root");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
