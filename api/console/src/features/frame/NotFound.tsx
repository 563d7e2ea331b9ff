import { Button, PageSection } from "@patternfly/react-core";
import { useNavigate } from "@tanstack/react-router";
import { usePageTitle } from "../../hooks/usePageTitle";
import { Empty } from "../../ui/Empty";

export function NotFound() {
  const navigate = useNavigate();
  usePageTitle("Page not found");
  return (
    <PageSection>
      <Empty
        title="Page not found"
        level="h1"
        body="The address may be wrong, or the object was deleted."
        action={<Button onClick={() => navigate({ to: "/" })}>Go to Home</Button>}
      />
    </PageSection>
  );
}
