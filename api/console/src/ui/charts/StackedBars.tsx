// Stacked bars and their twin: the same figures as a table. The picture is never the only way.

import "uplot/dist/uPlot.min.css";
import "./charts.css";
import {
  Button,
  Card,
  CardBody,
  CardHeader,
  CardTitle,
  ToggleGroup,
  ToggleGroupItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";
import type { Series, Steps } from "../../lib/stacks";
import { isHatched, optionsOf, stacked } from "./drawing";

const HEIGHT = 272;

type Props = {
  title: string;
  /** What a bar is of: "Day (UTC)". */
  of: string;
  buckets: string[];
  series: Series[];
  totals: string[];
  total: string;
  steps: Steps;
  format: (amount: number) => string;
  onPick?: (bucket: number) => void;
  children?: ReactNode;
};

export function StackedBars(props: Props) {
  const [isTable, setTable] = useState(false);
  const actions = (
    <>
      {props.children}
      <ToggleGroup aria-label={`Show ${props.title} as`} isCompact>
        <ToggleGroupItem text="Chart" isSelected={!isTable} onChange={() => setTable(false)} />
        <ToggleGroupItem text="Table" isSelected={isTable} onChange={() => setTable(true)} />
      </ToggleGroup>
    </>
  );
  return (
    <Card component="section" aria-label={props.title}>
      <CardHeader actions={{ actions, hasNoOffset: true }}>
        <CardTitle component="h2">{props.title}</CardTitle>
      </CardHeader>
      <CardBody>{isTable ? <Twin {...props} /> : <Picture {...props} />}</CardBody>
    </Card>
  );
}

/** Changes whenever the theme does: what was drawn in its colours is drawn again. */
function useTheme(): string {
  const [theme, setTheme] = useState(document.documentElement.className);
  useEffect(() => {
    const seen = new MutationObserver(() => setTheme(document.documentElement.className));
    seen.observe(document.documentElement, { attributeFilter: ["class"] });
    return () => seen.disconnect();
  }, []);
  return theme;
}

function Picture({ title, buckets, series, totals, total, steps, format, onPick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const theme = useTheme();
  // What is drawn, as one text: a new drawing only if something in it is another.
  const drawn = JSON.stringify([buckets, series.map((s) => [s.colour, s.amounts]), steps]);
  const latest = useRef({ format, onPick });
  latest.current = { format, onPick };

  // biome-ignore lint/correctness/useExhaustiveDependencies: theme and drawn stand for what is read.
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const drawing = {
      labels: buckets,
      colours: series.map((each) => each.colour),
      steps,
      format: (amount: number) => latest.current.format(amount),
      onHover: setHovered,
      onPick: (index: number) => latest.current.onPick?.(index),
    };
    const data = stacked(
      series.map((each) => each.amounts),
      buckets.length,
    );
    const plot = new uPlot(optionsOf(drawing, box.clientWidth || 600, HEIGHT), data, box);
    const sized = new ResizeObserver(() =>
      plot.setSize({ width: box.clientWidth, height: HEIGHT }),
    );
    sized.observe(box);
    return () => {
      sized.disconnect();
      plot.destroy();
    };
  }, [theme, drawn]);

  const at = hovered !== null && hovered < buckets.length ? hovered : null;
  const words = useMemo(
    () => `${title}: ${total} total. ${series.map((s) => `${s.name}: ${s.total}`).join(", ")}`,
    [title, total, series],
  );
  return (
    <>
      <ul className="hr-legend">
        <li>
          <strong className="hr-legend-when">{at === null ? "Total" : buckets[at]}</strong>
          <strong>{at === null ? total : totals[at]}</strong>
        </li>
        {series.map((each) => (
          <li key={each.name}>
            <Key colour={each.colour} />
            <span className="hr-legend-name" title={each.name}>
              {each.name}
            </span>
            <span className="hr-muted">{at === null ? each.total : each.texts[at]}</span>
          </li>
        ))}
      </ul>
      <div
        ref={place}
        className={onPick ? "hr-picture hr-picks" : "hr-picture"}
        role="img"
        aria-label={words}
      />
    </>
  );
}

/** The colour of a series, hatched if its bars are. */
export function Key({ colour }: { colour: number }) {
  const hatched = isHatched(colour) ? " hr-hatched" : "";
  return <span className={`hr-key hr-series-${colour}${hatched}`} aria-hidden="true" />;
}

function Twin({ title, of, buckets, series, totals, total, onPick }: Props) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys.
    <div className="hr-wide" tabIndex={0}>
      <Table aria-label={title} variant="compact">
        <Thead>
          <Tr>
            <Th modifier="nowrap">{of}</Th>
            {series.map((each) => (
              <Th key={each.name} className="hr-number" modifier="nowrap">
                {each.name}
              </Th>
            ))}
            <Th className="hr-number" modifier="nowrap">
              Total
            </Th>
          </Tr>
        </Thead>
        <Tbody>
          {buckets.map((bucket, index) => (
            <Tr key={bucket}>
              <Td dataLabel={of} className="hr-nowrap">
                {onPick ? (
                  <Button
                    variant="link"
                    isInline
                    className="hr-nowrap"
                    onClick={() => onPick(index)}
                  >
                    {bucket}
                  </Button>
                ) : (
                  bucket
                )}
              </Td>
              {series.map((each) => (
                <Td key={each.name} dataLabel={each.name} className="hr-number hr-nowrap">
                  {each.texts[index]}
                </Td>
              ))}
              <Td dataLabel="Total" className="hr-number hr-nowrap">
                {totals[index]}
              </Td>
            </Tr>
          ))}
          <Tr>
            <Th scope="row">Total</Th>
            {series.map((each) => (
              <Td key={each.name} dataLabel={each.name} className="hr-number">
                <strong>{each.total}</strong>
              </Td>
            ))}
            <Td dataLabel="Total" className="hr-number">
              <strong>{total}</strong>
            </Td>
          </Tr>
        </Tbody>
      </Table>
    </div>
  );
}
