// The keys of the organization: what each may do, until when, and whether the nodes know it.

import {
  Button,
  EmptyState,
  EmptyStateBody,
  PageSection,
  Spinner,
  Switch,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../hooks/useSession";
import { type ApiKey, all } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { Problem } from "../../ui/Problem";
import { State } from "../../ui/Why";
import { CreateKey } from "./CreateKey";
import { RevokeKey } from "./RevokeKey";

function state(key: ApiKey): { text: string; status: "success" | "warning" | "danger" | "info" } {
  const active = key.status.conditions.find((each) => each.type === "Active")?.status;
  if (key.revoked_at) {
    return active === "False"
      ? { text: "Revoked", status: "danger" }
      : { text: "Being revoked", status: "warning" };
  }
  if (key.spec.expires_at && Date.parse(key.spec.expires_at) <= Date.now()) {
    return { text: "Expired", status: "danger" };
  }
  return active === "True"
    ? { text: "Active", status: "success" }
    : { text: "On its way", status: "info" };
}

const RECIPE = {
  cli: "headrace key list",
  curl: curl("GET", "/v1/api-keys"),
  python: python("print(b.admin.keys())"),
};

export function ApiKeys() {
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const [past, setPast] = useState(false);
  const mayCreate = useMay("keys:create");
  const mayRevoke = useMay("keys:revoke");
  const keys = useQuery({
    queryKey: ["keys"],
    queryFn: () => all<ApiKey>("/v1/api-keys"),
    refetchInterval: 3000,
  });
  const shown = (keys.data ?? []).filter((key) => past || !key.revoked_at);
  return (
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">API keys</Title>
          </ToolbarItem>
          <ToolbarItem>
            <Switch
              id="past"
              label="Revoked ones too"
              isChecked={past}
              onChange={(_, on) => setPast(on)}
            />
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
            <CopyAs recipe={RECIPE} />
            {mayCreate && <Button onClick={() => setCreating(true)}>Create key</Button>}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted">
        A key is who a program is, on the nodes and here. Its secret is shown once; sessions of this
        console have keys of their own, which are not listed.
        {!mayCreate && " To create or revoke one takes a key with the role owner."}
      </p>
      {keys.isPending && <Spinner aria-label="Loading" />}
      {keys.isError && <Problem error={keys.error} />}
      {keys.data && shown.length === 0 && (
        <EmptyState titleText="No keys yet" headingLevel="h2">
          <EmptyStateBody>
            Give every program a key of its own: then one can be revoked without the others, and the
            bill says who sent what.
          </EmptyStateBody>
        </EmptyState>
      )}
      {shown.length > 0 && <List keys={shown} onRevoke={mayRevoke ? setRevoking : undefined} />}
      {creating && <CreateKey onClose={() => setCreating(false)} />}
      {revoking && <RevokeKey shown={revoking} onClose={() => setRevoking(null)} />}
    </PageSection>
  );
}

function List({ keys, onRevoke }: { keys: ApiKey[]; onRevoke?: (key: ApiKey) => void }) {
  return (
    <Table aria-label="API keys">
      <Thead>
        <Tr>
          <Th modifier="nowrap" width={25}>
            Name
          </Th>
          <Th modifier="nowrap">State</Th>
          <Th modifier="nowrap">Role</Th>
          <Th modifier="nowrap">Ends (UTC)</Th>
          <Th modifier="nowrap">Created (UTC)</Th>
          <Th screenReaderText="Actions" />
        </Tr>
      </Thead>
      <Tbody>
        {keys.map((key) => (
          <Tr key={key.id}>
            <Td dataLabel="Name">
              {key.name}
              {key.display_name && <div className="hr-muted hr-title">{key.display_name}</div>}
            </Td>
            <Td dataLabel="State" modifier="nowrap">
              <State id={key.id} name={key.name} {...state(key)} />
            </Td>
            <Td dataLabel="Role">
              {key.spec.role}
              {key.operator && ", operator"}
            </Td>
            <Td dataLabel="Ends (UTC)" modifier="nowrap">
              {key.spec.expires_at ? moment(key.spec.expires_at).slice(0, 16) : "never"}
            </Td>
            <Td dataLabel="Created (UTC)" modifier="nowrap">
              {moment(key.created_at).slice(0, 16)}
            </Td>
            <Td isActionCell>
              {onRevoke && !key.revoked_at && (
                <Button
                  variant="link"
                  isDanger
                  aria-label={`Revoke ${key.name}`}
                  onClick={() => onRevoke(key)}
                >
                  Revoke
                </Button>
              )}
            </Td>
          </Tr>
        ))}
      </Tbody>
    </Table>
  );
}
