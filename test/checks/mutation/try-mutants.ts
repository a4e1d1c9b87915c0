import path from 'node:path';
import type { Plugin } from 'vite';
// biome-ignore lint/suspicious/noDeprecatedImports: only its older overload, with a mode, is deprecated
import { createVitest, type TestSpecification, type Vitest } from 'vitest/node';
import { patience } from '../../fixtures/patience.ts';
import type { ImportGraph } from '../import-graph.ts';
import type { Mutant } from './mutate.ts';
import { nearestTests, type Project } from './nearest-tests.ts';

export interface PlacedMutant extends Mutant {
  /** Path from the project's root. */
  readonly file: string;
  /** Which of its line's mutants it is, from 1. */
  readonly nth: number;
}

/** `not covered`: no test loads the file, or only for its types. */
export type Verdict = 'killed' | 'survived' | 'not covered';

/** ms of a calm machine; a mutant that waits for ever is killed by the time of a test. */
const TEST_MS: Readonly<Record<Project, number>> = { unit: 20_000, integration: 120_000 };
/**
 * ms of a calm machine for all tests of a mutant; one that loops for ever gives no test the chance to end itself. The slowest
 * unit tests of a mutant take 5 s.
 */
const ALL_TESTS_MS: Readonly<Record<Project, number>> = { unit: 60_000, integration: 900_000 };

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
 * Tries mutants with the nearest tests of one Vitest project. The first failure ends the tests of a mutant. The code on disk
 * never changes: the mutant stands in for the file where Vitest loads it.
 */
export class MutantTests {
  readonly #project: Project;
  readonly #root: string;
  readonly #graph: ImportGraph;
  readonly #vitest: Promise<Vitest>;
  #mutant: PlacedMutant | undefined;
  readonly #allTestsMs: number;
  #isLoaded = false;

  /**
   * @param root of the project, an absolute path.
   * @param graph of its code and tests; paths from the root.
   * @param allTestsMs after which a mutant counts as killed.
   */
  constructor(
    project: Project,
    root: string,
    graph: ImportGraph,
    allTestsMs = patience(ALL_TESTS_MS[project]),
  ) {
    this.#project = project;
    this.#allTestsMs = allTestsMs;
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

  /** @param mutant what is tried. @returns whether a test noticed it. */
  async try(mutant: PlacedMutant): Promise<Verdict> {
    const vitest = await this.#vitest;
    const specifications = nearestTests(this.#graph, mutant.file, this.#project).flatMap((test) =>
      vitest.getModuleSpecifications(this.#absolute(test)),
    );
    if (specifications.length === 0) return 'not covered';
    this.#take(vitest, mutant);
    let isOutOfTime = false;
    const timer = setTimeout(() => {
      isOutOfTime = true;
      // The second time by force: a worker that loops does not listen.
      void vitest.cancelCurrentRun('keyboard-input');
      void vitest.cancelCurrentRun('keyboard-input');
    }, this.#allTestsMs);
    const { testModules, unhandledErrors } = await vitest
      .runTestSpecifications(specifications)
      .finally(() => clearTimeout(timer));
    if (isOutOfTime) return 'killed';
    // A mutant that no test loads can't fail one, so what fails then fails without it: the check of unchanged code finds that.
    if (unhandledErrors.length > 0 || testModules.some((module) => !module.ok())) return 'killed';
    return this.#isLoaded ? 'survived' : 'not covered';
  }

  /** Forgets the text of the last mutant and the results of its tests, which would end the next run at its first failure. */
  #take(vitest: Vitest, mutant: PlacedMutant): void {
    if (this.#mutant !== undefined) vitest.invalidateFile(this.#absolute(this.#mutant.file));
    vitest.invalidateFile(this.#absolute(mutant.file));
    vitest.state.filesMap.clear();
    vitest.state.idMap.clear();
    this.#mutant = mutant;
    this.#isLoaded = false;
  }

  async close(): Promise<void> {
    await (await this.#vitest).close();
  }
}
