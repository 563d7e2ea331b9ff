import { Button, EmptyState, EmptyStateBody, PageSection } from "@patternfly/react-core";
import { useNavigate } from "@tanstack/react-router";

export function NotFound() {
  const navigate = useNavigate();
  return (
    <PageSection>
      <EmptyState titleText="There is no such page" headingLevel="h1">
        <EmptyStateBody>The address may be mistyped, or what it showed is gone.</EmptyStateBody>
        <Button onClick={() => navigate({ to: "/" })}>Go home</Button>
      </EmptyState>
    </PageSection>
  );
}
