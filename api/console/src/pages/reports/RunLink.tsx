import { Link } from "@tanstack/react-router";
import { useOperates } from "./run";

/** The id of a run; a link for those who may open it. */
export function RunLink({ id }: { id: string }) {
  if (!useOperates()) return <span className="hr-mono">{id}</span>;
  return (
    <Link to="/reports/$runId" params={{ runId: id }}>
      {id}
    </Link>
  );
}
