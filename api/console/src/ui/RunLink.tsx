import { Link } from "@tanstack/react-router";
import { useMay } from "../hooks/useSession";

/** The id of a run; a link for those who may open it. */
export function RunLink({ id }: { id: string }) {
  if (!useMay("reports:read")) return <span className="hr-mono">{id}</span>;
  return (
    <Link to="/reports/$runId" params={{ runId: id }}>
      {id}
    </Link>
  );
}
