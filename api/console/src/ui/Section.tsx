import { Card, CardBody, CardTitle } from "@patternfly/react-core";
import type { ReactNode } from "react";

type Props = { title: string; badge?: ReactNode; children: ReactNode };

/** A part of a page, under its own heading. */
export function Section({ title, badge, children }: Props) {
  return (
    <Card component="section" aria-label={title}>
      <CardTitle component="h2">
        <span className="hr-section-title">
          {title} {badge}
        </span>
      </CardTitle>
      <CardBody>{children}</CardBody>
    </Card>
  );
}
