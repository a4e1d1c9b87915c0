/** A problem of a configuration: where it is, what is wrong, and what is expected. */
export interface Problem {
  /** A JSON path, `$.storage.files[2].contents.source`, relative to the Ignition config unless documented otherwise. */
  readonly path: string;
  readonly reason: string;
  readonly expected: string;
}

/** @returns a problem on one line, for conditions, events and the command line. */
export function formatProblem(problem: Problem): string {
  return `${problem.path}: ${problem.reason}; expected ${problem.expected}`;
}

/** The maximum length of a quoted value, in UTF-16 code units: conditions and events contain problems. */
const QUOTED = 100;

/** @returns a name or path in quotes for a problem, cut when it is very long. Not for contents, which may be secret. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);
}

/** Problems of a MachineConfig that a message names; the others are counted. */
const NAMED = 10;

/** @returns the problems of one MachineConfig on one line, for conditions and events. */
export function formatConfigProblems({ machineConfig, problems }: ConfigProblems): string {
  const named = problems.slice(0, NAMED).map(formatProblem).join(', ');
  const more = problems.length > NAMED ? `, and ${problems.length - NAMED} more` : '';
  return `${machineConfig === '' ? '' : `MachineConfig ${machineConfig}: `}${named}${more}`;
}

/** The problems of a MachineConfig, or of the rendering as a whole when `machineConfig` is ''. */
export interface ConfigProblems {
  readonly machineConfig: string;
  /** Paths that start with `$` are relative to the Ignition config, others to the MachineConfig's spec. */
  readonly problems: readonly Problem[];
}

/** What comes of objects or files that people write: a value, or every problem with them. */
export type Validated<T> =
  | ({ readonly ok: true } & Readonly<T>)
  | { readonly ok: false; readonly problems: readonly Problem[] };
