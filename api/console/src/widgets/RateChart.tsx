// Throughput over the last minutes: a picture, and the same as a table for whoever cannot see it.

import { Button } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { size } from "../api/bytes";
import type { Point } from "./useLive";

const HEIGHT = 240;
const ROWS_MAX = 30;

type Props = { points: Point[]; out: boolean };

function colours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--pf-t--${name}`).trim();
  return {
    text: colour("global--text--color--regular"),
    grid: colour("global--border--color--default"),
    into: colour("chart--color--blue--300"),
    out: colour("chart--color--orange--300"),
  };
}

function options(width: number, out: boolean): UPlot.Options {
  const { text, grid, into, out: outwards } = colours();
  const axis = {
    stroke: text,
    grid: { stroke: grid, width: 1 },
    ticks: { stroke: grid, width: 1 },
  };
  const rate = (_: UPlot, value: number | null) =>
    value === null || value === undefined ? "unknown" : `${size(value)}/s`;
  return {
    width,
    height: HEIGHT,
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1024)] } },
    axes: [
      axis,
      { ...axis, size: 84, values: (_, ticks) => ticks.map((each) => `${size(each)}/s`) },
    ],
    series: [
      { label: "UTC" },
      { label: "In", stroke: into, fill: `${into}33`, width: 2, value: rate },
      ...(out ? [{ label: "Out", stroke: outwards, width: 2, dash: [6, 4], value: rate }] : []),
    ],
  };
}

function series(points: Point[], out: boolean): UPlot.AlignedData {
  const times = points.map((each) => Date.parse(each.at) / 1000);
  const into = points.map((each) => each.in_bytes ?? null);
  return out ? [times, into, points.map((each) => each.out_bytes ?? null)] : [times, into];
}

export function RateChart({ points, out }: Props) {
  const [asTable, setAsTable] = useState(false);
  return (
    <figure className="hr-chart">
      <figcaption>
        <strong>Throughput of the last minutes</strong>
        <Button variant="link" onClick={() => setAsTable(!asTable)}>
          {asTable ? "Show as chart" : "Show as table"}
        </Button>
      </figcaption>
      {asTable ? <Twin points={points} out={out} /> : <Picture points={points} out={out} />}
    </figure>
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
  return <div ref={place} role="img" aria-label={`Throughput over time. In, just now: ${said}`} />;
}

function Twin({ points, out }: Props) {
  const rate = (value?: number) => (value === undefined ? "unknown" : `${size(value)}/s`);
  return (
    <Table aria-label="Throughput" variant="compact">
      <Thead>
        <Tr>
          <Th>Time (UTC)</Th>
          <Th className="hr-number">In</Th>
          <Th className="hr-number">Records in</Th>
          {out && <Th className="hr-number">Out</Th>}
        </Tr>
      </Thead>
      <Tbody>
        {points
          .slice(-ROWS_MAX)
          .reverse()
          .map((each) => (
            <Tr key={each.at}>
              <Td dataLabel="Time (UTC)">{each.at.slice(11, 19)}</Td>
              <Td dataLabel="In" className="hr-number">
                {rate(each.in_bytes)}
              </Td>
              <Td dataLabel="Records in" className="hr-number">
                {each.in_records === undefined ? "unknown" : `${each.in_records}/s`}
              </Td>
              {out && (
                <Td dataLabel="Out" className="hr-number">
                  {rate(each.out_bytes)}
                </Td>
              )}
            </Tr>
          ))}
      </Tbody>
    </Table>
  );
}
