import { Button } from "@patternfly/react-core";

type Props = { act: string; of: string; onClick: () => void };

/** The delete button at the end of a row. `of` distinguishes it from those of other rows. */
export function RowButton({ act, of, onClick }: Props) {
  return (
    <Button variant="link" isDanger aria-label={`${act} ${of}`} onClick={onClick}>
      {act}
    </Button>
  );
}
