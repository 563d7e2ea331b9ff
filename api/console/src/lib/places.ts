// Each page: its address, its name, the key that follows g, and what its reader must be permitted.

export const PLACES = [
  { to: "/", title: "Home", key: "h", needs: "usage:read" },
  { to: "/topics", title: "Topics", key: "t", needs: "topics:read" },
  { to: "/streams", title: "Streams", key: "s", needs: "streams:read" },
  { to: "/groups", title: "Consumer groups", key: "g", needs: "groups:read" },
  { to: "/usage", title: "Usage and cost", key: "u", needs: "usage:read" },
  { to: "/invoices", title: "Invoices", key: "i", needs: "invoices:read" },
  { to: "/retention", title: "Retention", key: "r", needs: "retention:read" },
  { to: "/reports", title: "Reports", key: "e", needs: "reports:read" },
  { to: "/operations", title: "Operations", key: "o", needs: "operations:read" },
  { to: "/nodes", title: "Nodes", key: "n", needs: "nodes:read" },
  { to: "/keys", title: "API keys", key: "k", needs: "keys:read" },
] as const;

export type Place = (typeof PLACES)[number];
