// What the pages say of a legal hold: its state in a word, its scope, what it keeps.

import type { LabelProps } from "@patternfly/react-core";
import type { components } from "../../../build/schema";
import { count, size } from "../../lib/format";

export type Hold = components["schemas"]["LegalHoldBody"];

type Word = { text: string; status: LabelProps["status"] };

/** A hold counts once the partitions' own logs know it; until then that is what is said. */
export function wordOf(hold: Hold): Word {
  const stalled = hold.status.conditions.find((each) => each.type === "Stalled");
  const open = hold.state === "PROPAGATING" || hold.state === "RELEASING";
  if (open && stalled?.status === "True") return { text: "Stalled", status: "danger" };
  if (hold.state === "ACTIVE") return { text: "In force", status: "success" };
  if (hold.state === "PROPAGATING") return { text: "Not in force yet", status: "warning" };
  if (hold.state === "RELEASING") return { text: "Being released", status: "info" };
  return { text: hold.state === "RELEASED" ? "Released" : hold.state, status: undefined };
}

export function scopeOf(hold: Hold): string {
  const where =
    hold.partition === undefined || hold.partition === null
      ? "all partitions"
      : `partition ${hold.partition}`;
  const from = hold.from_offset ? `, from offset ${count(BigInt(hold.from_offset))}` : "";
  return `${where}${from}`;
}

/** What policies would have taken, were it not held; unknown until a partition was looked at. */
export function keptBy(hold: Hold): string {
  const { partitions } = hold.status;
  if (hold.state === "RELEASED") return "–";
  if (partitions.length === 0) return "unknown";
  return size(partitions.reduce((total, each) => total + BigInt(each.held_bytes), 0n));
}

export function isOver(hold: Hold): boolean {
  return hold.state === "RELEASED";
}
