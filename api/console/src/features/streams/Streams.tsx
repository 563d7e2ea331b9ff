import {
  Button,
  EmptyState,
  EmptyStateBody,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  PageSection,
  Spinner,
  TextInput,
  Title,
  Toolbar,
  ToolbarContent,
  ToolbarItem,
} from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAct } from "../../hooks/useAct";
import { useMay } from "../../hooks/useSession";
import { all, call, type Stream } from "../../lib/client";
import { moment } from "../../lib/format";
import { curl, python, shell } from "../../lib/recipe";
import { CopyAs } from "../../ui/CopyAs";
import { DeleteDialog } from "../../ui/DeleteDialog";
import { Problem } from "../../ui/Problem";
import { Why } from "../../ui/Why";

const RECIPE = {
  cli: "headrace stream list",
  curl: curl("GET", "/v1/streams"),
  python: python("print(b.admin.streams())"),
};

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
    <PageSection>
      <Toolbar>
        <ToolbarContent alignItems="center">
          <ToolbarItem>
            <Title headingLevel="h1">Streams</Title>
          </ToolbarItem>
          <ToolbarItem align={{ default: "alignEnd" }} className="hr-acts">
            <CopyAs recipe={RECIPE} />
            {mayCreate && <Button onClick={() => setCreating(true)}>Create stream</Button>}
          </ToolbarItem>
        </ToolbarContent>
      </Toolbar>
      <p className="hr-muted">
        A stream is a namespace of topics: billing/orders is topic orders of stream billing.
      </p>
      {streams.isPending && <Spinner aria-label="Loading" />}
      {streams.isError && <Problem error={streams.error} />}
      {streams.data?.length === 0 && (
        <EmptyState titleText="No streams yet" headingLevel="h2">
          <EmptyStateBody>
            {mayCreate
              ? "Create one, then put topics into it."
              : "To create one takes a key with the role editor or owner."}
          </EmptyStateBody>
        </EmptyState>
      )}
      {streams.data && streams.data.length > 0 && (
        <Table aria-label="Streams">
          <Thead>
            <Tr>
              <Th>Name</Th>
              <Th>State</Th>
              <Th>Created (UTC)</Th>
              <Th screenReaderText="Actions" />
            </Tr>
          </Thead>
          <Tbody>
            {streams.data.map((stream) => (
              <Tr key={stream.id}>
                <Td dataLabel="Name">{stream.name}</Td>
                <Td dataLabel="State">
                  <Why shown={stream} name={stream.name} />
                </Td>
                <Td dataLabel="Created (UTC)">{moment(stream.created_at).slice(0, 16)}</Td>
                <Td isActionCell>
                  {mayDelete && !stream.deleted_at && (
                    <Button
                      variant="link"
                      isDanger
                      aria-label={`Delete ${stream.name}`}
                      onClick={() => setDeleting(stream)}
                    >
                      Delete
                    </Button>
                  )}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      )}
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
    </PageSection>
  );
}

function CreateStream({ onClose }: { onClose: () => void }) {
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const create = useAct({
    mutationFn: () => call("POST", "/v1/streams", { body: { name } }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["streams"] });
      onClose();
    },
  });
  const recipe = {
    cli: `headrace stream create ${shell(name || "NAME")}`,
    curl: curl("POST", "/v1/streams", { name: name || "NAME" }),
    python: python(`b.admin.create_stream(${JSON.stringify(name || "NAME")})`),
  };
  return (
    <Modal isOpen onClose={onClose} variant="small" aria-label="Create stream">
      <ModalHeader title="Create stream" />
      <ModalBody>
        {create.isError && <Problem error={create.error} />}
        <Form
          id="create-stream"
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate();
          }}
        >
          <FormGroup label="Name" fieldId="stream-name" isRequired>
            <TextInput
              id="stream-name"
              isRequired
              value={name}
              onChange={(_, value) => setName(value)}
            />
            <FormHelperText>
              <HelperText>
                <HelperTextItem>Lower-case letters, digits and -, such as billing.</HelperTextItem>
              </HelperText>
            </FormHelperText>
          </FormGroup>
        </Form>
      </ModalBody>
      <ModalFooter>
        <Button type="submit" form="create-stream" isDisabled={!name} isLoading={create.isPending}>
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
