/** rpm-ostree's own daemon restarts or is gone during an update. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { RunOsCommand } from '../../../daemon/os/os-command.ts';
import { rpmOstree } from '../../../daemon/os/rpm-ostree/rpm-ostree.ts';
import { CHRONY } from '../../fixtures/node-configs.ts';
import { deadline } from '../../fixtures/patience.ts';
import { layerFile } from '../../fixtures/test-node.ts';
import { describeToolMachine } from '../describe-tool-machine.ts';
import { noRpmOstree, RPM_OSTREE } from './given-rpm-ostree.ts';
import { rpmOstreeSystem } from './rpm-ostree-system.ts';

const STEP_MS = 300_000;
const POLL_MS = 20;
/** Its client, which is run again, starts it: a systemctl that waited for the other job would fail then. */
const UNIT = 'rpm-ostreed.service';

/**
 * What Shale asks for is a transaction of that daemon, whose client fails when it goes. Each test begins where the one
 * before ended.
 */
describeToolMachine(
  'the daemon of rpm-ostree, which goes during a transaction',
  { system: () => rpmOstreeSystem(RPM_OSTREE), imageTool: rpmOstree, missing: noRpmOstree, limitMs: STEP_MS },
  (on) => {
    let revision = 0;
    const run = (...command: [string, ...string[]]) =>
      on.machine.run(command, { timeoutMs: STEP_MS, signal: deadline(STEP_MS) });

    /** Waits until the daemon has begun with what its client asked for, then does that to it. */
    const disturb = async (
      command: readonly [string, ...string[]],
      begun: readonly [string, ...string[]],
    ) => {
      const until = deadline(STEP_MS);
      while (!(await run(...begun).then(Boolean, () => false))) {
        await delay(POLL_MS, undefined, { signal: until });
      }
      await run(...command);
    };

    it.each([
      { what: 'is killed while it pulls', command: ['systemctl', 'kill', '--signal=KILL', UNIT] },
      { what: 'is stopped while it pulls', command: ['systemctl', 'stop', '--no-block', UNIT] },
      { what: 'is started again while it pulls', command: ['systemctl', 'restart', '--no-block', UNIT] },
    ] as const)('$what: the image is staged all the same', async ({ command }) => {
      revision += 1;
      const image = await on.machine.addImage([layerFile(CHRONY, `server ${revision}\n`)]);
      const commands: string[] = [];
      let disturbed: Promise<void> | undefined;
      const around =
        (inner: RunOsCommand): RunOsCommand =>
        (words, options) => {
          commands.push(words.slice(0, 2).join(' '));
          // skopeo is its child.
          if (words[1] === 'rebase') disturbed ??= disturb(command, ['pgrep', 'skopeo']);
          return inner(words, options);
        };
      const backend = on.machine.backendWith(around);
      const options = { extraKernelArguments: { remove: [], add: [] }, signal: deadline(STEP_MS) };
      const staged = await backend.stage(image, options);
      await disturbed;
      expect(commands.filter((name) => name === 'rpm-ostree rebase').length).toBeGreaterThan(1);
      expect(staged.image).toBe(image);
      await backend.finalizeStaged(new Map(), deadline(STEP_MS));
      await on.machine.shutDownAndBoot();
      expect((await on.machine.backend.status(deadline(STEP_MS))).booted.image).toBe(image);
    });
  },
);
