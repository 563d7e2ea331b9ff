// Throughput over the last minutes: a picture, and the same as a table for readers who cannot see it.

import { Button } from "@patternfly/react-core";
import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { size } from "../../lib/format";
import { type Column, DataTable } from "../../ui/DataTable";
import type { Point } from "./useLive";

const HEIGHT = 240;
const SPAN_SECONDS = 300;
// Looks come every two seconds; what lies further apart was not looked at in between.
const GAP_SECONDS = 10;
const ROWS_MAX = 30;

type Props = { points: Point[]; out: boolean };

function colours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    text: colour("--pf-t--global--text--color--regular"),
    grid: colour("--pf-t--global--border--color--default"),
    into: colour("--hr-in"),
    soft: colour("--hr-in-soft"),
    out: colour("--hr-out"),
  };
}

function clock(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(11, 19);
}

function options(width: number, out: boolean): UPlot.Options {
  const { text, grid, into, soft, out: outwards } = colours();
  const lines = { stroke: grid, width: 1 };
  const axis = { stroke: text, grid: lines, ticks: lines };
  // Without a pointer, the legend shows the latest values.
  const rate = (plot: UPlot, value: number | null, index: number, at: number | null) => {
    const shown = at === null ? plot.data[index].at(-1) : value;
    return shown === null || shown === undefined ? "unknown" : `${size(shown)}/s`;
  };
  return {
    width,
    height: HEIGHT,
    scales: {
      x: { range: (_, __, last) => [last - SPAN_SECONDS, last] },
      y: { range: (_, __, most) => [0, Math.max((most ?? 0) * 1.1, 1024)] },
    },
    axes: [
      { ...axis, space: 90, values: (_, ticks) => ticks.map(clock) },
      {
        ...axis,
        size: 84,
        incrs: Array.from({ length: 40 }, (_, power) => 2 ** power),
        values: (_, ticks) => ticks.map((each) => `${size(each)}/s`),
      },
    ],
    series: [
      {
        label: "UTC",
        value: (plot, value, _, at) =>
          clock(at === null ? (plot.data[0].at(-1) ?? 0) : (value ?? 0)),
      },
      {
        label: "Ingress",
        stroke: into,
        fill: soft,
        width: 2,
        value: rate,
        points: { show: false },
      },
      ...(out
        ? [
            {
              label: "Egress",
              stroke: outwards,
              width: 2,
              dash: [6, 4],
              value: rate,
              points: { show: false },
            },
          ]
        : []),
    ],
  };
}

function series(points: Point[], out: boolean): UPlot.AlignedData {
  const times: number[] = [];
  const into: (number | null)[] = [];
  const outwards: (number | null)[] = [];
  for (const each of points) {
    const time = Date.parse(each.at) / 1000;
    const before = times.at(-1);
    if (before !== undefined && time - before > GAP_SECONDS) {
      times.push(before + 1);
      into.push(null);
      outwards.push(null);
    }
    times.push(time);
    into.push(each.in_bytes ?? null);
    outwards.push(each.out_bytes ?? null);
  }
  return out ? [times, into, outwards] : [times, into];
}

export function RateChart({ points, out }: Props) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure className="hr-chart">
      <figcaption>
        <strong>Throughput, last 5 minutes</strong>
        <Button variant="link" onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </Button>
      </figcaption>
      <Since points={points} />
      {asTable ? <Twin points={points} out={out} /> : <Picture points={points} out={out} />}
    </figure>
  );
}

/** Rates are recorded while the page is open: shown until the chart is full. */
function Since({ points }: { points: Point[] }) {
  const first = Date.parse(points[0]?.at ?? "") / 1000;
  const last = Date.parse(points.at(-1)?.at ?? "") / 1000;
  if (Number.isNaN(first) || last - first > SPAN_SECONDS - 2 * GAP_SECONDS) return null;
  return (
    <p className="hr-muted">
      Measured since {clock(first)} UTC. Rates are measured only while this page is open.
    </p>
  );
}

function Picture({ points, out }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<UPlot | null>(null);
  const latest = useRef(points);
  latest.current = points;
  useEffect(() => {
    const holder = place.current;
    if (!holder) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new UPlot(
        options(holder.clientWidth, out),
        series(latest.current, out),
        holder,
      );
    };
    draw();
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: holder.clientWidth, height: HEIGHT }),
    );
    resized.observe(holder);
    // The colours are those of the theme.
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["class"] });
    return () => {
      resized.disconnect();
      themed.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [out]);
  useEffect(() => plot.current?.setData(series(points, out)), [points, out]);
  const last = points.at(-1);
  const said = last?.in_bytes === undefined ? "unknown" : `${size(last.in_bytes)} per second`;
  return (
    <div ref={place} role="img" aria-label={`Throughput over time. Current ingress: ${said}`} />
  );
}

const rate = (value?: number) => (value === undefined ? "unknown" : `${size(value)}/s`);

const COLUMNS: Column<Point>[] = [
  { title: "Time (UTC)", cell: (each) => each.at.slice(11, 19) },
  { title: "Ingress", isNumber: true, cell: (each) => rate(each.in_bytes) },
  {
    title: "Records",
    isNumber: true,
    cell: (each) => (each.in_records === undefined ? "unknown" : `${each.in_records}/s`),
  },
];
const OUT: Column<Point> = {
  title: "Egress",
  isNumber: true,
  cell: (each) => rate(each.out_bytes),
};

function Twin({ points, out }: Props) {
  return (
    <DataTable
      label="Throughput"
      columns={out ? [...COLUMNS, OUT] : COLUMNS}
      rows={points.slice(-ROWS_MAX).reverse()}
      keyOf={(each) => each.at}
      isCompact
    />
  );
}
