/** One thing that is wrong in a configuration: where, what, and what would be right. */
export interface Problem {
  /** A JSON path: `$.storage.files[2].contents.source`. Relative to the Ignition config or, where said so, to the object. */
  readonly path: string;
  readonly reason: string;
  readonly expected: string;
}

/** @returns a problem on one line, as conditions, events and the command line show it. */
export function formatProblem(problem: Problem): string {
  return `${problem.path}: ${problem.reason}; expected ${problem.expected}`;
}

/** Longest quotation of what somebody wrote, in UTF-16 code units: problems end up in conditions and events. */
const QUOTED = 100;

/** @returns a name or path in quotes for a problem's reason, cut when it is very long. Never for contents: they may be secret. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTED ? `${text.slice(0, QUOTED)}…` : text);
}

/** What is wrong with one MachineConfig, or with the rendering as a whole where `machineConfig` is ''. */
export interface ConfigProblems {
  readonly machineConfig: string;
  /** Paths begin at the Ignition config where they begin with `$`, else at the MachineConfig's spec. */
  readonly problems: readonly Problem[];
}
