import { Button } from "@patternfly/react-core";
import { useMay } from "../hooks/useSession";
import { useStartReport } from "../hooks/useStartReport";
import { python } from "../lib/recipe";
import { KIND_WORDS, type Kind } from "../lib/reports";
import { Snippet } from "./CopyAs";
import { Empty } from "./Empty";
import { Problem } from "./Problem";

/** Nothing to show yet: what a run does, and how one is started. */
export function NoReport({ kind }: { kind: Kind }) {
  const start = useStartReport();
  const mayRun = useMay("reports:create");
  const words = KIND_WORDS[kind];
  const run = (
    <Button isLoading={start.isPending} onClick={() => start.mutate(kind)}>
      Run {words.title.toLowerCase()}
    </Button>
  );
  return (
    <>
      {start.isError && <Problem error={start.error} />}
      <Empty
        title={`No ${words.title.toLowerCase()} yet`}
        size="lg"
        body={
          <>
            {words.says} This page shows the last published run.
            {!mayRun && " Reports are started by the service operator."}
          </>
        }
        action={mayRun && run}
      >
        {mayRun && (
          <>
            <Snippet title="Shell" code={`headrace report run ${kind} --wait`} />
            <Snippet title="Python" code={python(`b.admin.run_report("${kind}", wait=True)`)} />
          </>
        )}
      </Empty>
    </>
  );
}
