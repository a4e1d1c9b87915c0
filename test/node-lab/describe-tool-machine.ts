import { afterAll, beforeAll, describe } from 'vitest';
import type { ImageTool } from '../../daemon/os/image-tool/image-tool.ts';
import type { RunOsCommand } from '../../daemon/os/os-command.ts';
import { patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import type { LabSystem } from './lab-node.ts';
import { startToolMachines, type ToolMachine, type ToolMachines } from './tool-machine.ts';

interface ToolMachineToDescribe {
  /** What installs and updates it, once it is to be installed. */
  readonly system: () => LabSystem;
  /** The image tool, by a runner of the machine's commands. */
  readonly imageTool: (run: RunOsCommand) => ImageTool;
  /** Why it can't be had here, if it can't. */
  readonly missing: string | undefined;
  /** Of each test. */
  readonly limitMs: number;
}

/** A machine that no daemon runs on, while its tests run. */
interface DescribedToolMachine {
  readonly machine: ToolMachine;
  readonly contentOf: ToolMachines['contentOf'];
}

/**
 * Describes tests of what an image tool does on one machine: each begins where the one before ended. Skipped, and its
 * title says why, where the tool can't be had.
 */
export function describeToolMachine(
  title: string,
  { system, imageTool, missing, limitMs }: ToolMachineToDescribe,
  tests: (described: DescribedToolMachine) => void,
): void {
  const skipped = missing === undefined ? title : `${title} (skipped: ${missing})`;
  describe.skipIf(missing !== undefined)(skipped, { timeout: patience(limitMs) }, () => {
    let machines: ToolMachines | undefined;
    let machine: ToolMachine | undefined;

    beforeAll(async () => {
      machines = await startToolMachines(system(), imageTool);
      machine = await machines.create();
    }, patience(FIRST_TIME_MS));
    afterAll(async () => {
      await machine?.[Symbol.asyncDispose]();
      await machines?.[Symbol.asyncDispose]();
    }, patience(60_000));

    tests({
      get machine() {
        if (machine === undefined) throw new Error('the machine has not been installed');
        return machine;
      },
      contentOf: (...args) => {
        if (machines === undefined) throw new Error('the machine has not been installed');
        return machines.contentOf(...args);
      },
    });
  });
}
