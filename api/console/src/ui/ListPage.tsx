import { PageSection } from "@patternfly/react-core";
import type { ComponentProps, ReactNode } from "react";
import type { Recipe } from "../lib/recipe";
import { CopyAs } from "./CopyAs";
import { PageHeader } from "./PageHeader";

type Props = Omit<ComponentProps<typeof PageHeader>, "parent"> & {
  about?: ReactNode;
  recipe: Recipe;
  children: ReactNode;
};

/** The page of a list: its title, what it is about, and the list as code. */
export function ListPage({ about, recipe, actions, children, ...header }: Props) {
  return (
    <PageSection>
      <PageHeader
        {...header}
        actions={
          <>
            <CopyAs recipe={recipe} />
            {actions}
          </>
        }
      />
      {about && <p className="hr-muted">{about}</p>}
      {children}
    </PageSection>
  );
}
