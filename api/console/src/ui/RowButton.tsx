import { Button } from "@patternfly/react-core";

type Props = { act: string; of: string; onClick: () => void };

/** At the end of a row: what destroys it. `of` tells it from the same button of another row. */
export function RowButton({ act, of, onClick }: Props) {
  return (
    <Button variant="link" isDanger aria-label={`${act} ${of}`} onClick={onClick}>
      {act}
    </Button>
  );
}
