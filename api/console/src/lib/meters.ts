// The names of the meters, and their quantities with units.

import { grouped, rounded, trimmed } from "./decimal";
import { size } from "./format";
import type { Steps } from "./stacks";

type Meter = { title: string; shown: (quantity: string) => string; steps: Steps };

const bytes = (quantity: string) => size(BigInt(quantity));
const number = (quantity: string) => grouped(trimmed(quantity));
const hours = (quantity: string) => `${grouped(trimmed(rounded(divided(quantity, 3600n), 2)))} h`;

/** The quotient to six places; what is shown of it has two. */
function divided(quantity: string, by: bigint): string {
  const millionths = (BigInt(quantity) * 1_000_000n) / by;
  const digits = millionths.toString().padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

function byteHours(quantity: string): string {
  return `${size(BigInt(quantity) / 3600n)}·h`;
}

export const METERS: Record<string, Meter> = {
  ingress_bytes: { title: "Ingress", shown: bytes, steps: "binary" },
  egress_bytes: { title: "Egress", shown: bytes, steps: "binary" },
  stored_byte_seconds: { title: "Stored", shown: byteHours, steps: "decimal" },
  partition_seconds: { title: "Partitions", shown: hours, steps: "decimal" },
  requests: { title: "Requests", shown: number, steps: "decimal" },
  records: { title: "Records", shown: number, steps: "decimal" },
};

export function meterTitle(meter: string): string {
  return METERS[meter]?.title ?? meter;
}

/** "1.5 GiB" of ingress, "12 h" of partitions; a meter that is new here is shown with its unit. */
export function shown(meter: string, quantity: string, unit: string): string {
  return METERS[meter]?.shown(quantity) ?? `${number(quantity)} ${unit}`;
}
