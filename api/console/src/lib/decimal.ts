// Exact decimals as the API writes them: sums in whole numbers, never in floats.

type Scaled = { units: bigint; scale: number };

function parsed(text: string): Scaled {
  const [whole, fraction = ""] = text.split(".");
  return { units: BigInt(whole + fraction), scale: fraction.length };
}

function raised(value: Scaled, scale: number): bigint {
  return value.units * 10n ** BigInt(scale - value.scale);
}

function written(units: bigint, scale: number): string {
  const digits = (units < 0n ? -units : units).toString().padStart(scale + 1, "0");
  const at = digits.length - scale;
  return `${units < 0n ? "-" : ""}${digits.slice(0, at)}${scale ? `.${digits.slice(at)}` : ""}`;
}

/** The exact sum; "0" of nothing. */
export function sum(texts: Iterable<string>): string {
  const values = Array.from(texts, parsed);
  const scale = Math.max(0, ...values.map((each) => each.scale));
  const units = values.reduce((total, each) => total + raised(each, scale), 0n);
  return trimmed(written(units, scale));
}

/** Below 0 if the first is the smaller one. */
export function compared(first: string, second: string): number {
  const [a, b] = [parsed(first), parsed(second)];
  const scale = Math.max(a.scale, b.scale);
  const difference = raised(a, scale) - raised(b, scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Rounded to `places`, halves to the even digit, as an invoice line is. */
export function rounded(text: string, places: number): string {
  const value = parsed(text);
  if (value.scale <= places) return written(raised(value, places), places);
  const step = 10n ** BigInt(value.scale - places);
  const size = value.units < 0n ? -value.units : value.units;
  const [kept, rest] = [size / step, (size % step) * 2n];
  const up = rest > step || (rest === step && kept % 2n === 1n) ? 1n : 0n;
  const units = kept + up;
  return written(value.units < 0n ? -units : units, places);
}

/** Without the zeros that say nothing: "0.050" is "0.05". */
export function trimmed(text: string): string {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** "1,234.50 EUR"; what would round to nothing is shown exactly: "0.000000009 EUR". */
export function money(amount: string, currency: string): string {
  const short = rounded(amount, 2);
  const tiny = compared(short, "0") === 0 && compared(amount, "0") !== 0;
  return `${grouped(tiny ? trimmed(amount) : short)} ${currency}`;
}

/** "exact: 1.2345" for what `money` has rounded; empty where it shows all of it. */
export function exactly(amount: string): string {
  const short = rounded(amount, 2);
  const lost = compared(short, amount) !== 0 && compared(short, "0") !== 0;
  return lost ? `exact: ${trimmed(amount)}` : "";
}

/** "1,234.5" for "1234.5". */
export function grouped(text: string): string {
  const [whole, fraction] = text.split(".");
  const lead = whole.replace(/\B(?=([0-9]{3})+$)/g, ",");
  return fraction === undefined ? lead : `${lead}.${fraction}`;
}
