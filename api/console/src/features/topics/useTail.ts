// A live tail: new messages by server-sent events into a bounded buffer, the newest kept.

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { askAgain } from "../../hooks/useSession";
import type { Message } from "../../lib/client";

export const KEPT_MAX = 500;
const PAINT_MS = 150;

export type Tail = {
  messages: Message[];
  seen: number;
  problem: string;
  connected: boolean;
};

const NOTHING: Tail = { messages: [], seen: 0, problem: "", connected: false };

/** Follows while `on`. While `paused` what comes is kept for later and nothing moves. */
export function useTail(path: string, on: boolean, paused: boolean): Tail {
  const queries = useQueryClient();
  const [tail, setTail] = useState(NOTHING);
  const waiting = useRef<Message[]>([]);
  const held = useRef(paused);
  held.current = paused;

  useEffect(() => {
    setTail(NOTHING);
    waiting.current = [];
    if (!on) return;
    const source = new EventSource(path);
    source.onopen = () => setTail((now) => ({ ...now, connected: true, problem: "" }));
    source.onerror = () => {
      setTail((now) => ({ ...now, connected: false }));
      if (source.readyState !== EventSource.CLOSED) return;
      // The browser resumes a lost connection where it was; a refusal ends the source. Continuing
      // from now would leave a hidden gap, so the user decides.
      setTail((now) => ({
        ...now,
        problem: "The stream has ended. Turn Live off and on again to reconnect.",
      }));
      askAgain(queries);
    };
    source.addEventListener("messages", (event) => {
      const found: Message[] = JSON.parse(event.data).messages;
      waiting.current = [...waiting.current, ...found].slice(-KEPT_MAX);
      setTail((now) => ({ ...now, seen: now.seen + found.length }));
    });
    source.addEventListener("refused", (event) => {
      setTail((now) => ({ ...now, problem: JSON.parse(event.data).detail }));
    });
    const timer = setInterval(() => {
      if (held.current || waiting.current.length === 0) return;
      const fresh = waiting.current;
      waiting.current = [];
      setTail((now) => ({ ...now, messages: [...now.messages, ...fresh].slice(-KEPT_MAX) }));
    }, PAINT_MS);
    return () => {
      source.close();
      clearInterval(timer);
    };
  }, [path, on, queries]);
  return tail;
}
