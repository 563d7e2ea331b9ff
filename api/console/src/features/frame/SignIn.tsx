import { Button, Card, CardBody, Form, TextInput, Title } from "@patternfly/react-core";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useAct } from "../../hooks/useAct";
import { usePageTitle } from "../../hooks/usePageTitle";
import { enter } from "../../hooks/useSession";
import { signIn } from "../../lib/client";
import { Field } from "../../ui/Field";
import { Problem } from "../../ui/Problem";

export function SignIn() {
  const queries = useQueryClient();
  const [secret, setSecret] = useState("");
  const door = useAct({
    mutationFn: signIn,
    onSuccess: (session) => enter(queries, session),
  });
  const field = useRef<HTMLInputElement>(null);
  usePageTitle("Sign in");
  // There is nothing else to do here.
  useEffect(() => field.current?.focus(), []);
  return (
    <main className="hr-signin">
      <Card>
        <CardBody>
          <div className="hr-brand">
            <img src="/console/favicon.svg" alt="" />
            <Title headingLevel="h1" size="xl">
              Headrace
            </Title>
          </div>
          <br />
          <Form
            onSubmit={(event) => {
              event.preventDefault();
              door.mutate(secret);
            }}
          >
            {door.isError && <Problem error={door.error} />}
            <Field
              id="secret"
              label="Password or API key"
              hint="The server printed the password when it first started. You can also sign in with an API key (hr_user_…) and use the console with its permissions."
              isRequired
            >
              <TextInput
                ref={field}
                id="secret"
                type="password"
                autoComplete="current-password"
                isRequired
                value={secret}
                onChange={(_, value) => setSecret(value)}
              />
            </Field>
            <Button type="submit" isBlock isDisabled={!secret} isLoading={door.isPending}>
              Sign in
            </Button>
          </Form>
        </CardBody>
      </Card>
    </main>
  );
}
