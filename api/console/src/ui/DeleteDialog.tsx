// Deleting is planned first: the server says what would be lost, then the name is typed.

import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useAct } from "../hooks/useAct";
import { usePlan } from "../hooks/usePlan";
import { ApiError, call, type Plan, type Topic } from "../lib/client";
import { counted, held, size } from "../lib/format";
import { curl, python, shell } from "../lib/recipe";
import { ConfirmDialog } from "./ConfirmDialog";

type Props = {
  kind: "topic" | "stream";
  path: string;
  name: string;
  etag: string;
  onClose: () => void;
  onDone: () => void;
};

function lossOf(plan: Plan | undefined): { records: bigint; bytes: bigint } | null {
  const loss = plan?.data_loss;
  return loss ? { records: BigInt(loss.records), bytes: BigInt(loss.bytes) } : null;
}

function hintOf(error: Error, cli: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { code } = error.problem;
  if (code === "DELETION_PROTECTED")
    return "Turn off deletion protection in the topic settings first.";
  if (code !== "CHILDREN_EXIST") return undefined;
  return `Delete its topics first, or delete them together from a shell: ${cli} --cascade`;
}

export function DeleteDialog({ kind, path, name, etag, onClose, onDone }: Props) {
  const queries = useQueryClient();
  const plan = usePlan(path, etag);
  const remove = useAct({
    mutationFn: () => call("DELETE", path, { etag }),
    onSuccess: async () => {
      await queries.invalidateQueries();
      onDone();
    },
  });
  // The plan counts what was observed last; a topic is asked for what it holds now.
  const now = useQuery({
    queryKey: ["loss", path],
    queryFn: () => call<Topic>("GET", `${path}?live=true`),
    enabled: kind === "topic",
  });
  const holds = now.data ? held(now.data.status.partitions) : null;
  const loss = holds ?? lossOf(plan.data?.plan);
  const recipe = {
    cli: `headrace ${kind} delete ${shell(name)}`,
    curl: curl("DELETE", path, undefined, etag),
    python: python(`b.admin.delete("${kind}", b.admin.object("${kind}", ${JSON.stringify(name)}))`),
  };
  return (
    <ConfirmDialog
      title={`Delete ${kind} ${name}?`}
      word={name}
      button="Delete"
      act={remove}
      plan={{ ...plan, hint: plan.error ? hintOf(plan.error, recipe.cli) : undefined }}
      recipe={recipe}
      onClose={onClose}
    >
      {loss
        ? `This permanently deletes ${counted(loss.records, "record")} (${size(loss.bytes)}).`
        : "This permanently deletes everything in it."}{" "}
      New writes are rejected immediately. The name can be reused once the deletion is complete.
    </ConfirmDialog>
  );
}
