import { parseArgs } from 'node:util';
import { present } from '../../../api/present.ts';
import { PROJECTS, type Project } from './nearest-tests.ts';

export const USAGE = `Mutation tester: changes one place of the code at a time and reports which changes no test notices.

  node test/checks/mutation/run.ts --room ROOM [--sample 100] [--seed 1] [--aim 85]
  node test/checks/mutation/run.ts --only FILE:LINE[:N]

  --room ROOM        A folder of product code, such as disruption. Can be repeated
  --sample N         How many mutants of each room are tried (default 100)
  --seed N           Chooses them; the same seed chooses the same ones from the same code (default 1)
  --project PROJECT  unit or integration: the tests that are tried. Default: unit, then integration for what survives. Can be repeated
  --aim N            Exit with 1 if less than N % of a room's mutants are killed
  --only FILE:LINE   Try every mutant of one line, or only the Nth. Can be repeated

The results are on stdout, the progress is on stderr. The code on disk never changes.
`;

/** A line of a file, whose mutants are tried. */
export interface Place {
  /** Path from the project's root. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** Which of the line's mutants is tried, from 1; absent: all. */
  readonly nth?: number;
}

export type Options =
  | { readonly kind: 'help' }
  | { readonly kind: 'only'; readonly places: readonly Place[]; readonly projects: readonly Project[] }
  | {
      readonly kind: 'rooms';
      readonly rooms: readonly string[];
      readonly sample: number;
      readonly seed: number;
      /** Percent; absent if every result exits with 0. */
      readonly aim: number | undefined;
      readonly projects: readonly Project[];
    };

/**
 * Reads the command line.
 *
 * @param args without the names of Node and of the script.
 * @throws {TypeError} for an unknown option, a missing room, or a value that is not what the option takes.
 */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      room: { type: 'string', multiple: true, default: [] },
      sample: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      project: { type: 'string', multiple: true, default: [...PROJECTS] },
      aim: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
    },
  });
  if (values.help) return { kind: 'help' };
  const projects = projectsOf(values.project);
  if (values.only.length > 0) return { kind: 'only', places: values.only.map(placeOf), projects };
  if (values.room.length === 0) throw new TypeError('no room named; expected --room disruption, for example');
  return {
    kind: 'rooms',
    rooms: values.room.map((room) => room.replace(/\/$/, '')),
    sample: wholeNumber('--sample', values.sample),
    seed: wholeNumber('--seed', values.seed),
    aim: values.aim === undefined ? undefined : wholeNumber('--aim', values.aim),
    projects,
  };
}

function projectsOf(names: readonly string[]): readonly Project[] {
  const unknown = names.find((name) => !PROJECTS.some((project) => project === name));
  if (unknown !== undefined)
    throw new TypeError(`--project ${unknown}: not a project; expected ${PROJECTS.join(' or ')}`);
  return PROJECTS.filter((project) => names.includes(project));
}

function wholeNumber(option: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new TypeError(`${option} ${text}: expected a whole number`);
  return Number(text);
}

function placeOf(text: string): Place {
  const [, file, line, nth] = /^([^:]+):([1-9]\d*)(?::([1-9]\d*))?$/.exec(text) ?? [];
  if (file === undefined)
    throw new TypeError(`--only ${text}: expected FILE:LINE or FILE:LINE:N, such as image/append.ts:60`);
  return { file, line: Number(line), ...present({ nth: nth === undefined ? undefined : Number(nth) }) };
}
