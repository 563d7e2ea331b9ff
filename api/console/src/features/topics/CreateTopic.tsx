import { ExpandableSection } from "@patternfly/react-core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { all, call, type Stream, type Topic } from "../../lib/client";
import { milliseconds } from "../../lib/format";
import { curl, python, shell } from "../../lib/recipe";
import { SelectField, TextField } from "../../ui/Field";
import { FormDialog } from "../../ui/FormDialog";

const CODECS: [string, string][] = [
  ["", "Default"],
  ["none", "none"],
  ["lz4", "lz4"],
  ["zstd", "zstd"],
];

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
    <FormDialog
      title="Create topic"
      submit="Create"
      isReady={name !== "" && retentionMs !== null}
      act={create}
      recipe={recipe}
      onClose={onClose}
    >
      <TextField
        id="name"
        label="Name"
        hint="Letters, digits, . _ and -. Example: orders"
        isRequired
        value={name}
        onChange={setName}
      />
      <TextField
        id="retention"
        label="Retention"
        hint="How long records are kept: 7d, 12h, 30m or unlimited."
        isRequired
        isInvalid={retentionMs === null}
        value={retention}
        onChange={setRetention}
      />
      <ExpandableSection toggleText="Advanced settings">
        <div className="hr-stack">
          <TextField
            id="partitions"
            label="Partitions"
            hint="Consumers in a group share the partitions. You can add partitions later, but not remove them."
            type="number"
            min={1}
            max={1024}
            value={partitions}
            onChange={setPartitions}
          />
          <SelectField
            id="stream"
            label="Stream"
            value={streamId ?? ""}
            onChange={setStream}
            options={(streams.data ?? []).map((each) => [each.id, each.name])}
          />
          <SelectField
            id="codec"
            label="Compression"
            value={codec}
            onChange={setCodec}
            options={CODECS}
          />
        </div>
      </ExpandableSection>
    </FormDialog>
  );
}
