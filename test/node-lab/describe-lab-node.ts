import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import type { LayerEntry } from '../../image/layer/entry.ts';
import { isAt } from '../fixtures/node-configs.ts';
import { patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import { type LabNode, type LabNodeOptions, startLabNode, UPDATE_MS } from './lab-node.ts';
import { type Updates, updatesOf } from './lab-updates.ts';
import type { TestedMachine } from './machine-updates.ts';

/** A machine in a container, while its tests run. */
export interface TestedLabNode extends TestedMachine {
  readonly lab: LabNode;
}

interface LabNodeToDescribe {
  /** What the machine comes with, above Debian. */
  readonly stock: readonly LayerEntry[];
  /** What the images that it is updated to have in its place; the same unless given. */
  readonly images?: readonly LayerEntry[];
  /** Of its lab, once it is to be started. */
  readonly options: () => LabNodeOptions;
  /** Why it can't be had here, if it can't. */
  readonly missing: string | undefined;
  /** Of each test; an update's unless given. */
  readonly limitMs?: number;
}

/**
 * Describes tests that are steps of one machine's life: each begins where the one before ended. When one fails, the log
 * of its daemons is printed. Skipped, and its title says why, where no machine can be had.
 */
export function describeLabNode(
  title: string,
  { stock, images = stock, options, missing, limitMs = UPDATE_MS }: LabNodeToDescribe,
  tests: (machine: TestedLabNode) => void,
): void {
  const skipped = missing === undefined ? title : `${title} (skipped: ${missing})`;
  describe.skipIf(missing !== undefined)(skipped, { timeout: patience(limitMs) }, () => {
    let lab: LabNode | undefined;
    let updates: Updates | undefined;
    const started = <T>(part: T | undefined): T => {
      if (part === undefined) throw new Error('the machine has not been started');
      return part;
    };

    beforeAll(async () => {
      lab = await startLabNode(stock, options());
      updates = updatesOf(lab, images);
    }, patience(FIRST_TIME_MS));
    afterEach(async ({ task }) => {
      if (task.result?.state === 'fail' && lab !== undefined) process.stderr.write(await lab.log());
    });
    afterAll(() => lab?.[Symbol.asyncDispose](), patience(60_000));

    const sh = (line: string) => started(lab).sh(line);
    tests({
      get lab() {
        return started(lab);
      },
      get updates() {
        return started(updates);
      },
      sh,
      bootID: () => started(lab).node.host.bootID(),
      kernelArguments: async () => (await sh('cat /proc/cmdline')).split(' '),
      arrive: (config) => started(lab).until(config, isAt(config)),
    });
  });
}
