import { PageSection, Spinner } from "@patternfly/react-core";
import type { ReactNode } from "react";
import type { Place } from "../lib/places";
import { Missing } from "./Missing";
import { Problem } from "./Problem";

type Props<Data> = {
  query: { isPending: boolean; error: unknown; data: Data | undefined };
  /** What it is the page of, in a word: "topic". */
  noun: string;
  parent: { to: Place["to"]; all: string };
  children: (data: Data) => ReactNode;
};

/** The page of one object: loading, not to be shown, or its own. */
export function DetailPage<Data>({ query, noun, parent, children }: Props<Data>) {
  if (query.isPending) {
    return (
      <PageSection>
        <Spinner aria-label="Loading" />
      </PageSection>
    );
  }
  if (query.data === undefined) {
    return <Missing what={noun} error={query.error} to={parent.to} all={parent.all} />;
  }
  return (
    <PageSection>
      {/* What was read before stays on the page while a refresh fails. */}
      {query.error !== null && <Problem error={query.error} />}
      {children(query.data)}
    </PageSection>
  );
}
