import { Button, PageSection } from "@patternfly/react-core";
import { useNavigate } from "@tanstack/react-router";
import { Empty } from "../../ui/Empty";

export function NotFound() {
  const navigate = useNavigate();
  return (
    <PageSection>
      <Empty
        title="There is no such page"
        level="h1"
        body="The address may be mistyped, or what it showed is gone."
        action={<Button onClick={() => navigate({ to: "/" })}>Go home</Button>}
      />
    </PageSection>
  );
}
