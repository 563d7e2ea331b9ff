import {
  EmptyState,
  EmptyStateActions,
  EmptyStateBody,
  EmptyStateFooter,
  type EmptyStateProps,
} from "@patternfly/react-core";
import type { ReactNode } from "react";

type Props = {
  title: string;
  size?: EmptyStateProps["variant"];
  level?: EmptyStateProps["headingLevel"];
  body?: ReactNode;
  action?: ReactNode;
  /** More ways to begin, such as code to copy. */
  children?: ReactNode;
};

/** In place of what is not there: why, and how it comes to be. */
export function Empty({ title, size, level = "h2", body, action, children }: Props) {
  return (
    <EmptyState titleText={title} headingLevel={level} variant={size}>
      {body && <EmptyStateBody>{body}</EmptyStateBody>}
      {(action || children) && (
        <EmptyStateFooter>
          {action && <EmptyStateActions>{action}</EmptyStateActions>}
          {children}
        </EmptyStateFooter>
      )}
    </EmptyState>
  );
}
