// Is the bill right? Six checks, each with its figures; one that fails blocks the invoice.

import { ExpandableSection, Label } from "@patternfly/react-core";
import { grouped } from "../../lib/decimal";
import { Section } from "../../ui/Section";
import { type Check, checkTitle, isGreen } from "./invoice";

export function ReconciliationBadge({ checks }: { checks: Check[] }) {
  const red = checks.filter((check) => !isGreen(check)).length;
  if (checks.length === 0) return <Label>Not reconciled yet</Label>;
  if (red === 0)
    return (
      <Label status="success">
        Reconciled: {checks.length} of {checks.length} checks passed
      </Label>
    );
  return (
    <Label status="danger">
      Not reconciled: {red} of {checks.length} checks failed
    </Label>
  );
}

function figure(text: string): string {
  return /^-?[0-9]+(\.[0-9]+)?$/.test(text) ? grouped(text) : text;
}

type Props = { checks: Check[]; title?: string };

export function Reconciliation({ checks, title = "Reconciliation" }: Props) {
  return (
    <Section title={title} badge={<ReconciliationBadge checks={checks} />}>
      <p className="hr-muted">
        Each figure is compared with an independent source. If a check fails, the invoice is
        blocked. Invoices remain drafts: this release does not issue them.
      </p>
      <ul className="hr-checks">
        {checks.map((check) => (
          <li key={check.name}>
            <Label status={isGreen(check) ? "success" : "danger"}>
              {isGreen(check) ? "Passed" : "Failed"}
            </Label>{" "}
            <strong>{checkTitle(check)}</strong>
            <p className="hr-break">{check.detail}</p>
            {Object.keys(check.figures).length > 0 && (
              <ExpandableSection toggleText="Details" toggleAriaLabel={`Details of ${check.name}`}>
                <dl className="hr-pairs">
                  {Object.entries(check.figures).map(([name, value]) => (
                    <div key={name}>
                      <dt>{name.replaceAll("_", " ")}</dt>
                      <dd>{figure(value)}</dd>
                    </div>
                  ))}
                </dl>
              </ExpandableSection>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}
