/** A bar, full where `part` is 1. The number that it draws stands beside it. */
export function Bar({ part }: { part: number }) {
  return (
    <span className="hr-bar" aria-hidden="true">
      <span style={{ width: `${100 * part}%` }} />
    </span>
  );
}
