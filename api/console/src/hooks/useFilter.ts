import { useState } from "react";

export type Filter<Item> = { text: string; setText: (text: string) => void; found: Item[] };

/** The items that a search finds: those whose text has its words, ignoring case. */
export function useFilter<Item>(items: Item[], textOf: (item: Item) => string): Filter<Item> {
  const [text, setText] = useState("");
  const words = text.toLowerCase();
  return { text, setText, found: items.filter((it) => textOf(it).toLowerCase().includes(words)) };
}
