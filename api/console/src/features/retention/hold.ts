// A legal hold on the pages: its state, its scope, and the data that it keeps.

import type { LabelProps } from "@patternfly/react-core";
import type { components } from "../../../build/schema";
import { count, size } from "../../lib/format";

export type Hold = components["schemas"]["LegalHoldBody"];

type Word = { text: string; status: LabelProps["status"] };

/** A hold is active once the log of every partition has applied it, and not before. */
export function wordOf(hold: Hold): Word {
  const stalled = hold.status.conditions.find((each) => each.type === "Stalled");
  const open = hold.state === "PROPAGATING" || hold.state === "RELEASING";
  if (open && stalled?.status === "True") return { text: "Stalled", status: "danger" };
  if (hold.state === "ACTIVE") return { text: "Active", status: "success" };
  if (hold.state === "PROPAGATING") return { text: "Propagating", status: "warning" };
  if (hold.state === "RELEASING") return { text: "Releasing", status: "info" };
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

/** The data that only holds keep; unknown until a partition has reported it. */
export function keptBy(hold: Hold): string {
  const { partitions } = hold.status;
  if (hold.state === "RELEASED") return "–";
  if (partitions.length === 0) return "unknown";
  return size(partitions.reduce((total, each) => total + BigInt(each.held_bytes), 0n));
}

export function isOver(hold: Hold): boolean {
  return hold.state === "RELEASED";
}
