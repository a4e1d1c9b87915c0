/**
 * Mutation tester: changes one place of the code at a time and reports which changes no test notices.
 *
 *   node test/checks/mutation/run.ts --room disruption [--sample 100] [--seed 7] [--project unit …] [--aim 85]
 *
 * A mutant's tests are the test files that reach its file by imports, the nearest first; the first failure ends them. The code on
 * disk is never changed: the mutant stands in for the file where vitest loads it.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Plugin } from 'vite';
// biome-ignore lint/suspicious/noDeprecatedImports: only its older overload, with a mode, is deprecated
import { createVitest, type TestSpecification, type Vitest } from 'vitest/node';
import { distancesTo, type ImportGraph, isTestFile, readImportGraph } from '../import-graph.ts';
import { type Mutant, mutantsOf } from './mutate.ts';

const root = path.join(import.meta.dirname, '../../..');
const CODE = [
  'api',
  'machineconfig',
  'disruption',
  'image',
  'cluster',
  'builder',
  'opt-in',
  'rollout',
  'operator',
  'daemon',
  'cli',
  'page',
  'test',
  'workshop',
];

/** Test files farther away than this many of the nearest hardly ever notice what the nearer ones did not. */
const MOST_TEST_FILES = 12;

interface Placed extends Mutant {
  readonly file: string;
}

type Verdict = 'killed' | 'survived' | 'not covered';

class MutationRun {
  #current: Placed | undefined;
  readonly #graph: ImportGraph;
  readonly #projects: readonly string[];
  #vitest: Vitest | undefined;

  constructor(projects: readonly string[]) {
    this.#projects = projects;
    this.#graph = readImportGraph(root, CODE);
  }

  /** @param room a folder of product code. @returns every mutant of its code, in the order of files and lines. */
  mutants(room: string): Placed[] {
    return [...this.#graph.keys()]
      .filter((file) => file.startsWith(`${room}/`) && !isTestFile(file))
      .flatMap((file) =>
        mutantsOf(file, readFileSync(path.join(root, file), 'utf8')).map((mutant) => ({ ...mutant, file })),
      );
  }

  async start(): Promise<void> {
    this.#vitest = await createVitest(
      {
        watch: false,
        bail: 1,
        // A mutant's tests share a worker and what they import: starting both anew for each would be most of the time.
        isolate: false,
        maxWorkers: 1,
        fileParallelism: false,
        project: this.#projects.filter((name) => name !== ''),
        reporters: [{}],
        silent: true,
        passWithNoTests: true,
        // A mutant that loops for ever is killed by its time.
        testTimeout: 30_000,
        onConsoleLog: () => false,
      },
      { root, plugins: [this.#standIn()], logLevel: 'silent' },
    );
    await this.#vitest.standalone();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#vitest?.close();
  }

  /** Serves the current mutant's text in place of its file's. */
  #standIn(): Plugin {
    return {
      name: 'shale:mutant',
      enforce: 'pre',
      load: (id) =>
        this.#current !== undefined && id === this.#absolute(this.#current)
          ? this.#current.source
          : undefined,
    };
  }

  #absolute({ file }: Placed): string {
    return path.join(root, file);
  }

  /** @param mutant what is tried. @returns whether a test noticed it. */
  async try(mutant: Placed): Promise<Verdict> {
    const specifications = this.#specificationsFor(mutant.file);
    if (specifications.length === 0) return 'not covered';
    this.#current = mutant;
    try {
      return (await this.#fails(mutant, specifications)) ? 'killed' : 'survived';
    } finally {
      this.#current = undefined;
      this.#vitest?.invalidateFile(this.#absolute(mutant));
    }
  }

  async #fails(mutant: Placed, specifications: readonly TestSpecification[]): Promise<boolean> {
    const vitest = this.#vitest;
    if (vitest === undefined) throw new Error('the run has not been started');
    vitest.invalidateFile(this.#absolute(mutant));
    vitest.state.clearErrors();
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications([...specifications]);
    return unhandledErrors.length > 0 || testModules.some((module) => !module.ok());
  }

  #specificationsFor(file: string): TestSpecification[] {
    const own = file.replace(/\.tsx?$/, '');
    const tests = [...distancesTo(this.#graph, file)]
      .filter(([test]) => /\.test\.tsx?$/.test(test))
      .sort(
        ([a, near], [b, far]) =>
          Number(b.startsWith(own)) - Number(a.startsWith(own)) || near - far || (a < b ? -1 : 1),
      );
    return tests
      .flatMap(([test]) => this.#vitest?.getModuleSpecifications(path.join(root, test)) ?? [])
      .slice(0, MOST_TEST_FILES);
  }
}

/** Chooses some by a seed (mulberry32, then Fisher and Yates' shuffle): the same for the same seed. */
function choose<T>(all: readonly T[], count: number, seed: number): T[] {
  const shuffled = [...all];
  let state = seed >>> 0;
  const random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  for (let last = shuffled.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other] as T, shuffled[last] as T];
  }
  return shuffled.slice(0, count);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      room: { type: 'string', multiple: true },
      sample: { type: 'string', default: '100' },
      seed: { type: 'string', default: '1' },
      project: { type: 'string', multiple: true, default: ['unit'] },
      aim: { type: 'string' },
    },
  });
  if (values.room === undefined) throw new Error('no room named: --room disruption, for example');
  await using run = new MutationRun(values.project);
  await run.start();
  let missed = false;
  for (const room of values.room) {
    const rate = await tryRoom(run, room, Number(values.sample), Number(values.seed));
    missed ||= values.aim !== undefined && rate < Number(values.aim);
  }
  return missed ? 1 : 0;
}

/** @returns how many of a hundred mutants were killed. */
async function tryRoom(run: MutationRun, room: string, sample: number, seed: number): Promise<number> {
  const all = run.mutants(room);
  const chosen = choose(all, sample, seed);
  let killed = 0;
  for (const mutant of chosen) {
    const verdict = await run.try(mutant);
    if (verdict === 'killed') killed += 1;
    else process.stdout.write(`${verdict}: ${mutant.file}:${mutant.line}: ${mutant.change}\n`);
  }
  const rate = (100 * killed) / Math.max(1, chosen.length);
  process.stdout.write(
    `${room}: ${killed} of ${chosen.length} mutants killed (${rate.toFixed(1)} %); ${all.length} in all, seed ${seed}\n`,
  );
  return rate;
}

process.exitCode = await main();
