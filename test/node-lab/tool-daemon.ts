import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { isAt } from '../fixtures/node-configs.ts';
import { deadline, patience } from '../fixtures/patience.ts';
import { FIRST_TIME_MS } from './lab.ts';
import { type LabNode, type LabSystem, startLabNode, UPDATE_MS } from './lab-node.ts';
import { LAB_SERVICE, type Updates, updatesOf } from './lab-updates.ts';
import { machineUpdates } from './machine-updates.ts';

/**
 * A daemon's updates of one machine. The image tool, ostree and systemd are real.
 *
 * @param tool its name. @param system what it installs and updates. @param why it can't be had here, if it can't.
 */
export function daemonOfTool(tool: string, system: () => LabSystem, why: string | undefined): void {
  const title = `the daemon of a machine that ${tool} keeps`;
  describe.skipIf(why !== undefined)(
    why === undefined ? title : `${title} (skipped: ${why})`,
    { timeout: patience(UPDATE_MS + 120_000) },
    () => {
      let lab: LabNode;
      let updates: Updates;

      beforeAll(async () => {
        lab = await startLabNode(LAB_SERVICE, { system: system() });
        updates = updatesOf(lab, LAB_SERVICE);
      }, patience(FIRST_TIME_MS));
      afterEach(async ({ task }) => {
        if (task.result?.state === 'fail') process.stderr.write(await lab.log());
      });
      afterAll(() => lab?.[Symbol.asyncDispose](), patience(60_000));

      const machine = {
        get lab() {
          return lab;
        },
        get updates() {
          return updates;
        },
        sh: (line: string) => lab.sh(line),
        bootID: () => lab.node.host.bootID(),
        arrive: (config: string) => lab.until(config, isAt(config)),
      };
      const booted = async () => (await lab.node.backend.status(deadline(60_000))).booted.image ?? '';
      machineUpdates(machine, { tool, booted });
    },
  );
}
