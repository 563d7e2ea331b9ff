// The message browser: from where, which partition, live or not; the list, and one message in full.

import {
  Button,
  Checkbox,
  FormSelect,
  FormSelectOption,
  Spinner,
  TextInput,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useMay } from "../../hooks/useSession";
import { call, type Message, type MessagePage, type Topic } from "../../lib/client";
import { copied } from "../../lib/clipboard";
import { counted } from "../../lib/format";
import { isTyping } from "../../lib/keyboard";
import { textOf } from "../../lib/payload";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs, Snippet } from "../../ui/CopyAs";
import { Empty } from "../../ui/Empty";
import { Problem } from "../../ui/Problem";
import { MessageTable } from "./MessageTable";
import { MessageView } from "./MessageView";
import { Publish } from "./Publish";
import type { TopicSearch } from "./search";
import { useTail } from "./useTail";

const LIMIT = 50;

const keyOf = (message: Message) => `${message.partition}:${message.offset}`;

export function Messages({ topic }: { topic: Topic }) {
  const search = useSearch({ from: "/topics/$topicId" });
  const navigate = useNavigate();
  const [live, setLive] = useState(false);
  const [paused, setPaused] = useState(false);
  const mayPublish = useMay("messages:publish");
  const [publishing, setPublishing] = useState(false);
  const [chosen, setChosen] = useState<string | null>(
    search.o !== undefined && search.p !== undefined ? `${search.p}:${search.o}` : null,
  );
  const query = queryOf(search);
  const base = `/v1/topics/${topic.id}/messages`;
  const page = useQuery({
    queryKey: ["messages", topic.id, query],
    queryFn: () => call<MessagePage>("GET", `${base}?${query}`),
    enabled: !live,
  });
  const partition = search.p === undefined ? "" : `?partition=${search.p}`;
  const tail = useTail(`${base}/tail${partition}`, live, paused);
  const found = live ? tail.messages : (page.data?.messages ?? []);
  // The newest first where the newest are asked for; as they lie in the log where one reads on.
  const messages = live || (search.from ?? "latest") === "latest" ? found.toReversed() : found;
  const message = messages.find((each) => keyOf(each) === chosen);

  const go = (change: Partial<TopicSearch>) =>
    navigate({
      to: "/topics/$topicId",
      params: { topicId: topic.id },
      search: { ...search, tab: "messages", ...change },
      replace: true,
    });
  const choose = (picked: Message | undefined) => {
    if (picked) setChosen((now) => (now === keyOf(picked) ? null : keyOf(picked)));
  };

  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const at = messages.findIndex((each) => keyOf(each) === chosen);
      if (event.key === "j") setChosen((now) => keyAt(messages, at + 1) ?? now);
      if (event.key === "k") setChosen((now) => keyAt(messages, Math.max(0, at - 1)) ?? now);
      if (event.key === "Escape") setChosen(null);
      if (event.key === "y" && at >= 0) {
        copied(textOf(messages[at]?.value));
      }
      const onControl = (event.target as HTMLElement).closest("button,a,summary") !== null;
      if (event.key === " " && live && !onControl) {
        event.preventDefault();
        setPaused((now) => !now);
      }
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });

  return (
    <div className="hr-messages hr-panel">
      <Toolbar>
        <ToolbarContent alignItems="center">
          <Where topic={topic} search={search} isDisabled={live} onGo={go} />
          <ToolbarItem alignSelf="center">
            <Checkbox
              id="live"
              label="Live"
              isChecked={live}
              onChange={(_, on) => {
                setLive(on);
                setPaused(false);
              }}
            />
          </ToolbarItem>
          {live && (
            <ToolbarItem>
              <Button variant="secondary" onClick={() => setPaused(!paused)}>
                {paused ? "Resume" : "Pause"}
              </Button>
            </ToolbarItem>
          )}
          {!live && (
            <ToolbarItem>
              <Button
                variant="secondary"
                onClick={() => page.refetch()}
                isLoading={page.isFetching}
              >
                Refresh
              </Button>
            </ToolbarItem>
          )}
          <ToolbarItem align={{ default: "alignEnd" }}>
            <CopyAs recipe={recipeOf(topic, search, `${base}?${query}`)} />
          </ToolbarItem>
          <ToolbarItem>
            {mayPublish && <Button onClick={() => setPublishing(true)}>Publish message</Button>}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted" aria-live="polite">
        {live && !paused && <span className="hr-live" aria-hidden="true" />}
        {live
          ? `${paused ? "Paused" : tail.connected ? "Streaming" : "Connecting"} · ${counted(tail.seen, "message")} received${tail.problem && ` · ${tail.problem}`}`
          : page.data && counted(messages.length, "message")}
      </p>
      {page.isError && !live && <Problem error={page.error} />}
      {page.isPending && !live && <Spinner aria-label="Loading" />}
      {messages.length > 0 && (
        <MessageTable messages={messages} chosen={chosen} keyOf={keyOf} onChoose={choose}>
          {message && (
            <MessageView topic={topic} message={message} onClose={() => setChosen(null)} />
          )}
        </MessageTable>
      )}
      {messages.length === 0 && (live || page.isSuccess) && (
        <Nothing topic={topic} live={live} maySend={mayPublish} />
      )}
      {publishing && <Publish topic={topic} onClose={() => setPublishing(false)} />}
    </div>
  );
}

