// The present, by server-sent events: the latest look and the points of the last minutes.

import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { askAgain } from "../../hooks/useSession";

export const POINTS_MAX = 150;
const REOPEN_MS = 5_000;

/** Rates per second; what is absent is unknown. */
export type Point = { at: string; in_bytes?: number; in_records?: number; out_bytes?: number };

export type Now = {
  now: Point;
  stored_bytes: string;
  topics: number;
  groups: number;
  groups_unknown: number;
  worst_lag?: { group: string; project_id: string; records: string; seconds?: number };
  busiest: { topic_id: string; name: string; in_bytes: number }[];
  silent: number;
  warnings: string[];
};

export type Live = { now: Now | null; points: Point[]; connected: boolean };

export function useLive(): Live {
  const [live, setLive] = useState<Live>({ now: null, points: [], connected: false });
  const queries = useQueryClient();
  useEffect(() => {
    let source: EventSource;
    let reopening = 0;
    const open = () => {
      source = new EventSource("/v1/live");
      source.onopen = () => setLive((before) => ({ ...before, connected: true }));
      source.onerror = () => {
        setLive((before) => ({ ...before, connected: false }));
        // A lost connection the browser opens again; an answer that is a refusal, such as of a
        // service that is just starting, ends the source.
        if (source.readyState === EventSource.CLOSED) {
          reopening = window.setTimeout(open, REOPEN_MS);
          // Or the session ended, which an event source does not report.
          askAgain(queries);
        }
      };
      source.addEventListener("history", (event) => {
        const points: Point[] = JSON.parse(event.data).points;
        // Comes again with every connection: what is here already may begin earlier.
        setLive((before) => ({ ...before, points: joined(before.points, points) }));
      });
      source.addEventListener("live", (event) => {
        const now: Now = JSON.parse(event.data);
        setLive((before) => ({ ...before, now, points: joined(before.points, [now.now]) }));
      });
    };
    open();
    return () => {
      window.clearTimeout(reopening);
      source.close();
    };
  }, [queries]);
  return live;
}

function joined(before: Point[], fresh: Point[]): Point[] {
  const last = before.at(-1)?.at ?? "";
  return [...before, ...fresh.filter((each) => each.at > last)].slice(-POINTS_MAX);
}
