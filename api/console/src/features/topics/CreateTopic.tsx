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
  TextInput,
} from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { all, call, type Stream, type Topic } from "../../lib/client";
import { milliseconds } from "../../lib/format";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Hint } from "../../ui/Hint";
import { Problem } from "../../ui/Problem";

/** Two fields for most topics: name and retention. The rest is folded. */
export function CreateTopic({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [retention, setRetention] = useState("7d");
  const [partitions, setPartitions] = useState("1");
  const [stream, setStream] = useState("");
  const [codec, setCodec] = useState("");
  const streams = useQuery({ queryKey: ["streams"], queryFn: () => all<Stream>("/v1/streams") });

  const retentionMs = milliseconds(retention);
  const spec = {
    partitions: Number(partitions),
    retention_ms: retentionMs ?? "",
    ...(codec && { codec }),
  };
  const streamId = stream || streams.data?.find((each) => each.name === "default")?.id;
  const body = { name, ...(streamId && { stream_id: streamId }), spec };
  const create = useAct({
    mutationFn: () => call<Topic>("POST", "/v1/topics?wait=10s", { body }),
    onSuccess: async (topic) => {
      await queries.invalidateQueries({ queryKey: ["topics"] });
      navigate({ to: "/topics/$topicId", params: { topicId: topic.id } });
    },
  });
  const streamName = streams.data?.find((each) => each.id === streamId)?.name ?? "default";
  const full = `${streamName}/${name || "NAME"}`;
  const recipe = {
    cli:
      `headrace topic create ${shell(full)} --partitions ${spec.partitions} ` +
      `--retention ${shell(retention)}${codec && ` --codec ${codec}`}`,
    curl: curl("POST", "/v1/topics?wait=10s", { ...body, name: name || "NAME" }),
    python: python(`b.admin.create_topic(${JSON.stringify(full)}, spec=${JSON.stringify(spec)})`),
  };
  return (
    <Modal isOpen onClose={onClose} variant="small" aria-label="Create topic">
      <ModalHeader title="Create topic" />
      <ModalBody>
        {create.isError && <Problem error={create.error} />}
        <Form
          id="create-topic"
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate();
          }}
        >
          <FormGroup label="Name" fieldId="name" isRequired>
            <TextInput id="name" isRequired value={name} onChange={(_, value) => setName(value)} />
            <Hint>Letters, digits, . _ and -, such as orders.</Hint>
          </FormGroup>
          <FormGroup label="Retention" fieldId="retention" isRequired>
            <TextInput
              id="retention"
              value={retention}
              validated={retentionMs ? "default" : "error"}
              onChange={(_, value) => setRetention(value)}
            />
            <Hint>How long records shall stay: 7d, 12h, 30m or unlimited.</Hint>
          </FormGroup>
          <ExpandableSection toggleText="More">
            <div className="hr-stack">
              <FormGroup label="Partitions" fieldId="partitions">
                <TextInput
                  id="partitions"
                  type="number"
                  min={1}
                  max={1024}
                  value={partitions}
                  onChange={(_, value) => setPartitions(value)}
                />
                <Hint>Readers of a group share them. They can become more, never fewer.</Hint>
              </FormGroup>
              <FormGroup label="Stream" fieldId="stream">
                <FormSelect id="stream" value={streamId} onChange={(_, value) => setStream(value)}>
                  {(streams.data ?? []).map((each) => (
                    <FormSelectOption key={each.id} value={each.id} label={each.name} />
                  ))}
                </FormSelect>
              </FormGroup>
              <FormGroup label="Compression" fieldId="codec">
                <FormSelect id="codec" value={codec} onChange={(_, value) => setCodec(value)}>
                  <FormSelectOption value="" label="the default" />
                  {["none", "lz4", "zstd"].map((each) => (
                    <FormSelectOption key={each} value={each} label={each} />
                  ))}
                </FormSelect>
              </FormGroup>
            </div>
          </ExpandableSection>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button
          type="submit"
          form="create-topic"
          isDisabled={!name || !retentionMs}
          isLoading={create.isPending}
        >
          Create
        </Button>
        <Button variant="link" onClick={onClose}>
          Cancel
        </Button>
        <CopyAs recipe={recipe} />
      </ModalFooter>
    </Modal>
  );
}
