// What may change of a topic. What is destructive is planned by the server before it is done.

import { Alert, AlertActionLink, Button, Checkbox, Form } from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { useMay } from "../../hooks/useSession";
import { call, type Plan, type Topic, type TopicSpec } from "../../lib/client";
import { counted, duration, milliseconds, moment, size } from "../../lib/format";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { SelectField, TextField } from "../../ui/Field";
import { Problem } from "../../ui/Problem";

/** Of a shorter retention. A figure that no node gave in time is the word `unknown`. */
type ShorterPlan = Plan & {
  data_loss?: {
    records: string;
    bytes_estimate: string;
    partitions: number | "unknown";
    oldest_at: string | null;
  };
};
type Change = { name: string; before: string; after: string };

/** The form edits the topic as it was read when it opened: if another change came in between,
saving is refused, and that change is never undone unnoticed. */
export function Settings({ topic }: { topic: Topic }) {
  const [read, setRead] = useState(topic);
  const [isSaved, setSaved] = useState(false);
  const mayChange = useMay("topics:update");
  if (!mayChange) {
    return (
      <div className="hr-panel">
        <Alert isInline component="h2" variant="info" title="This key cannot change topics">
          Changing a topic requires a key with the editor or owner role.
        </Alert>
      </div>
    );
  }
  return (
    <div className="hr-panel hr-stack">
      {read.etag !== topic.etag && topic.updated_at > read.updated_at && (
        <Alert
          isInline
          component="h2"
          variant="warning"
          title="This topic has changed since you opened the form"
          actionLinks={
            <AlertActionLink
              onClick={() => {
                setRead(topic);
                setSaved(false);
              }}
            >
              Reload
            </AlertActionLink>
          }
        />
      )}
      <Editor
        key={read.etag}
        topic={read}
        isSaved={isSaved}
        onSaved={(saved) => {
          setRead(saved);
          setSaved(true);
        }}
      />
    </div>
  );
}

type EditorProps = { topic: Topic; isSaved: boolean; onSaved: (topic: Topic) => void };

