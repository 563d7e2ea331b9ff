import {
  Button,
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  PageSection,
} from "@patternfly/react-core";
import { useNavigate } from "@tanstack/react-router";

export function NotFound() {
  const navigate = useNavigate();
  return (
    <PageSection>
      <EmptyState titleText="There is no such page" headingLevel="h1">
        <EmptyStateBody>The address may be mistyped, or what it showed is gone.</EmptyStateBody>
        <EmptyStateFooter>
          <EmptyStateActions>
            <Button onClick={() => navigate({ to: "/" })}>Go home</Button>
          </EmptyStateActions>
        </EmptyStateFooter>
      </EmptyState>
    </PageSection>
  );
}
