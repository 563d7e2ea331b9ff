import { Button, EmptyState, EmptyStateActions, EmptyStateFooter } from "@patternfly/react-core";

/** There is something, and none of it is what was searched for. */
export function NoMatch({ of, onClear }: { of: string; onClear: () => void }) {
  return (
    <EmptyState titleText={`No ${of} fits the search`} headingLevel="h2" variant="sm">
      <EmptyStateFooter>
        <EmptyStateActions>
          <Button variant="link" onClick={onClear}>
            Show all
          </Button>
        </EmptyStateActions>
      </EmptyStateFooter>
    </EmptyState>
  );
}
