// The fields of forms: each with its label, its help, and its value as text.

import {
  FormGroup,
  FormSelect,
  FormSelectOption,
  TextInput,
  type TextInputProps,
} from "@patternfly/react-core";
import type { ReactNode } from "react";
import { Hint } from "./Hint";

type FieldProps = { id: string; label: string; hint?: string; isRequired?: boolean };

export function Field({
  id,
  label,
  hint,
  isRequired,
  children,
}: FieldProps & { children: ReactNode }) {
  return (
    <FormGroup label={label} fieldId={id} isRequired={isRequired}>
      {children}
      {hint && <Hint>{hint}</Hint>}
    </FormGroup>
  );
}

type ValueProps = FieldProps & { value: string; onChange: (value: string) => void };

type TextProps = ValueProps & { isInvalid?: boolean } & Pick<
    TextInputProps,
    "type" | "min" | "max" | "inputMode" | "maxLength"
  >;

export function TextField({ hint, label, isInvalid, onChange, ...input }: TextProps) {
  return (
    <Field id={input.id} label={label} hint={hint} isRequired={input.isRequired}>
      <TextInput
        {...input}
        validated={isInvalid ? "error" : "default"}
        onChange={(_, value) => onChange(value)}
      />
    </Field>
  );
}

/** `options`: the value of each, and its words. */
type SelectProps = ValueProps & { options: [value: string, label: string][] };

export function SelectField({ options, value, onChange, ...field }: SelectProps) {
  return (
    <Field {...field}>
      <FormSelect id={field.id} value={value} onChange={(_, chosen) => onChange(chosen)}>
        {options.map(([option, label]) => (
          <FormSelectOption key={option} value={option} label={label} />
        ))}
      </FormSelect>
    </Field>
  );
}