function Editor({ topic, isSaved, onSaved }: EditorProps) {
  const queries = useQueryClient();
  const now = topic.status.effective;
  const [partitions, setPartitions] = useState(String(now.partitions));
  const [retention, setRetention] = useState(duration(now.retention_ms));
  const [codec, setCodec] = useState(now.codec);
  const [guarded, setGuarded] = useState(now.deletion_protection);
  const [paused, setPaused] = useState(now.paused);
  const [managed, setManaged] = useState(now.managed);

  const retentionMs = milliseconds(retention);
  const desired = {
    retention_ms: retentionMs ?? now.retention_ms,
    partitions: Number(partitions),
    codec,
    deletion_protection: guarded,
    paused,
    managed,
  };
  const spec: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(desired)) {
    if (value !== now[name as keyof typeof desired]) spec[name] = value;
  }
  const unchanged = Object.keys(spec).length === 0;

  const path = `/v1/topics/${topic.id}`;
  const send = <T,>(query = "") =>
    call<T>("PATCH", path + query, {
      body: { spec: spec as TopicSpec },
      etag: topic.etag,
      patch: true,
    });
  const review = useAct({
    mutationFn: async (): Promise<string[]> => {
      const planned = await send<{ plan?: ShorterPlan }>("?dry_run=true");
      const warnings = [...going(planned.plan), ...(planned.plan?.warnings ?? [])];
      if (shorter(now.retention_ms, retentionMs)) {
        warnings.push(
          `Records older than ${retention} may be deleted as soon as the change is applied. They cannot be recovered.`,
        );
      }
      return warnings;
    },
  });
  const save = useAct({
    mutationFn: () => send<Topic>(),
    onSuccess: async (saved) => {
      onSaved(saved);
      await queries.invalidateQueries({ queryKey: ["topic", topic.id] });
    },
  });
  const edit = <T,>(set: (value: T) => void) => {
    return (value: T) => {
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
  const changes = Object.entries(spec).map(([name, value]) => ({
    name: NAMES[name] ?? name,
    before: wordOf(name, now[name as keyof typeof desired]),
    after: wordOf(name, value),
  }));
  return (
    <Form
      isWidthLimited
      onSubmit={(event) => {
        event.preventDefault();
        if (review.data) save.mutate();
        else review.mutate();
      }}
    >
      <TextField
        id="set-retention"
        label="Retention"
        hint="7d, 12h, 30m or unlimited."
        isInvalid={retentionMs === null}
        value={retention}
        onChange={edit(setRetention)}
      />
      <TextField
        id="set-partitions"
        label="Partitions"
        hint="You can add partitions, but not remove them."
        type="number"
        min={now.partitions}
        max={1024}
        value={partitions}
        onChange={edit(setPartitions)}
      />
      <SelectField
        id="set-codec"
        label="Compression"
        value={codec}
        onChange={edit(setCodec)}
        options={CODECS}
      />
      <Checkbox
        id="set-guarded"
        label="Deletion protection"
        isChecked={guarded}
        onChange={(_, on) => edit(setGuarded)(on)}
      />
      <Checkbox
        id="set-paused"
        label="Paused"
        description="Pause reconciliation: nodes are neither checked nor changed. Changes made here are saved and applied later."
        isChecked={paused}
        onChange={(_, on) => edit(setPaused)(on)}
      />
      <Checkbox
        id="set-managed"
        label="Managed"
        description="If off, the state is observed and reported, but nothing is changed."
        isChecked={managed}
        onChange={(_, on) => edit(setManaged)(on)}
      />
      {review.isError && <Problem error={review.error} />}
      {save.isError && <Problem error={save.error} />}
      {review.data && <Review warnings={review.data} changes={changes} />}
      <div aria-live="polite">
        <Button
          type="submit"
          variant={review.data?.length ? "danger" : "primary"}
          isDisabled={unchanged || !retentionMs}
          isLoading={review.isPending || save.isPending}
        >
          {review.data ? "Save" : "Review changes"}
        </Button>
        {!unchanged && <CopyAs recipe={recipe} />}
        {unchanged && isSaved && " Saved. The state above shows when the change is applied."}
      </div>
    </Form>
  );
}

const CODECS = ["none", "lz4", "zstd"].map((each): [string, string] => [each, each]);

const NAMES: Record<string, string> = {
  retention_ms: "Retention",
  partitions: "Partitions",
  codec: "Compression",
  deletion_protection: "Deletion protection",
  paused: "Paused",
  managed: "Managed",
};

function wordOf(name: string, value: unknown): string {
  if (name === "retention_ms") return duration(String(value));
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}

/** What the server would do, and what of that does not come back. Nothing was changed yet. */
function Review({ warnings, changes }: { warnings: string[]; changes: Change[] }) {
  return (
    <Alert
      isInline
      component="h2"
      variant={warnings.length ? "warning" : "info"}
      title={warnings.length ? "Before you save" : "No records will be deleted"}
    >
      <dl className="hr-pairs hr-changes">
        {changes.map(({ name, before, after }) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {before} → <strong>{after}</strong>
            </dd>
          </div>
        ))}
      </dl>
      {warnings.map((each) => (
        <p key={each}>{each}</p>
      ))}
    </Alert>
  );
}

/** The stored records that would be deleted; the warnings name what is unknown. */
function going(plan?: ShorterPlan): string[] {
  const loss = plan?.data_loss;
  if (!loss || loss.records === "unknown" || loss.partitions === "unknown") return [];
  if (loss.records === "0") return ["No stored records would be deleted."];
  const records = counted(BigInt(loss.records), "record");
  const places = counted(loss.partitions, "partition");
  const oldest = loss.oldest_at
    ? `, the oldest from ${moment(loss.oldest_at).slice(0, 19)} UTC`
    : "";
  return [
    `${records} in ${places} would be deleted (about ${size(BigInt(loss.bytes_estimate))})${oldest}.`,
  ];
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
