/** Mutation tester; `--help` describes it. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setup as bundlePrograms } from '../../fixtures/bundle-programs.ts';
import { prepareRun } from '../../fixtures/prepare-run.ts';
import { productRooms } from '../import-directions.ts';
import { type ImportGraph, isTestFile, loadedSpecifiers, readImportGraph } from '../import-graph.ts';
import { choose } from './choose.ts';
import { mutantsOf } from './mutate.ts';
import type { Project } from './nearest-tests.ts';
import { type Options, type Place, parseOptions, USAGE } from './options.ts';
import { MutantTests, type PlacedMutant, type Verdict } from './try-mutants.ts';

const root = path.join(import.meta.dirname, '../../..');
/** What mutants and tests are found in: every room, so that a new one is never left out, and what tests are made of. */
const CODE = [...productRooms, 'test', 'workshop'];

/** How many of a sample's files are tried unchanged, before and after it. */
const CONTROLS = 3;

interface Result {
  readonly verdict: Verdict;
  /** Whose tests killed it. */
  readonly by?: Project;
}

class MutationRun {
  readonly #graph: ImportGraph = readImportGraph(root, CODE, loadedSpecifiers);
  readonly #tests = new Map<Project, Promise<MutantTests>>();
  readonly #projects: readonly Project[];

  constructor(projects: readonly Project[]) {
    this.#projects = projects;
  }

  /**
   * @param room a folder of product code.
   * @returns every mutant of its code, in the order of files and lines.
   * @throws {Error} for a room that has no code.
   */
  mutantsOfRoom(room: string): PlacedMutant[] {
    const files = [...this.#graph.keys()].filter((file) => file.startsWith(`${room}/`) && !isTestFile(file));
    if (files.length === 0) throw new Error(`--room ${room}: no code there`);
    return files.flatMap(mutantsOfFile);
  }

  /**
   * @returns which project's tests noticed a mutant, if any: those of a project are tried if those before it did not.
   */
  async try(mutant: PlacedMutant): Promise<Result> {
    let verdict: Verdict = 'not covered';
    for (const project of this.#projects) {
      const found = await (await this.#testsOf(project)).try(mutant, textOf(mutant.file));
      if (found === 'killed' || found === 'killed by time') return { verdict: found, by: project };
      if (found === 'survived') verdict = found;
    }
    return { verdict };
  }

  #testsOf(project: Project): Promise<MutantTests> {
    const started = this.#tests.get(project) ?? this.#start(project);
    this.#tests.set(project, started);
    return started;
  }

  async #start(project: Project): Promise<MutantTests> {
    // As in vitest.config.ts. Bundles are started as they are on disk: what only they run, no test of integration
    // notices.
    if (project === 'integration') await bundlePrograms();
    return new MutantTests(project, root, this.#graph);
  }

  /**
   * Tries the code as it is, in place of some mutants: what fails then says nothing of a mutant.
   *
   * @throws {Error} when a test fails.
   */
  async assertPassesUnchanged(mutants: readonly PlacedMutant[]): Promise<void> {
    for (const file of [...new Set(mutants.map((mutant) => mutant.file))].slice(0, CONTROLS)) {
      for (const project of this.#projects) {
        await (await this.#testsOf(project)).assertPassesUnchanged(file, textOf(file));
      }
    }
  }

  async close(): Promise<void> {
    for (const tests of this.#tests.values()) await (await tests).close();
  }
}

function textOf(file: string): string {
  return readFileSync(path.join(root, file), 'utf8');
}

function mutantsOfFile(file: string): PlacedMutant[] {
  const onLine = new Map<number, number>();
  return mutantsOf(file, textOf(file)).map((mutant) => {
    const nth = (onLine.get(mutant.line) ?? 0) + 1;
    onLine.set(mutant.line, nth);
    return { ...mutant, file, nth };
  });
}

/** @throws {Error} for a file that does not exist, and for a line without such a mutant. */
function mutantsAt({ file, line, nth }: Place): PlacedMutant[] {
  if (!existsSync(path.join(root, file))) throw new Error(`--only ${file}:${line}: no such file`);
  const onLine = mutantsOfFile(file).filter((mutant) => mutant.line === line);
  const mutants = nth === undefined ? onLine : onLine.filter((mutant) => mutant.nth === nth);
  if (mutants.length === 0) {
    throw new Error(
      `--only ${file}:${line}: has ${onLine.length} mutants; expected one of them or a line with some`,
    );
  }
  return mutants;
}

/** @returns for each mutant that was killed, whose tests did; each of the others is a line on stdout. */
async function tryAll(run: MutationRun, mutants: readonly PlacedMutant[]): Promise<readonly Project[]> {
  const killed: Project[] = [];
  await run.assertPassesUnchanged(mutants);
  for (const [index, mutant] of mutants.entries()) {
    const where = `${mutant.file}:${mutant.line}:${mutant.nth}`;
    const begin = performance.now();
    const { verdict, by } = await run.try(mutant);
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    process.stderr.write(
      `${index + 1}/${mutants.length} ${verdict}${by === undefined ? '' : ` (${by})`} in ${seconds} s: ${where}: ${mutant.change}\n`,
    );
    if (by !== undefined) killed.push(by);
    else {
      process.stdout.write(
        `${verdict}: ${where}: ${mutant.change}\n    repeat: node test/checks/mutation/run.ts --only ${where}\n`,
      );
    }
  }
  await run.assertPassesUnchanged(mutants);
  return killed;
}

/** @returns whether a room's figure is below the aim. */
async function tryRooms(run: MutationRun, options: Extract<Options, { kind: 'rooms' }>): Promise<boolean> {
  const { rooms, sample, seed, aim, projects } = options;
  let missed = false;
  for (const room of rooms) {
    const all = run.mutantsOfRoom(room);
    const chosen = choose(all, sample, seed);
    const killed = await tryAll(run, chosen);
    const rate = (100 * killed.length) / Math.max(1, chosen.length);
    const shares = projects.map((project) => `${killed.filter((by) => by === project).length} by ${project}`);
    process.stdout.write(
      `${room}: ${killed.length} of ${chosen.length} mutants killed (${rate.toFixed(1)} %): ${shares.join(', ')}; ${all.length} in all, seed ${seed}\n`,
    );
    missed ||= aim !== undefined && rate < aim;
  }
  return missed;
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (options.kind === 'help') {
    process.stdout.write(USAGE);
    return 0;
  }
  // The same samples of cases for every mutant.
  process.env['SHALE_SEED'] ??= '1';
  await prepareRun();
  const run = new MutationRun(options.projects);
  try {
    if (options.kind === 'rooms') return (await tryRooms(run, options)) ? 1 : 0;
    const mutants = options.places.flatMap(mutantsAt);
    const killed = await tryAll(run, mutants);
    process.stdout.write(`${killed.length} of ${mutants.length} mutants killed\n`);
    return 0;
  } finally {
    await run.close();
  }
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  return 2;
});
