// Retention: stored data by age, past and upcoming deletions, and legal holds.

import { PageSection, Tab, Tabs, TabTitleText } from "@patternfly/react-core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { PageHeader } from "../../ui/PageHeader";
import { Holds } from "./Holds";
import { Report } from "./Report";
import type { Tab as TabName } from "./search";

const TITLES: [TabName, string][] = [
  ["overview", "Overview"],
  ["topics", "Topics and policies"],
  ["violations", "Violations"],
  ["holds", "Legal holds"],
];

export function Retention() {
  const { tab = "overview" } = useSearch({ from: "/retention" });
  const navigate = useNavigate();
  return (
    <PageSection>
      <PageHeader title="Retention" />
      <Tabs
        activeKey={tab}
        onSelect={(_, chosen) =>
          navigate({ to: "/retention", search: { tab: chosen as TabName }, replace: true })
        }
        aria-label="Retention views"
      >
        {TITLES.map(([name, title]) => (
          <Tab key={name} eventKey={name} title={<TabTitleText>{title}</TabTitleText>}>
            {tab === name && (name === "holds" ? <Holds /> : <Report view={name} />)}
          </Tab>
        ))}
      </Tabs>
    </PageSection>
  );
}
