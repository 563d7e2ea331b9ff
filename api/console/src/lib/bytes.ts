// Bytes of messages: base64 to text, JSON or hex, and sizes and times for people.

import type { Partition } from "./client";

const STRICT = new TextDecoder("utf-8", { fatal: true });

export function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

export function base64Of(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** `raw` is the text as it came; `text` is laid out for reading. */
export type Decoded = { text: string; raw: string; kind: "json" | "text" | "binary" | "null" };

/** What bytes most likely are. `null` is no value at all, which is not the empty one. */
export function decoded(base64: string | null | undefined): Decoded {
  if (base64 === null || base64 === undefined) return { text: "null", raw: "null", kind: "null" };
  const bytes = bytesOf(base64);
  let raw: string;
  try {
    raw = STRICT.decode(bytes);
  } catch {
    const hex = hexOf(bytes, 64);
    return { text: hex, raw: hex, kind: "binary" };
  }
  return isJson(raw) ? { text: laidOut(raw), raw, kind: "json" } : { text: raw, raw, kind: "text" };
}

/** The bytes as somebody copies them: the text as it came, or all of it in hex. */
export function textOf(base64: string | null | undefined): string {
  const { raw, kind } = decoded(base64);
  if (kind !== "binary") return raw;
  const bytes = bytesOf(base64 ?? "");
  return hexOf(bytes, bytes.length);
}

function isJson(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON in lines. Its words stay as they are: to parse them would round large numbers. */
function laidOut(json: string): string {
  const words = json.match(/"(?:\\.|[^"\\])*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  let depth = 0;
  let text = "";
  words.forEach((word, index) => {
    const line = () => `\n${"  ".repeat(depth)}`;
    if (word === "{" || word === "[") {
      depth += 1;
      const empty = words[index + 1] === "}" || words[index + 1] === "]";
      text += word + (empty ? "" : line());
    } else if (word === "}" || word === "]") {
      depth -= 1;
      const empty = words[index - 1] === "{" || words[index - 1] === "[";
      text += (empty ? "" : line()) + word;
    } else if (word === ",") text += word + line();
    else text += word === ":" ? ": " : word;
  });
  return text;
}

function hexOf(bytes: Uint8Array, most: number): string {
  const shown = Array.from(bytes.slice(0, most), (byte) => byte.toString(16).padStart(2, "0"));
  return shown.join(" ") + (bytes.length > most ? " …" : "");
}

/** Offset, sixteen bytes in hex, and what of them is ASCII: one line each. */
export function hexDump(base64: string | null | undefined): string {
  const bytes = bytesOf(base64 ?? "");
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = bytes.slice(at, at + 16);
    const ascii = Array.from(part, (b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : "·"));
    const hex = hexOf(part, 16).padEnd(47);
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex}  ${ascii.join("")}`);
  }
  return lines.join("\n") || "(no bytes)";
}

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

/** Milliseconds of "7d", "unlimited" as it is; null if it is neither. */
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

/** A figure that may be absent: then nobody knows it, which is not 0. */
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
