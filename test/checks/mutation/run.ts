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
  'x509',
  'test',
  'workshop',
];

/** Test files farther away than this many of the nearest hardly ever notice what the nearer ones did not. */
const MOST_TEST_FILES = 12;

const OTHER_PROJECTS = ['integration', 'e2e', 'soak'];

/** @returns the files of a Vitest project: vitest.config.ts tells them apart by their names. */
function testFilesOf(project: string): string {
  return project === 'unit' ? '**/*.test.ts' : `**/*.${project}.test.ts`;
}

interface Placed extends Mutant {
  readonly file: string;
}

/** How many of a sample's files are tried unchanged, before and after it. */
const CONTROLS = 3;

type Verdict = 'killed' | 'survived' | 'not covered';

class MutationRun {
  readonly #graph: ImportGraph;
  readonly #projects: readonly string[];

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

  /** A vitest of its own for each mutant: one that goes on to the next still knows the last one's modules. */
  #startVitest(mutant: Placed): Promise<Vitest> {
    const { include, exclude } = this.#testFiles();
    return createVitest(
      {
        watch: false,
        // Not the project's configuration: a plugin that is given here would not reach the projects in it.
        config: false,
        include,
        exclude,
        // It knows a module by its file, which no mutant changes.
        fsModuleCache: false,
        maxWorkers: 1,
        fileParallelism: false,
        bail: 1,
        reporters: [{}],
        silent: true,
        passWithNoTests: true,
        // A mutant that loops for ever is killed by its time.
        testTimeout: 30_000,
      },
      { root, plugins: [this.#standIn(mutant)], logLevel: 'silent' },
    );
  }

  #testFiles(): { readonly include: string[]; readonly exclude: string[] } {
    const others = this.#projects.includes('unit')
      ? OTHER_PROJECTS.filter((name) => !this.#projects.includes(name))
      : [];
    return {
      include: this.#projects.map(testFilesOf),
      exclude: ['**/node_modules/**', ...others.map(testFilesOf)],
    };
  }

  /** Serves a mutant's text in place of its file's. */
  #standIn(mutant: Placed): Plugin {
    return {
      name: 'shale:mutant',
      enforce: 'pre',
      load: (id) => (id === this.#absolute(mutant) ? mutant.source : undefined),
    };
  }

  #absolute({ file }: Placed): string {
    return path.join(root, file);
  }

  /** @param mutant what is tried. @returns whether a test noticed it. */
  async try(mutant: Placed): Promise<Verdict> {
    const vitest = await this.#startVitest(mutant);
    try {
      await vitest.standalone();
      const specifications = this.#specificationsFor(vitest, mutant.file);
      if (specifications.length === 0) return 'not covered';
      const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
      const isNoticed = unhandledErrors.length > 0 || testModules.some((module) => !module.ok());
      return isNoticed ? 'killed' : 'survived';
    } finally {
      await vitest.close();
    }
  }

  /**
   * Tries the code as it is, in place of some mutants: what fails then says nothing of a mutant.
   *
   * @throws {Error} when a test fails.
   */
  async assertPassesUnchanged(mutants: readonly Placed[]): Promise<void> {
    for (const file of new Set(mutants.slice(0, CONTROLS).map((mutant) => mutant.file))) {
      const source = readFileSync(path.join(root, file), 'utf8');
      if ((await this.try({ file, source, line: 0, change: 'none' })) === 'killed') {
        throw new Error(`tests of ${file} fail without a change; run them with vitest first`);
      }
    }
  }

  #specificationsFor(vitest: Vitest, file: string): TestSpecification[] {
    const own = file.replace(/\.tsx?$/, '');
    const tests = [...distancesTo(this.#graph, file)]
      .filter(([test]) => /\.test\.tsx?$/.test(test) && !test.startsWith('test/checks/'))
      .sort(
        ([a, near], [b, far]) =>
          Number(b.startsWith(own)) - Number(a.startsWith(own)) || near - far || (a < b ? -1 : 1),
      );
    return tests
      .flatMap(([test]) => vitest.getModuleSpecifications(path.join(root, test)))
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
  const run = new MutationRun(values.project);
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
  await run.assertPassesUnchanged(chosen);
  for (const mutant of chosen) {
    const verdict = await run.try(mutant);
    if (verdict === 'killed') killed += 1;
    else process.stdout.write(`${verdict}: ${mutant.file}:${mutant.line}: ${mutant.change}\n`);
  }
  await run.assertPassesUnchanged(chosen);
  const rate = (100 * killed) / Math.max(1, chosen.length);
  process.stdout.write(
    `${room}: ${killed} of ${chosen.length} mutants killed (${rate.toFixed(1)} %); ${all.length} in all, seed ${seed}\n`,
  );
  return rate;
}

process.exitCode = await main();
