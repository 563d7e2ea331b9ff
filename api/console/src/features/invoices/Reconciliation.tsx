// Does this bill hold? Six questions, each with its figures; one red blocks the invoice.

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
        Reconciled: {checks.length} of {checks.length}
      </Label>
    );
  return (
    <Label status="danger">
      Not reconciled: {red} of {checks.length} red
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
        Every figure is compared with one that was made from another source. Where one differs, the
        invoice is blocked. Invoices stay drafts: this release issues none.
      </p>
      <ul className="hr-checks">
        {checks.map((check) => (
          <li key={check.name}>
            <Label status={isGreen(check) ? "success" : "danger"}>
              {isGreen(check) ? "Agrees" : "Differs"}
            </Label>{" "}
            <strong>{checkTitle(check)}</strong>
            <p className="hr-break">{check.detail}</p>
            {Object.keys(check.figures).length > 0 && (
              <ExpandableSection toggleText="Figures" toggleAriaLabel={`Figures of ${check.name}`}>
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
