import { formatActions } from '../../../api/disruption-action.ts';
import type { MachineConfigNode } from '../../../api/machine-config-node.ts';

/** What a node did in a step: a line of the tour's table. */
export interface NodeRow {
  readonly node: string;
  readonly pool: string;
  readonly mode: string;
  readonly config: string;
  /** Of the layered image; empty in standard mode. */
  readonly imageDigest: string;
  readonly actions: string;
  readonly why: string;
  readonly seconds: number;
}

export interface StepReport {
  readonly number: number;
  readonly title: string;
  readonly seconds: number;
  /** What was found to be so, in words. */
  readonly checks: readonly string[];
  readonly rows: readonly NodeRow[];
  /** Why it was not taken, on a machine that lacks what it needs. */
  readonly skipped?: string;
  readonly failure?: { readonly message: string; readonly logs: readonly LogTail[] };
}

export interface LogTail {
  readonly file: string;
  readonly lines: readonly string[];
}

export interface TourReport {
  readonly steps: readonly StepReport[];
  readonly totalSteps: number;
  readonly seconds: number;
  /** The most that all processes of the sandbox and the tour had resident at one time; bytes. */
  readonly peakMemory: number;
}

/** @returns whether every step ended as it should. */
export function isSuccess({ steps, totalSteps }: TourReport): boolean {
  return steps.length === totalSteps && steps.every(({ failure }) => failure === undefined);
}

/** @returns the row of a node's last update; undefined where it made none. */
export function rowOfLastUpdate({ metadata, spec, status }: MachineConfigNode): NodeRow | undefined {
  const update = status?.lastUpdate;
  if (update === undefined) return undefined;
  return {
    node: metadata.name,
    pool: spec.pool.name,
    mode: update.image === undefined ? 'Standard' : 'Layered',
    config: update.config,
    imageDigest: update.image === undefined ? '' : digestPart(update.image),
    actions: formatActions(update.actions),
    why: update.causes.length === 0 ? update.source : subjects(update.causes.map(({ subject }) => subject)),
    seconds: (Date.parse(update.finishedAt) - Date.parse(update.startedAt)) / 1000,
  };
}

const SHOWN_SUBJECTS = 2;

function subjects(all: readonly string[]): string {
  const shown = all.slice(0, SHOWN_SUBJECTS).join(', ');
  return all.length > SHOWN_SUBJECTS ? `${shown} and ${all.length - SHOWN_SUBJECTS} more` : shown;
}

function digestPart(image: string): string {
  return image.slice(image.indexOf('@') + 1);
}
