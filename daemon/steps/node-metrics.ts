import type { DisruptionAction } from '../../api/disruption-action.ts';
import type { UpdateRecord } from '../../api/machine-config-node.ts';
import type { CertificateName } from '../../api/node-certificates.ts';
import type { RequestObservation } from '../../cluster/api-calls.ts';
import type { BackendName } from '../os/os-tool.ts';
import type { UpdateWay } from '../reboot/reboot-words.ts';
import type { DaemonState, PhaseProblem } from './phase.ts';
import type { Step } from './step.ts';

/** What the daemon did; `observe` is the look that comes before. */
export type TimedStep = Step['kind'] | 'observe';
/** A part of an update to the running system: its files, or an action. */
export type TimedPart = 'content' | DisruptionAction['type'];
export type StepResult = 'done' | 'failed';

/** Receives what a node's daemon does. Seconds are of the work alone. */
export interface NodeMetrics {
  /** Where the node is now. */
  is(state: DaemonState, problem?: PhaseProblem): void;
  /** How far the target is on its way to the disk. */
  staging(bytesDone: number, bytesTotal: number): void;
  step(step: TimedStep, seconds: number, result: StepResult): void;
  applied(part: TimedPart, seconds: number, result: StepResult): void;
  rebooted(seconds: number): void;
  /** An update is over. @param way by which it was made. @param seconds since the grant. */
  updated(way: UpdateWay, result: UpdateRecord['result'], seconds: number): void;
  driftFound(): void;
  certificates(name: CertificateName, result: StepResult): void;
  backend(name: BackendName): void;
  requested(request: RequestObservation): void;
}

/** For a daemon that is not scraped: the Prometheus client would cost it memory for nothing. */
export const noMetrics: NodeMetrics = {
  is: () => undefined,
  staging: () => undefined,
  step: () => undefined,
  applied: () => undefined,
  rebooted: () => undefined,
  updated: () => undefined,
  driftFound: () => undefined,
  certificates: () => undefined,
  backend: () => undefined,
  requested: () => undefined,
};
