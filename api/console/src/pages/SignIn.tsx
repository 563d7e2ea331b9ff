import {
  Button,
  Card,
  CardBody,
  Form,
  FormGroup,
  FormHelperText,
  HelperText,
  HelperTextItem,
  TextInput,
  Title,
} from "@patternfly/react-core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { signIn } from "../api/client";
import { Problem } from "../widgets/Problem";

export function SignIn() {
  const queries = useQueryClient();
  const [secret, setSecret] = useState("");
  const enter = useMutation({
    mutationFn: signIn,
    onSuccess: (session) => queries.setQueryData(["session"], session),
  });
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
              enter.mutate(secret);
            }}
          >
            {enter.isError && <Problem error={enter.error} />}
            <FormGroup label="Password or API key" fieldId="secret" isRequired>
              <TextInput
                id="secret"
                type="password"
                autoComplete="current-password"
                isRequired
                value={secret}
                onChange={(_, value) => setSecret(value)}
              />
              <FormHelperText>
                <HelperText>
                  <HelperTextItem>
                    The first start showed the password (`headrace up`, `python -m api bootstrap`).
                    Any API key (hr_user_…) opens the console with that key's rights.
                  </HelperTextItem>
                </HelperText>
              </FormHelperText>
            </FormGroup>
            <Button type="submit" isBlock isDisabled={!secret} isLoading={enter.isPending}>
              Sign in
            </Button>
          </Form>
        </CardBody>
      </Card>
    </main>
  );
}
