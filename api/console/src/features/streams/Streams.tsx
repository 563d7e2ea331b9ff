// The streams: namespaces of topics.

import { Button } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { all, type Stream } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import type { Column } from "../../ui/DataTable";
import { DeleteDialog } from "../../ui/DeleteDialog";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { ObjectState } from "../../ui/ObjectState";
import { RowButton } from "../../ui/RowButton";
import { CreateStream } from "./CreateStream";

const RECIPE = {
  cli: "headrace stream list",
  curl: curl("GET", "/v1/streams"),
  python: python("print(b.admin.streams())"),
};

const COLUMNS: Column<Stream>[] = [
  { title: "Name", cell: (stream) => stream.name },
  { title: "State", cell: (stream) => <ObjectState shown={stream} name={stream.name} /> },
  { title: "Created (UTC)", cell: (stream) => moment(stream.created_at).slice(0, 16) },
];

export function Streams() {
  const [creating, setCreating] = useState(false);
  const [deleting, setDeleting] = useState<Stream | null>(null);
  const mayCreate = useMay("streams:create");
  const mayDelete = useMay("streams:delete");
  const streams = useQuery({
    queryKey: ["streams"],
    queryFn: () => all<Stream>("/v1/streams"),
    refetchInterval: 5000,
  });
  return (
    <ListPage
      title="Streams"
      about="A stream is a namespace for topics: billing/orders is the topic orders in the stream billing."
      recipe={RECIPE}
      actions={mayCreate && <Button onClick={() => setCreating(true)}>Create stream</Button>}
    >
      <List
        label="Streams"
        noun="stream"
        query={streams}
        items={streams.data ?? []}
        columns={COLUMNS}
        keyOf={(stream) => stream.id}
        actions={(stream) =>
          mayDelete &&
          !stream.deleted_at && (
            <RowButton act="Delete" of={stream.name} onClick={() => setDeleting(stream)} />
          )
        }
        empty={
          <Empty
            title="No streams yet"
            body={
              mayCreate
                ? "Create a stream, then add topics to it."
                : "Creating a stream requires a key with the editor or owner role."
            }
          />
        }
      />
      {creating && <CreateStream onClose={() => setCreating(false)} />}
      {deleting && (
        <DeleteDialog
          kind="stream"
          path={`/v1/streams/${deleting.id}`}
          name={deleting.name}
          etag={deleting.etag}
          onClose={() => setDeleting(null)}
          onDone={() => setDeleting(null)}
        />
      )}
    </ListPage>
  );
}
