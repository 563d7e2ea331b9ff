// The keys of the organization: what each may do, until when, and whether the nodes know it.

import { Button, Switch, ToolbarItem } from "@patternfly/react-core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { type ApiKey, all } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import type { Column } from "../../ui/DataTable";
import { Empty } from "../../ui/Empty";
import { List } from "../../ui/List";
import { ListPage } from "../../ui/ListPage";
import { State } from "../../ui/ObjectState";
import { RowButton } from "../../ui/RowButton";
import { CreateKey } from "./CreateKey";
import { RevokeKey } from "./RevokeKey";

function state(key: ApiKey): { text: string; status: "success" | "warning" | "danger" | "info" } {
  const active = key.status.conditions.find((each) => each.type === "Active")?.status;
  if (key.revoked_at) {
    return active === "False"
      ? { text: "Revoked", status: "danger" }
      : { text: "Revoking", status: "warning" };
  }
  if (key.spec.expires_at && Date.parse(key.spec.expires_at) <= Date.now()) {
    return { text: "Expired", status: "danger" };
  }
  return active === "True"
    ? { text: "Active", status: "success" }
    : { text: "Pending", status: "info" };
}

const RECIPE = {
  cli: "headrace key list",
  curl: curl("GET", "/v1/api-keys"),
  python: python("print(b.admin.keys())"),
};

const COLUMNS: Column<ApiKey>[] = [
  {
    title: "Name",
    width: 25,
    cell: (key) => (
      <>
        {key.name}
        {key.display_name && <div className="hr-muted hr-title">{key.display_name}</div>}
      </>
    ),
  },
  {
    title: "State",
    wrap: "never",
    cell: (key) => <State id={key.id} name={key.name} {...state(key)} />,
  },
  { title: "Role", cell: (key) => `${key.spec.role}${key.operator ? ", operator" : ""}` },
  {
    title: "Expires (UTC)",
    wrap: "never",
    cell: (key) => (key.spec.expires_at ? moment(key.spec.expires_at).slice(0, 16) : "Never"),
  },
  { title: "Created (UTC)", wrap: "never", cell: (key) => moment(key.created_at).slice(0, 16) },
];

export function ApiKeys() {
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const [past, setPast] = useState(false);
  const mayCreate = useMay("keys:create");
  const mayRevoke = useMay("keys:revoke");
  // The API refuses an owner who revokes the key of an operator.
  const mayRevokeOperators = useMay("operators:revoke");
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: () => all<ApiKey>("/v1/api-keys"),
    refetchInterval: 3000,
  });
  return (
    <ListPage
      title="API keys"
      tools={
        <ToolbarItem>
          <Switch
            id="past"
            label="Show revoked keys"
            isChecked={past}
            onChange={(_, on) => setPast(on)}
          />
        </ToolbarItem>
      }
      about={
        <>
          An API key identifies a program to the nodes and to this API. Its secret is shown only
          once. Keys of console sessions are not listed.
          {!mayCreate && " Creating or revoking a key requires a key with the owner role."}
        </>
      }
      recipe={RECIPE}
      actions={mayCreate && <Button onClick={() => setCreating(true)}>Create API key</Button>}
    >
      <List
        label="API keys"
        noun="API key"
        query={keys}
        items={(keys.data ?? []).filter((key) => past || !key.revoked_at)}
        columns={COLUMNS}
        keyOf={(key) => key.id}
        actions={(key) =>
          mayRevoke &&
          (!key.operator || mayRevokeOperators) &&
          !key.revoked_at && (
            <RowButton act="Revoke" of={key.name} onClick={() => setRevoking(key)} />
          )
        }
        empty={
          <Empty
            title="No API keys yet"
            body="Create one key per program, so that each can be revoked on its own and usage is reported per key."
          />
        }
      />
      {creating && <CreateKey onClose={() => setCreating(false)} />}
      {revoking && <RevokeKey shown={revoking} onClose={() => setRevoking(null)} />}
    </ListPage>
  );
}
