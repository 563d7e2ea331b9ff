import { FormHelperText, HelperText, HelperTextItem } from "@patternfly/react-core";

/** A line of help under a field. */
export function Hint({ children }: { children: string }) {
  return (
    <FormHelperText>
      <HelperText>
        <HelperTextItem>{children}</HelperTextItem>
      </HelperText>
    </FormHelperText>
  );
}
