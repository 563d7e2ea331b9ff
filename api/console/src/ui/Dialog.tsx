import {
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
  type ModalHeaderProps,
  type ModalProps,
} from "@patternfly/react-core";
import type { ReactNode } from "react";

type Props = {
  title: string;
  about?: string;
  icon?: ModalHeaderProps["titleIconVariant"];
  size?: ModalProps["variant"];
  /** Its buttons; without any, it is closed by its cross. */
  footer?: ReactNode;
  onClose: () => void;
  children: ReactNode;
};

/** The one window over a page. Every other dialog is made of it. */
export function Dialog({ title, about, icon, size = "small", footer, onClose, children }: Props) {
  return (
    <Modal isOpen onClose={onClose} variant={size} aria-label={title}>
      <ModalHeader title={title} description={about} titleIconVariant={icon} />
      {/* What scrolls must be reached by keys. */}
      <ModalBody tabIndex={footer ? undefined : 0}>{children}</ModalBody>
      {footer && <ModalFooter>{footer}</ModalFooter>}
    </Modal>
  );
}
