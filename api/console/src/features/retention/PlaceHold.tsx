import { ExpandableSection, TextArea } from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { all, call, type Topic } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { Field, SelectField, TextField } from "../../ui/Field";
import { FormDialog } from "../../ui/FormDialog";
import { Problem } from "../../ui/Problem";
import type { Hold } from "./hold";

const WHOLE = /^[0-9]{1,18}$/;

/** Topic, case and reason; the partition and the first offset are in a section that opens. No topic
is selected at first: a hold on the wrong one would protect nothing that the case needs. */
export function PlaceHold({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [chosen, setChosen] = useState("");
  const [caseId, setCaseId] = useState("");
  const [reason, setReason] = useState("");
  const [partition, setPartition] = useState("");
  const [from, setFrom] = useState("");
  const topics = useQuery({ queryKey: ["topics"], queryFn: () => all<Topic>("/v1/topics") });
  const topic = topics.data?.find((each) => each.id === chosen);
  const body = {
    topic_id: topic?.id ?? "",
    case_id: caseId.trim(),
    reason: reason.trim(),
    ...(WHOLE.test(partition) && { partition: Number(partition) }),
    ...(WHOLE.test(from) && { from_offset: from }),
  };
  const place = useAct({
    mutationFn: () => call<Hold>("POST", "/v1/legal-holds", { body }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["holds"] });
      onClose();
    },
  });
  const isFit = [partition, from].every((text) => text === "" || WHOLE.test(text));
  const isWrong = (number: string) => number !== "" && !WHOLE.test(number);
  return (
    <FormDialog
      title="Create legal hold"
      submit="Create"
      isReady={topic !== undefined && body.case_id !== "" && body.reason !== "" && isFit}
      act={place}
      recipe={recipeOf(topic, body)}
      onClose={onClose}
    >
      {topics.isError && <Problem error={topics.error} />}
      <SelectField
        id="hold-topic"
        label="Topic"
        isRequired
        value={topic?.id ?? ""}
        onChange={setChosen}
        options={[
          ["", "Select a topic"],
          ...(topics.data ?? []).map((each): [string, string] => [
            each.id,
            `${each.stream}/${each.name}`,
          ]),
        ]}
      />
      <TextField
        id="hold-case"
        label="Case"
        hint="What the hold is for. Example: CASE-7"
        isRequired
        maxLength={128}
        value={caseId}
        onChange={setCaseId}
      />
      <Field
        id="hold-reason"
        label="Reason"
        hint="One line, shown in lists, reports and the audit log."
        isRequired
      >
        <TextArea
          id="hold-reason"
          isRequired
          maxLength={1024}
          value={reason}
          // One line: it stands in lists and reports.
          onChange={(_, value) => setReason(value.replaceAll(/\s+/g, " "))}
        />
      </Field>
      <ExpandableSection toggleText="Limit the scope">
        <div className="hr-stack">
          <TextField
            id="hold-partition"
            label="Partition"
            hint="Leave empty for all partitions, including new ones."
            inputMode="numeric"
            isInvalid={isWrong(partition)}
            value={partition}
            onChange={setPartition}
          />
          <TextField
            id="hold-from"
            label="From offset"
            hint="Leave empty to hold everything. Records before the offset may still be deleted."
            inputMode="numeric"
            isInvalid={isWrong(from)}
            value={from}
            onChange={setFrom}
          />
        </div>
      </ExpandableSection>
    </FormDialog>
  );
}

type Body = { case_id: string; reason: string; partition?: number; from_offset?: string };

function recipeOf(topic: Topic | undefined, body: Body) {
  const name = topic ? `${topic.stream}/${topic.name}` : "TOPIC";
  const { case_id: caseId, reason, partition, from_offset: from } = body;
  const cli = ["headrace hold create", shell(name), "--case", shell(caseId || "CASE")];
  cli.push("--reason", shell(reason || "REASON"));
  const words = [JSON.stringify(name), `case=${JSON.stringify(caseId)}`];
  words.push(`reason=${JSON.stringify(reason)}`);
  if (partition !== undefined) {
    cli.push("--partition", String(partition));
    words.push(`partition=${partition}`);
  }
  if (from) {
    cli.push("--from-offset", from);
    words.push(`from_offset=${from}`);
  }
  return {
    cli: cli.join(" "),
    curl: curl("POST", "/v1/legal-holds", body),
    python: python(`b.admin.create_hold(${words.join(", ")})`),
  };
}
