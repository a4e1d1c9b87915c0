import path from 'node:path';
import type { Plugin } from 'vite';
// biome-ignore lint/suspicious/noDeprecatedImports: only its older overload, with a mode, is deprecated
import { createVitest, type TestModule, type TestSpecification, type Vitest } from 'vitest/node';
import { patience } from '../../fixtures/patience.ts';
import type { ImportGraph } from '../import-graph.ts';
import { MutantOnDisk } from './mutant-on-disk.ts';
import type { Mutant } from './mutate.ts';
import { nearestTests, type Project } from './nearest-tests.ts';
import { timeLimitMs } from './time-limit.ts';

export interface PlacedMutant extends Mutant {
  /** Path from the project's root. */
  readonly file: string;
  /** Which of its line's mutants it is, from 1. */
  readonly nth: number;
}

/** `not covered`: no test loads the file, or only for its types. */
export type Verdict = 'killed' | 'killed by time' | 'survived' | 'not covered';

/** How a run of tests ended. */
type Outcome =
  | { readonly kind: 'killed'; readonly failure: string }
  | { readonly kind: 'survived' | 'not covered' | 'out of time' };

/** ms of a calm machine; a mutant that waits for ever is killed by the time of a test. */
const TEST_MS: Readonly<Record<Project, number>> = { unit: 20_000, integration: 120_000 };
/** ms of a calm machine for all tests of the unchanged code. */
const UNCHANGED_MS: Readonly<Record<Project, number>> = { unit: 60_000, integration: 900_000 };

/** Runs test files in the order in which they are given, the nearest first; Vitest's own would be the longest first. */
class AsGiven {
  sort(specifications: TestSpecification[]): TestSpecification[] {
    return specifications;
  }
  shard(specifications: TestSpecification[]): TestSpecification[] {
    return specifications;
  }
}

/**
 * Tries mutants with the nearest tests of one Vitest project. The first failure ends the tests of a mutant. The code on
 * disk never changes: the mutant stands in for the file where Vitest loads it.
 */
export class MutantTests {
  readonly #project: Project;
  readonly #root: string;
  readonly #graph: ImportGraph;
  readonly #vitest: Promise<Vitest>;
  readonly #onDisk = new MutantOnDisk();
  readonly #timeLimitMs: typeof timeLimitMs;
  /** What the tests of a file took without a change. */
  readonly #unchangedMs = new Map<string, number>();
  #mutant: PlacedMutant | undefined;
  #isLoaded = false;

  /**
   * @param root of the project, an absolute path.
   * @param graph of its code and tests; paths from the root.
   * @param limitMs after which a mutant counts as killed, by the time of the unchanged code.
   */
  constructor(project: Project, root: string, graph: ImportGraph, limitMs = timeLimitMs) {
    this.#project = project;
    this.#timeLimitMs = limitMs;
    this.#root = root;
    this.#graph = graph;
    this.#vitest = this.#start();
    // Whoever tries the first mutant gets the error.
    this.#vitest.catch(() => undefined);
  }

