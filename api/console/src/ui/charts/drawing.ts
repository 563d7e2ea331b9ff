// How stacked bars are drawn by uPlot: colours of the theme, hatching, axes. No React in here.

import uPlot from "uplot";
import type { Steps } from "../../lib/stacks";

const BINARY = Array.from({ length: 61 }, (_, power) => 2 ** power);

function token(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Every second colour is hatched, so that no two neighbours differ by hue alone. */
export function isHatched(colour: number): boolean {
  return colour % 2 === 1;
}

function fillOf(index: number): string | CanvasPattern {
  const colour = token(`--hr-series-${index}`);
  if (!isHatched(index)) return colour;
  const size = 8 * devicePixelRatio;
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.fillStyle = colour;
  pen.fillRect(0, 0, size, size);
  pen.strokeStyle = "rgb(255 255 255 / 55%)";
  pen.lineWidth = size / 4;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift - size / 2, size * 1.5);
    pen.lineTo(shift + size * 1.5, -size / 2);
  }
  pen.stroke();
  return pen.createPattern(tile as unknown as HTMLCanvasElement, "repeat") ?? colour;
}

/** What uPlot is given: sums from the top down, so that a lower bar is drawn over a higher one. */
export function stacked(series: number[][], buckets: number): uPlot.AlignedData {
  const sums: (number | null)[][] = [];
  let below = new Array<number>(buckets).fill(0);
  for (const amounts of series) {
    below = below.map((amount, index) => amount + (amounts[index] ?? 0));
    // Nothing is drawn of nothing, not even the edge of a bar.
    sums.push(below.map((amount, index) => (amounts[index] ? amount : null)));
  }
  return [Array.from({ length: buckets }, (_, index) => index), ...sums.toReversed()];
}

type Drawing = {
  labels: string[];
  colours: number[];
  steps: Steps;
  format: (amount: number) => string;
  onHover: (index: number | null) => void;
  onPick?: (index: number) => void;
};

/** As many labels as fit: every n-th. */
function labelled(plot: uPlot, labels: string[]): number[] {
  const length = Math.max(...labels.map((label) => label.length));
  const room = Math.max(1, Math.floor(plot.bbox.width / devicePixelRatio / (length * 7 + 20)));
  const every = Math.max(1, Math.ceil(labels.length / room));
  return labels.map((_, index) => index).filter((index) => index % every === 0);
}

export function optionsOf(drawing: Drawing, width: number, height: number): uPlot.Options {
  const { labels, format } = drawing;
  const ink = token("--pf-t--global--text--color--subtle");
  const line = token("--pf-t--global--border--color--default");
  const surface = token("--pf-t--global--background--color--primary--default");
  const font = `12px ${token("--pf-t--global--font--family--body") || "sans-serif"}`;
  let hovered: number | null = null;

  const hover = (plot: uPlot) => {
    const inside = (plot.cursor.left ?? -1) >= 0;
    const next = inside ? (plot.cursor.idx ?? null) : null;
    if (next === hovered) return;
    hovered = next;
    plot.redraw(false, false);
    drawing.onHover(next);
  };
  const shade = (plot: uPlot) => {
    if (hovered === null) return;
    const left = plot.valToPos(hovered - 0.5, "x", true);
    const right = plot.valToPos(hovered + 0.5, "x", true);
    plot.ctx.save();
    plot.ctx.fillStyle = line;
    plot.ctx.globalAlpha = 0.45;
    plot.ctx.fillRect(left, plot.bbox.top, right - left, plot.bbox.height);
    plot.ctx.restore();
  };
  const pick = (plot: uPlot) => {
    plot.over.addEventListener("click", () => {
      if (hovered !== null) drawing.onPick?.(hovered);
    });
  };
  const bars = uPlot.paths.bars?.({ size: [0.72, 64], gap: 0 });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.6, labels.length - 0.4] },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.06 : 1] },
    },
    axes: [
      {
        splits: (plot) => labelled(plot, labels),
        values: (_plot, at) => at.map((index) => labels[index] ?? ""),
        stroke: ink,
        font,
        size: 30,
        grid: { show: false },
        ticks: { show: false },
      },
      {
        values: (_plot, at) => at.map(format),
        ...(drawing.steps === "binary" && { incrs: BINARY }),
        stroke: ink,
        font,
        size: 88,
        grid: { stroke: line, width: 1 },
        ticks: { show: false },
      },
    ],
    series: [
      {},
      ...drawing.colours.toReversed().map((colour) => ({
        paths: bars,
        fill: fillOf(colour) as string,
        stroke: surface,
        width: 1,
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [hover], drawClear: [shade], ready: [pick] },
  };
}
