import {
  Breadcrumb,
  BreadcrumbItem,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { usePageTitle } from "../hooks/usePageTitle";
import type { Place } from "../lib/places";

type Props = {
  title: string;
  /** The list that this page is of. `as`: its own name there, if it is not the title. */
  parent?: { to: Place["to"]; title: string; as?: string };
  state?: ReactNode;
  /** What chooses what is shown, beside the title. */
  tools?: ReactNode;
  actions?: ReactNode;
};

/** The head of a page: where it is, what it shows, and what can be done. */
export function PageHeader({ title, parent, state, tools, actions }: Props) {
  usePageTitle(title);
  return (
    <>
      {parent && (
        <Breadcrumb aria-label="Breadcrumb">
          <BreadcrumbItem render={() => <Link to={parent.to}>{parent.title}</Link>} />
          <BreadcrumbItem isActive>{parent.as ?? title}</BreadcrumbItem>
        </Breadcrumb>
      )}
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1" className="hr-title">
              {title}
            </Title>
          </ToolbarItem>
          {state && <ToolbarItem alignSelf="center">{state}</ToolbarItem>}
          {tools}
          {actions && (
            <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
              {actions}
            </ToolbarItem>
          )}
        </ToolbarContent>
      </Toolbar>
    </>
  );
}