function keyAt(messages: Message[], at: number): string | undefined {
  const found = messages[at];
  return found && keyOf(found);
}

type WhereProps = {
  topic: Topic;
  search: TopicSearch;
  isDisabled: boolean;
  onGo: (change: Partial<TopicSearch>) => void;
};

function Where({ topic, search, isDisabled, onGo }: WhereProps) {
  const from = search.from ?? "latest";
  return (
    <>
      <ToolbarItem>
        <FormSelect
          aria-label="Partition"
          value={search.p ?? ""}
          onChange={(_, value) => onGo({ p: value === "" ? undefined : Number(value) })}
        >
          <FormSelectOption value="" label="All partitions" />
          {Array.from({ length: topic.status.effective.partitions }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the index is the partition's name.
            <FormSelectOption key={index} value={index} label={`Partition ${index}`} />
          ))}
        </FormSelect>
      </ToolbarItem>
      <ToolbarItem>
        <FormSelect
          aria-label="Start position"
          value={from}
          isDisabled={isDisabled}
          onChange={(_, value) => {
            const place = value as TopicSearch["from"];
            // The time stands in the address from the start: what is shown, copied and sent is one.
            onGo({ from: place, ...(place === "time" && { t: search.t ?? hourAgo() }) });
          }}
        >
          <FormSelectOption value="latest" label="Latest" />
          <FormSelectOption value="earliest" label="Earliest" />
          <FormSelectOption value="offset" label="Offset" />
          <FormSelectOption value="time" label="Time (UTC)" />
        </FormSelect>
      </ToolbarItem>
      {from === "offset" && (
        <ToolbarItem>
          <TextInput
            aria-label="Offset"
            inputMode="numeric"
            isDisabled={isDisabled}
            defaultValue={search.o ?? "0"}
            onKeyDown={(event) => {
              if (event.key === "Enter") onGo({ o: event.currentTarget.value });
            }}
            onBlur={(event) => onGo({ o: event.currentTarget.value })}
          />
        </ToolbarItem>
      )}
      {from === "time" && (
        <ToolbarItem>
          <TextInput
            aria-label="Time in UTC"
            type="datetime-local"
            step={1}
            isDisabled={isDisabled}
            defaultValue={search.t}
            onKeyDown={(event) => {
              if (event.key === "Enter") onGo({ t: event.currentTarget.value || hourAgo() });
            }}
            onBlur={(event) => onGo({ t: event.currentTarget.value || hourAgo() })}
          />
        </ToolbarItem>
      )}
    </>
  );
}

type NothingProps = { topic: Topic; live: boolean; maySend: boolean };

function Nothing({ topic, live, maySend }: NothingProps) {
  const name = shell(`${topic.stream}/${topic.name}`);
  return (
    <Empty
      title={live ? "No new messages yet" : "No messages found"}
      body={
        live
          ? "New messages appear here automatically."
          : "No messages were sent, retention deleted them, or they are before the start position."
      }
    >
      {maySend && <Snippet title="Send a message" code={`echo hello | headrace produce ${name}`} />}
    </Empty>
  );
}

function queryOf(search: TopicSearch): string {
  const query = new URLSearchParams({ from: search.from ?? "latest", limit: String(LIMIT) });
  if (search.p !== undefined) query.set("partition", String(search.p));
  if (search.from === "offset") query.set("offset", search.o ?? "0");
  if (search.from === "time") query.set("time", `${wholeTime(search.t)}Z`);
  return query.toString();
}

function hourAgo(): string {
  return new Date(Date.now() - 3_600_000).toISOString().slice(0, 19);
}

/** A browser leaves out seconds that are 0. */
function wholeTime(time = `${hourAgo().slice(0, 14)}00`): string {
  return time.padEnd(19, ":00");
}

function recipeOf(topic: Topic, search: TopicSearch, path: string) {
  const name = `${topic.stream}/${topic.name}`;
  const from = search.from ?? "latest";
  const time = `${wholeTime(search.t)}Z`;
  // Programs read on from a place; of the latest, that is what comes from now on.
  const places = {
    latest: ["end", '"latest"'],
    earliest: ["start", '"earliest"'],
    offset: [search.o ?? "0", search.o ?? "0"],
    time: [`@${time}`, `datetime.fromisoformat("${time}")`],
  };
  const [place, start] = places[from];
  const [flag, word] =
    search.p === undefined ? ["", ""] : [` --partition ${search.p}`, `, partition=${search.p}`];
  const until = from === "latest" ? "" : ', until="end"';
  const loop =
    `for m in b.topic(${JSON.stringify(name)}).consume(start=${start}${until}${word}):\n` +
    "        print(m.partition, m.offset, m.key, m.value)";
  return {
    cli: `headrace consume ${shell(name)} --from ${shell(place)}${flag}${until && " --exit-at-end"}`,
    curl: curl("GET", path),
    python: `${from === "time" ? "from datetime import datetime\n" : ""}${python(loop)}`,
  };
}
