// What a run published: its files by digest, and the figures of its manifest.

import { Alert, Button, Card, CardBody, CardTitle, Label } from "@patternfly/react-core";
import { Table, Tbody, Td, Th, Thead, Tr } from "@patternfly/react-table";
import { Link } from "@tanstack/react-router";
import { grouped } from "../../lib/decimal";
import { size } from "../../lib/format";
import { fileAddress, type ReportRun } from "../../lib/reports";
import { type PublishedFile, type Result, resultOf } from "./run";

/** States of partitions in which log and meter agree, or will once more is read. */
const GOOD = new Set(["EXACT", "OPEN", "UNVERIFIED"]);

export function Published({ run }: { run: ReportRun }) {
  const result = resultOf(run);
  if (!result) return null;
  return (
    <>
      {result.supersededBy && (
        <Alert
          variant="warning"
          isInline
          component="h2"
          title="What this run found is not shown: a run that started later was published before it"
        >
          <Link to="/reports/$runId" params={{ runId: result.supersededBy }}>
            {result.supersededBy}
          </Link>{" "}
          knows more and stays in place. The files of this run are below.
        </Alert>
      )}
      <Files runId={run.id} files={result.files} />
      <div className="hr-grid">
        <Evidence result={result} />
        <Totals result={result} />
      </div>
    </>
  );
}

function Files({ runId, files }: { runId: string; files: PublishedFile[] }) {
  // Pages first: they are what people open.
  const order = files.toSorted((a, b) => Number(isPage(b)) - Number(isPage(a)));
  return (
    <Card component="section" aria-label="Files">
      <CardTitle component="h2">Files</CardTitle>
      <CardBody>
        <Table aria-label="Files" variant="compact">
          <Thead>
            <Tr>
              <Th width={45}>Name</Th>
              <Th className="hr-number">Size</Th>
              <Th>SHA-256</Th>
              <Th screenReaderText="Actions" />
            </Tr>
          </Thead>
          <Tbody>
            {order.map((file) => (
              <Tr key={file.name}>
                <Td dataLabel="Name" modifier="breakWord">
                  {file.name}
                </Td>
                <Td dataLabel="Size" className="hr-number">
                  {size(BigInt(file.bytes))}
                </Td>
                <Td dataLabel="SHA-256">
                  <span className="hr-mono" title={file.sha256}>
                    {file.sha256.slice(0, 16)}…
                  </span>
                </Td>
                <Td isActionCell>
                  <Button
                    component="a"
                    variant={isPage(file) ? "primary" : "link"}
                    size="sm"
                    href={fileAddress(runId, file.name)}
                    {...(isPage(file)
                      ? { target: "_blank", rel: "noopener noreferrer" }
                      : { download: file.name })}
                    aria-label={`${isPage(file) ? "Open" : "Download"} ${file.name}`}
                  >
                    {isPage(file) ? "Open" : "Download"}
                  </Button>
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
        <p className="hr-note">
          Pages open by themselves in a sandbox: no script runs, nothing is fetched.
        </p>
      </CardBody>
    </Card>
  );
}

function isPage(file: PublishedFile): boolean {
  return file.name.endsWith(".html");
}

function Evidence({ result }: { result: Result }) {
  return (
    <Card component="section" aria-label="Evidence">
      <CardTitle component="h2">Evidence</CardTitle>
      <CardBody>
        <p>
          {result.complete === null && <Label status="info">Completeness not stated</Label>}
          {result.complete === true && <Label status="success">Complete</Label>}
          {result.complete === false && <Label status="danger">Not complete</Label>}{" "}
          {result.partitions.map(([state, number]) => (
            <Label key={state} status={GOOD.has(state) ? "success" : "danger"}>
              {grouped(String(number))} {state.toLowerCase()}
            </Label>
          ))}
        </p>
        <p className="hr-note">
          Computed from frozen inputs; the same inputs give the same files again.
        </p>
        <p className="hr-mono hr-break">{result.input}</p>
      </CardBody>
    </Card>
  );
}

function Totals({ result }: { result: Result }) {
  return (
    <Card component="section" aria-label="Totals">
      <CardTitle component="h2">Totals</CardTitle>
      <CardBody>
        <Table aria-label="Totals" variant="compact" borders={false}>
          <Tbody>
            {result.totals.map(([name, value]) => (
              <Tr key={name}>
                <Th scope="row">{name.replaceAll("_", " ")}</Th>
                <Td className="hr-number hr-break">
                  {/^-?[0-9]+(\.[0-9]+)?$/.test(value) ? grouped(value) : value}
                </Td>
              </Tr>
            ))}
          </Tbody>
        </Table>
      </CardBody>
    </Card>
  );
}
