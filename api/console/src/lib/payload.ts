// Bytes of messages: from base64 to text, JSON or hex.

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

/** The bytes for the clipboard: the text unchanged, or all bytes in hex. */
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
