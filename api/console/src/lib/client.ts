// Calls of the control plane's public API. Owns the session's CSRF token and the shape of errors.

import type { components } from "../../build/schema";

export type Topic = components["schemas"]["TopicBody"];
export type TopicSpec = components["schemas"]["TopicSpec"];
export type Stream = components["schemas"]["StreamBody"];
export type Partition = components["schemas"]["PartitionBody"];
export type Condition = components["schemas"]["ConditionBody"];
export type Message = components["schemas"]["MessageBody"];
export type MessagePage = components["schemas"]["MessagePage"];
export type Explanation = components["schemas"]["ExplanationBody"];
export type Group = components["schemas"]["GroupBody"];
export type GroupDetail = components["schemas"]["GroupDetail"];
export type Node = components["schemas"]["NodeBody"];
export type Cluster = components["schemas"]["ClusterBody"];
export type Operation = components["schemas"]["OperationBody"];
export type ApiKey = components["schemas"]["ApiKeyBody"];
export type CreatedKey = components["schemas"]["ApiKeyCreatedBody"];
export type Usage = components["schemas"]["UsageBody"];
export type Problem = components["schemas"]["Problem"];
export type Page<Item> = { items: Item[]; next_page_token?: string | null };
export type Plan = Record<string, unknown> & {
  data_loss?: { bytes: string; records: string };
  warnings?: string[];
};

export type Session = {
  principal_id: string;
  organization_id: string;
  role: string;
  operator: boolean;
  /** As `topics:read`: what it may do; a page that it may not read is not offered. */
  permissions: string[];
  csrf_token: string;
};

/** A failed request: what, why, and what to do next. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.detail ?? `The API returned status ${status}.`);
  }
}

// The longest that the API holds an answer back is a minute.
const ANSWER_MS_MAX = 75_000;

let csrf = "";

type Options = { body?: unknown; etag?: string; patch?: boolean };

/** One call. Answers the body; undefined if there is none. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRF-Token"] = csrf;
  if (options.etag) headers["If-Match"] = `"${options.etag}"`;
  if (options.body !== undefined) {
    headers["Content-Type"] = options.patch ? "application/merge-patch+json" : "application/json";
  }
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
  } catch {
    throw new ApiError(0, {
      code: "UNREACHABLE",
      detail: "The control plane is not responding.",
      hint: "Start it with `headrace up`, or check the network.",
    });
  }
  if (response.status === 204) return undefined as T;
  const body: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(response.status, (body ?? {}) as Partial<Problem>);
  if (body === undefined) {
    // It is unknown then whether a write was applied: that is not a success.
    throw new ApiError(0, {
      code: "ANSWER_CUT_OFF",
      detail: "The response was incomplete or did not come from the control plane.",
      hint: "Reload the page to see the current state. A proxy may have cut off the response.",
    });
  }
  return body as T;
}

/** Every item of a list, page by page. */
export async function all<Item>(path: string): Promise<Item[]> {
  const items: Item[] = [];
  let token = "";
  do {
    const query = `page_size=1000${token && `&page_token=${encodeURIComponent(token)}`}`;
    const page: Page<Item> = await call("GET", `${path}${path.includes("?") ? "&" : "?"}${query}`);
    items.push(...page.items);
    token = page.next_page_token ?? "";
  } while (token);
  return items;
}

function kept(session: Session): Session {
  csrf = session.csrf_token;
  return session;
}

/** The signed-in user, or null. */
export async function session(): Promise<Session | null> {
  const found = await call<Session | null>("GET", "/console/session");
  return found && kept(found);
}

export async function signIn(secret: string): Promise<Session> {
  return kept(await call<Session>("POST", "/console/session", { body: { secret } }));
}

export async function signOut(): Promise<void> {
  await call("DELETE", "/console/session");
  csrf = "";
}
