import { Button } from "@patternfly/react-core";
import { Empty } from "./Empty";

/** There is something, and none of it is what was searched for. */
export function NoMatch({ of, onClear }: { of: string; onClear: () => void }) {
  return (
    <Empty
      title={`No ${of} match your search`}
      size="sm"
      action={
        <Button variant="link" onClick={onClear}>
          Clear search
        </Button>
      }
    />
  );
}