  async #start(): Promise<Vitest> {
    const vitest = await createVitest(
      {
        watch: false,
        // Not the project's configuration: a plugin that is given here would not reach the projects in it.
        config: false,
        include: ['**/*.test.{ts,tsx}'],
        exclude: ['**/node_modules/**'],
        // It knows a module by its file, which no mutant changes.
        fsModuleCache: false,
        maxWorkers: 1,
        fileParallelism: false,
        // As in vitest.config.ts. A worker never outlives one mutant: it ends with the last file of a run.
        isolate: this.#project !== 'unit',
        sequence: { sequencer: AsGiven },
        bail: 1,
        reporters: [{}],
        silent: true,
        env: this.#onDisk.environment,
        testTimeout: patience(TEST_MS[this.#project]),
        hookTimeout: patience(TEST_MS[this.#project]),
      },
      { root: this.#root, plugins: [this.#standIn()], logLevel: 'silent' },
    );
    await vitest.standalone();
    return vitest;
  }

  /** Serves a mutant's text in place of its file's. */
  #standIn(): Plugin {
    return {
      name: 'shale:mutant',
      enforce: 'pre',
      load: (id) => {
        if (this.#mutant === undefined || id !== this.#absolute(this.#mutant.file)) return undefined;
        this.#isLoaded = true;
        return this.#mutant.source;
      },
    };
  }

  #absolute(file: string): string {
    return path.join(this.#root, file);
  }

  /**
   * Tries the code as it is, and takes the time of it.
   *
   * @param file whose tests are run, a path from the root.
   * @param source its text.
   * @throws {Error} when a test fails, or nothing ends in a time that is beyond doubt: that says nothing of a mutant.
   */
  async assertPassesUnchanged(file: string, source: string): Promise<void> {
    const begin = performance.now();
    const outcome = await this.#run(
      { file, source, line: 0, nth: 1, change: 'none' },
      patience(UNCHANGED_MS[this.#project]),
    );
    if (outcome.kind === 'killed' || outcome.kind === 'out of time') {
      const why = outcome.kind === 'killed' ? outcome.failure : 'they are out of time';
      throw new Error(`tests of ${file} fail without a change; run them with vitest first: ${why}`);
    }
    this.#unchangedMs.set(file, performance.now() - begin);
  }

  /**
   * @param mutant what is tried. @param source the text of its file without the change.
   * @returns whether a test noticed it; a mutant that takes much longer than the unchanged code, twice, is killed by
   *   time.
   */
  async try(mutant: PlacedMutant, source: string): Promise<Verdict> {
    const { file } = mutant;
    if (nearestTests(this.#graph, file, this.#project).length === 0) return 'not covered';
    if (this.#unchangedMs.size === 0) await this.assertPassesUnchanged(file, source);
    const first = await this.#run(mutant, this.#limitOf(file));
    if (first.kind !== 'out of time') return first.kind;
    // A neighbour may have come, or the file's own tests be slower than those that were timed: it is tried again right
    // after the unchanged code, in the time that this takes now.
    await this.assertPassesUnchanged(file, source);
    const second = await this.#run(mutant, this.#limitOf(file));
    return second.kind === 'out of time' ? 'killed by time' : second.kind;
  }

  /** By the time of the file's own tests; while it is not known, by the longest of those that are. */
  #limitOf(file: string): number {
    const unchangedMs = this.#unchangedMs.get(file) ?? Math.max(...this.#unchangedMs.values());
    return this.#timeLimitMs(this.#project, unchangedMs);
  }

  async #run(mutant: PlacedMutant, limitMs: number): Promise<Outcome> {
    const vitest = await this.#vitest;
    const specifications = nearestTests(this.#graph, mutant.file, this.#project).flatMap((test) =>
      vitest.getModuleSpecifications(this.#absolute(test)),
    );
    if (specifications.length === 0) return { kind: 'not covered' };
    this.#take(vitest, mutant);
    let isOutOfTime = false;
    const timer = setTimeout(() => {
      isOutOfTime = true;
      // The second time by force: a worker that loops does not listen.
      void vitest.cancelCurrentRun('keyboard-input');
      void vitest.cancelCurrentRun('keyboard-input');
    }, limitMs);
    const { testModules, unhandledErrors } = await vitest
      .runTestSpecifications(specifications)
      .finally(() => clearTimeout(timer));
    if (isOutOfTime) return { kind: 'out of time' };
    // A mutant that no test loads can't fail one, so what fails then fails without it: the check of unchanged code
    // finds that.
    const [failure] = [...testModules.flatMap(failuresOf), ...unhandledErrors.map(String)];
    if (failure !== undefined) return { kind: 'killed', failure };
    return { kind: this.#isLoaded || this.#onDisk.isLoaded ? 'survived' : 'not covered' };
  }

  /**
   * Forgets the text of the last mutant and the results of its tests, which would end the next run at its first
   * failure.
   */
  #take(vitest: Vitest, mutant: PlacedMutant): void {
    if (this.#mutant !== undefined) vitest.invalidateFile(this.#absolute(this.#mutant.file));
    vitest.invalidateFile(this.#absolute(mutant.file));
    vitest.state.filesMap.clear();
    vitest.state.idMap.clear();
    this.#mutant = mutant;
    this.#onDisk.put(this.#absolute(mutant.file), mutant.source);
    this.#isLoaded = false;
  }

  async close(): Promise<void> {
    await (await this.#vitest).close();
    this.#onDisk.remove();
  }
}

/** @returns each failed test of a file with its error, or the file itself where it could not be loaded. */
function failuresOf(module: TestModule): string[] {
  if (module.ok()) return [];
  const tests = [...module.children.allTests('failed')].map(
    (test) => `${test.fullName}: ${test.result().errors?.[0]?.message ?? 'no error is known'}`,
  );
  const errors = module.errors().map(({ message }) => message);
  return [...tests, ...errors, 'failed'].map((failure) => `${module.relativeModuleId}: ${failure}`);
}
