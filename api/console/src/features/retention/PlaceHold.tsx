import {
  Button,
  ExpandableSection,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  TextArea,
  TextInput,
} from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { all, call, type Topic } from "../../lib/client";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Hint } from "../../ui/Hint";
import { Problem } from "../../ui/Problem";
import type { Hold } from "./hold";

const WHOLE = /^[0-9]{1,18}$/;

/** Case, topic and reason for most holds; one partition and a first offset are folded. */
export function PlaceHold({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [chosen, setChosen] = useState("");
  const [caseId, setCaseId] = useState("");
  const [reason, setReason] = useState("");
  const [partition, setPartition] = useState("");
  const [from, setFrom] = useState("");
  const topics = useQuery({ queryKey: ["topics"], queryFn: () => all<Topic>("/v1/topics") });
  const topic = topics.data?.find((each) => each.id === chosen) ?? topics.data?.[0];
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
  return (
    <Modal isOpen onClose={onClose} variant="small" aria-label="Hold a topic">
      <ModalHeader title="Hold a topic" />
      <ModalBody>
        {place.isError && <Problem error={place.error} />}
        {topics.isError && <Problem error={topics.error} />}
        <Form
          id="place-hold"
          onSubmit={(event) => {
            event.preventDefault();
            place.mutate();
          }}
        >
          <FormGroup label="Topic" fieldId="hold-topic" isRequired>
            <FormSelect
              id="hold-topic"
              value={topic?.id ?? ""}
              onChange={(_, value) => setChosen(value)}
            >
              {(topics.data ?? []).map((each) => (
                <FormSelectOption
                  key={each.id}
                  value={each.id}
                  label={`${each.stream}/${each.name}`}
                />
              ))}
            </FormSelect>
          </FormGroup>
          <FormGroup label="Case" fieldId="hold-case" isRequired>
            <TextInput
              id="hold-case"
              isRequired
              maxLength={128}
              value={caseId}
              onChange={(_, value) => setCaseId(value)}
            />
            <Hint>What it is for, such as CASE-7. Holds are found by it.</Hint>
          </FormGroup>
          <FormGroup label="Reason" fieldId="hold-reason" isRequired>
            <TextArea
              id="hold-reason"
              isRequired
              maxLength={1024}
              value={reason}
              // One line: it stands in lists and reports.
              onChange={(_, value) => setReason(value.replaceAll(/\s+/g, " "))}
            />
            <Hint>One line, for whoever reads the audit in years to come.</Hint>
          </FormGroup>
          <ExpandableSection toggleText="Only a part of it">
            <div className="hr-stack">
              <FormGroup label="Partition" fieldId="hold-partition">
                <TextInput
                  id="hold-partition"
                  inputMode="numeric"
                  value={partition}
                  validated={partition === "" || WHOLE.test(partition) ? "default" : "error"}
                  onChange={(_, value) => setPartition(value)}
                />
                <Hint>Empty: all of them, also those to come.</Hint>
              </FormGroup>
              <FormGroup label="From offset" fieldId="hold-from">
                <TextInput
                  id="hold-from"
                  inputMode="numeric"
                  value={from}
                  validated={from === "" || WHOLE.test(from) ? "default" : "error"}
                  onChange={(_, value) => setFrom(value)}
                />
                <Hint>Empty: everything that is there. What lies below may still go.</Hint>
              </FormGroup>
            </div>
          </ExpandableSection>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form="place-hold"
          isDisabled={!topic || !body.case_id || !body.reason || !isFit}
          isLoading={place.isPending}
        >
          Hold
        </Button>
        <Button variant="link" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs recipe={recipeOf(topic, body)} />
      </ModalFooter>
    </Modal>
  );
}

type Body = { case_id: string; reason: string; partition?: number; from_offset?: string };

function recipeOf(topic: Topic | undefined, body: Body) {
  const name = topic ? `${topic.stream}/${topic.name}` : "TOPIC";
  const { case_id: caseId, reason, partition, from_offset: from } = body;
  const cli = ["headrace hold create", shell(name), "--case", shell(caseId || "CASE")];
  cli.push("--reason", shell(reason || "WHY"));
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
