// Numbers, sizes, times and durations as people read them.

import type { Partition } from "./client";

export function size(bytes: number | bigint): string {
  let value = Number(bytes);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

export function count(value: bigint | number): string {
  return value.toLocaleString("en-US");
}

const UNITS: [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

/** "7d" for 604800000; "unlimited" stays. */
export function duration(ms: string): string {
  const value = Number(ms);
  const unit = UNITS.find(([, length]) => value >= length && value % length === 0);
  return ms === "unlimited" ? ms : unit ? `${value / unit[1]}${unit[0]}` : `${ms} ms`;
}

/** Milliseconds of "7d"; "unlimited" is returned unchanged; null if it is neither. */
export function milliseconds(text: string): string | null {
  const found = /^([0-9]{1,9})\s*(d|h|m|s)$/.exec(text.trim());
  const length = UNITS.find(([name]) => name === found?.[2])?.[1];
  if (text.trim() === "unlimited") return "unlimited";
  return found && length ? String(Number(found[1]) * length) : null;
}

/** "2026-01-31 12:00:00.123" in UTC. */
export function moment(iso: string): string {
  return iso.slice(0, 23).replace("T", " ");
}

/** "3 min" for the time that has passed since a moment. */
export function ago(iso: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** A figure that may be absent: then it is unknown, which is not 0. */
export function known(text: string | number | null | undefined, unit = ""): string {
  return text === null || text === undefined ? "unknown" : `${count(BigInt(text))}${unit}`;
}

/** What partitions hold together; null while none was observed. */
export function held(partitions: Partition[]): { records: bigint; bytes: bigint } | null {
  // Nothing was observed yet: that is not the same as nothing being there.
  if (partitions.length === 0) return null;
  let records = 0n;
  let bytes = 0n;
  for (const each of partitions) {
    records += BigInt(each.end_offset) - BigInt(each.start_offset);
    bytes += BigInt(each.bytes);
  }
  return { records, bytes };
}

/** "2026-03-01" of a day, "2026-03-01 10:00" of an hour. */
export function bucketTitle(group: string): string {
  return group.length > 10 ? group.slice(0, 16).replace("T", " ") : group;
}

/** "1 topic", "2 topics", "12,000 records"; for what is not made plural by an s: its plural. */
export function counted(value: bigint | number, noun: string, plural = `${noun}s`): string {
  return `${count(value)} ${value === 1 || value === 1n ? noun : plural}`;
}
