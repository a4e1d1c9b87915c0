/** A root that would not boot, met by a real boot: refused before anything is drained. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { parseDigestedPullspec } from '../../api/references.ts';
import { createNode, removeNode } from '../../workshop/sandbox/node/create.ts';
import { rootfsSource } from '../../workshop/sandbox/systemd-node/rootfs-archive.ts';
import { deadline } from '../fixtures/patience.ts';
import { describeLabNode } from './describe-lab-node.ts';
import { UPDATE_MS } from './lab-node.ts';
import { text } from './lab-updates.ts';
import { bootPreparedRoot, COMING_DEBIAN, noComingDebian } from './prepared-root.ts';

const KEY = '/usr/lib/ostree/root.key';
const prepareRoot = (enabled: string) =>
  text('/usr/lib/ostree/prepare-root.conf', `[composefs]\nenabled = ${enabled}\nkeypath = ${KEY}\n`);
/** As for soft reboots: this machine's ostree installs it. */
const STOCK = [prepareRoot('maybe')];
/** With a key, of which nobody has the other half. */
const SIGNED = [prepareRoot('signed'), text(KEY, `${Buffer.alloc(32, 1).toString('base64')}\n`)];
/** A composefs, which Debian 12's ostree does not make. */
const UNMADE = [prepareRoot('yes')];

/** ostree and its part of an initramfs are real. */
describeLabNode(
  'an image whose root ostree-prepare-root refuses',
  { stock: STOCK, images: [], options: () => ({ system: COMING_DEBIAN }), missing: noComingDebian },
  (machine) => {
    it.each([
      ['that it has to be signed', SIGNED, 'No commitmeta for deploy'],
      [
        'that it has to be a composefs, and is none',
        UNMADE,
        'composefs: failed to mount: No such file or directory',
      ],
    ])('boots no machine, if its configuration says %s', async (_name, layer, why) => {
      const base = await mkdtemp(path.join(tmpdir(), 'shale-refused-'));
      const dir = path.join(base, 'node');
      onTestFinished(async () => {
        await removeNode(dir);
        await rm(base, { recursive: true, force: true });
      });
      const source = await rootfsSource(await COMING_DEBIAN.archive(), layer);
      const image = parseDigestedPullspec(`quay.io/example/os@sha256:${'1'.repeat(64)}`);
      await createNode({ dir, name: 'lab', image, source, signal: deadline(UPDATE_MS) });
      await expect(bootPreparedRoot(dir, source, deadline(UPDATE_MS))).rejects.toThrow(
        `ostree-prepare-root: Failed to mount composefs: ${why}`,
      );
    });

    it('is refused before anything is drained, and is not booted by a reboot', async () => {
      const boot = await machine.lab.node.host.bootID();
      const image = await machine.updates.build('rendered-1', undefined, SIGNED);
      await machine.updates.want('rendered-1', image, 'Disrupt');
      const refused = await machine.lab.until('the refusal', ({ status }) =>
        (status?.conditions ?? []).some(({ reason }) => reason === 'PrepareRefused'),
      );
      const why = refused.status?.conditions?.find(({ reason }) => reason === 'PrepareRefused');
      expect(why?.message).toContain('/usr/lib/ostree/prepare-root.conf demands a signed composefs');
      expect(await machine.lab.node.host.bootID()).toBe(boot);
      expect((await machine.lab.node.backend.status(deadline(30_000))).staged).toBeUndefined();
      expect(await machine.sh('ls /run/ostree/staged-deployment || true')).toBe('');
      await machine.sh('systemd-run --on-active=1 systemctl reboot');
      await machine.lab.until(
        'the reboot',
        ({ status }) => status?.bootID !== undefined && status.bootID !== boot,
      );
      expect((await machine.lab.node.backend.status(deadline(30_000))).booted.image).toBe(machine.lab.stock);
    });
  },
);
