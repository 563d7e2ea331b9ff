import { PageSection, Title } from "@patternfly/react-core";
import { Link } from "@tanstack/react-router";
import { usePageTitle } from "../hooks/usePageTitle";
import type { Place } from "../lib/places";
import { Problem } from "./Problem";

type Props = { what: string; error: unknown; to: Place["to"]; all: string };

/** In place of one object that cannot be shown: why, and the way to all of its kind. */
export function Missing({ what, error, to, all }: Props) {
  const title = `Unable to load this ${what}`;
  usePageTitle(title);
  return (
    <PageSection>
      <div className="hr-stack">
        <Title headingLevel="h1">{title}</Title>
        <Problem error={error} />
        <Link to={to}>{all}</Link>
      </div>
    </PageSection>
  );
}
