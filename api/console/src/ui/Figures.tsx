import type { ReactNode } from "react";

type ListProps = {
  isTiled?: boolean;
  /** Each as wide as its number, which stays on one line; otherwise all have the same width. */
  isFlowing?: boolean;
  children: ReactNode;
};

/** Figures beside each other, with their names above them. */
export function Figures({ isTiled, isFlowing, children }: ListProps) {
  const names = ["hr-figures", isTiled && "hr-tiles", isFlowing && "hr-flow"];
  return <dl className={names.filter(Boolean).join(" ")}>{children}</dl>;
}

type Props = {
  term: string;
  /** A line below: the exact amount, or what it is of. */
  note?: ReactNode;
  isTile?: boolean;
  /** Words, which are set smaller than numbers. */
  isText?: boolean;
  children: ReactNode;
};

export function Figure({ term, note, isTile, isText, children }: Props) {
  const names = ["hr-figure", isTile && "hr-tile", isText && "hr-words"].filter(Boolean);
  return (
    <div className={names.join(" ")}>
      <dt>{term}</dt>
      <dd>{children}</dd>
      {note && <dd className="hr-note">{note}</dd>}
    </div>
  );
}
