import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import type { LayerEntry } from '../../../image/layer/entry.ts';
import { isAt } from '../../fixtures/node-configs.ts';
import { patience } from '../../fixtures/patience.ts';
import { everyCase } from '../../fixtures/sample.ts';
import { noLab } from '../lab.ts';
import { type Updates, updatesOf } from '../lab-updates.ts';
import type { TestedMachine } from '../machine-updates.ts';
import { type BootLab, type BootLabOptions, SETUP_MS, startBootLab, UPDATE_MS } from './boot-lab.ts';
import { missingForVirtualMachines } from './missing-requirement.ts';

/** A virtual machine that has booted: every reboot goes through firmware, bootloader, kernel and initramfs. */
export interface TestedVirtualMachine extends TestedMachine {
  readonly lab: BootLab;
}

const missingForAny = everyCase
  ? missingForVirtualMachines(noLab, process.env)
  : 'a virtual machine takes minutes to boot: make soak boots one';

/**
 * Describes tests on one virtual machine, which boots before the first of them and is shared by all. When one fails,
 * the end of the machine's console is printed. Skipped, and its title says why, where no machine can be booted.
 *
 * @param stock what the machine comes with, above Debian. @param options of its lab; `missing` is why it can't be had
 *   here, if it can't.
 */
export function describeMachine(
  title: string,
  stock: readonly LayerEntry[],
  { missing = missingForAny, ...options }: BootLabOptions & { readonly missing?: string | undefined },
  tests: (machine: TestedVirtualMachine) => void,
): void {
  const skipped = missing === undefined ? title : `${title} (skipped: ${missing})`;
  describe.skipIf(missing !== undefined)(skipped, { timeout: patience(UPDATE_MS + 120_000) }, () => {
    let lab: BootLab | undefined;
    let updates: Updates | undefined;
    const booted = <T>(part: T | undefined): T => {
      if (part === undefined) throw new Error('the virtual machine has not booted');
      return part;
    };

    beforeAll(async () => {
      lab = await startBootLab(stock, options);
      updates = updatesOf(lab, stock);
    }, patience(SETUP_MS));
    afterEach(async ({ task }) => {
      if (task.result?.state !== 'fail' || lab === undefined) return;
      process.stderr.write(`the machine's console ends with:\n${await lab.machine.consoleTail()}\n`);
    });
    afterAll(() => lab?.[Symbol.asyncDispose](), patience(120_000));

    const sh = (line: string) => booted(lab).machine.sh(line);
    tests({
      get lab() {
        return booted(lab);
      },
      get updates() {
        return booted(updates);
      },
      sh,
      bootID: () => sh('cat /proc/sys/kernel/random/boot_id'),
      kernelArguments: async () => (await sh('cat /proc/cmdline')).split(' '),
      arrive: (config) => {
        const { timed, until } = booted(lab);
        return timed(`until ${config} is applied`, () => until(config, isAt(config)));
      },
    });
  });
}
