// What may change of a topic. What is destructive is planned by the server before it is done.

import {
  Alert,
  Button,
  Checkbox,
  Form,
  FormGroup,
  FormSelect,
  FormSelectOption,
  TextInput,
} from "@patternfly/react-core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { duration, milliseconds } from "../api/bytes";
import { call, type Plan, type Topic, type TopicSpec } from "../api/client";
import { CopyAs, curl, python, shell } from "../widgets/CopyAs";
import { Problem } from "../widgets/Problem";
import { Hint } from "./CreateTopic";

type Review = { warnings: string[]; etag: string };

export function Settings({ topic }: { topic: Topic }) {
  const queries = useQueryClient();
  const now = topic.status.effective;
  const [partitions, setPartitions] = useState(String(now.partitions));
  const [retention, setRetention] = useState(duration(now.retention_ms));
  const [codec, setCodec] = useState(now.codec);
  const [guarded, setGuarded] = useState(now.deletion_protection);
  const [paused, setPaused] = useState(now.paused);
  const [managed, setManaged] = useState(now.managed);

  const retentionMs = milliseconds(retention);
  const spec: Record<string, unknown> = {};
  if (Number(partitions) !== now.partitions) spec.partitions = Number(partitions);
  if (retentionMs && retentionMs !== now.retention_ms) spec.retention_ms = retentionMs;
  if (codec !== now.codec) spec.codec = codec;
  if (guarded !== now.deletion_protection) spec.deletion_protection = guarded;
  if (paused !== now.paused) spec.paused = paused;
  if (managed !== now.managed) spec.managed = managed;
  const unchanged = Object.keys(spec).length === 0;

  const path = `/v1/topics/${topic.id}`;
  const send = <T,>(query: string) =>
    call<T>("PATCH", path + query, {
      body: { spec: spec as TopicSpec },
      etag: topic.etag,
      patch: true,
    });
  const review = useMutation({
    mutationFn: async (): Promise<Review> => {
      const planned = await send<{ plan?: Plan }>("?dry_run=true");
      const warnings = [...(planned.plan?.warnings ?? [])];
      if (shorter(now.retention_ms, retentionMs)) {
        warnings.push(
          `Records older than ${retention} may go as soon as it is applied; they do not come back.`,
        );
      }
      return { warnings, etag: topic.etag };
    },
  });
  const save = useMutation({
    mutationFn: () => send("?"),
    onSuccess: async () => {
      review.reset();
      await queries.invalidateQueries({ queryKey: ["topic", topic.id] });
    },
  });
  const edit = <T,>(set: (value: T) => void) => {
    return (_: unknown, value: T) => {
      review.reset();
      save.reset();
      set(value);
    };
  };
  const name = `${topic.stream}/${topic.name}`;
  const sets = Object.entries(spec).map(([key, value]) => `--set ${shell(`${key}=${value}`)}`);
  const recipe = {
    cli: `headrace topic alter ${shell(name)} ${sets.join(" ")}`,
    curl: curl("PATCH", path, { spec }, topic.etag),
    python: python(`b.admin.alter_topic(${JSON.stringify(name)}, ${pythonOf(spec)})`),
  };
  return (
    <>
      <br />
      <Form
        isWidthLimited
        onSubmit={(event) => {
          event.preventDefault();
          if (review.data) save.mutate();
          else review.mutate();
        }}
      >
        <FormGroup label="Retention" fieldId="set-retention">
          <TextInput
            id="set-retention"
            value={retention}
            validated={retentionMs ? "default" : "error"}
            onChange={edit(setRetention)}
          />
          <Hint>7d, 12h, 30m or unlimited.</Hint>
        </FormGroup>
        <FormGroup label="Partitions" fieldId="set-partitions">
          <TextInput
            id="set-partitions"
            type="number"
            min={now.partitions}
            max={1024}
            value={partitions}
            onChange={edit(setPartitions)}
          />
          <Hint>They can become more, never fewer.</Hint>
        </FormGroup>
        <FormGroup label="Compression" fieldId="set-codec">
          <FormSelect id="set-codec" value={codec} onChange={edit(setCodec)}>
            {["none", "lz4", "zstd"].map((each) => (
              <FormSelectOption key={each} value={each} label={each} />
            ))}
          </FormSelect>
        </FormGroup>
        <Checkbox
          id="set-guarded"
          label="Protect from deletion"
          isChecked={guarded}
          onChange={edit(setGuarded)}
        />
        <Checkbox
          id="set-paused"
          label="Paused"
          description="No worker looks at the topic or changes it; what is wished here is stored."
          isChecked={paused}
          onChange={edit(setPaused)}
        />
        <Checkbox
          id="set-managed"
          label="Managed"
          description="Without it, workers look at the topic and change nothing."
          isChecked={managed}
          onChange={edit(setManaged)}
        />
        {review.isError && <Problem error={review.error} />}
        {save.isError && <Problem error={save.error} />}
        {review.data && (
          <Alert
            isInline
            component="h2"
            variant={review.data.warnings.length ? "warning" : "info"}
            title={review.data.warnings.length ? "Before you save" : "Nothing is lost by this"}
          >
            {review.data.warnings.map((each) => (
              <p key={each}>{each}</p>
            ))}
            <p className="hr-mono">{JSON.stringify(spec)}</p>
          </Alert>
        )}
        <div aria-live="polite">
          <Button
            type="submit"
            variant={review.data?.warnings.length ? "danger" : "primary"}
            isDisabled={unchanged || !retentionMs}
            isLoading={review.isPending || save.isPending}
          >
            {review.data ? "Save" : "Review changes"}
          </Button>
          {!unchanged && <CopyAs recipe={recipe} />}
          {save.isSuccess && " Saved. The state above says when it is so."}
        </div>
      </Form>
    </>
  );
}

function shorter(before: string, after: string | null): boolean {
  if (after === null || after === "unlimited") return false;
  return before === "unlimited" || BigInt(after) < BigInt(before);
}

function pythonOf(spec: Record<string, unknown>): string {
  const words = (value: unknown) =>
    typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
  return `{${Object.entries(spec)
    .map(([key, value]) => `"${key}": ${words(value)}`)
    .join(", ")}}`;
}
