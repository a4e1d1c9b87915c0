import { mkdir, mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DigestedPullspec } from '../../api/references.ts';
import { keepImagePolicy } from '../../daemon/os/image-policy/keep-image-policy.ts';
import type { ImageTool } from '../../daemon/os/image-tool/image-tool.ts';
import type { RunOsCommand } from '../../daemon/os/os-command.ts';
import { parseReference } from '../../image/reference.ts';
import { signImage } from '../../image/signature/sign-image.ts';
import { pushImage } from '../../workshop/sandbox/registry.ts';
import { deadline } from '../fixtures/patience.ts';
import { newSigningKey } from '../fixtures/registry/registry-with-image.ts';
import { layerFile } from '../fixtures/test-node.ts';
import { describeToolMachine } from './describe-tool-machine.ts';
import type { LabSystem } from './lab-node.ts';
import { type LockedRegistry, mirrorConfiguration, startLockedRegistry } from './private-registry.ts';
import { PULL_SECRET } from './tool-machine.ts';

const STAGE_MS = 300_000;
/**
 * Pulls of one machine, from a registry that lets nobody in without a password, each from where the one before ended.
 * Shale reads of an image what describes it; the tool alone pulls it, by skopeo.
 *
 * @param tool its name. @param imageTool the tool itself, by a runner of the machine's commands. @param system what it
 *   installs and updates.
 * @param missing why it can't be had here, if it can't.
 */
export function pullsOfTool(
  tool: string,
  imageTool: (run: RunOsCommand) => ImageTool,
  system: () => LabSystem,
  missing: string | undefined,
): void {
  const node = { system, imageTool, missing, limitMs: STAGE_MS };
  describeToolMachine(`a machine that ${tool} keeps pulls`, node, (on) => {
    let registry: LockedRegistry;
    let base: string;

    beforeAll(async () => {
      base = await mkdtemp(path.join(tmpdir(), 'shale-pulls-'));
      registry = await startLockedRegistry(path.join(base, 'registry'));
    });
    afterAll(async () => {
      await registry?.stop();
      await rm(base, { recursive: true, force: true });
    });

    const write = async (place: string, text: string) => {
      const file = path.join(on.machine.root, place);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, text);
    };
    /** By the tool alone, without what Shale looks at beforehand. */
    const pull = (image: DigestedPullspec) =>
      imageTool(on.machine.run).pull(image, {
        mustBeSigned: false,
        locked: false,
        signal: deadline(STAGE_MS),
      });
    const stage = (image: DigestedPullspec) =>
      on.machine.backend.stage(image, {
        extraKernelArguments: { remove: [], add: [] },
        signal: deadline(STAGE_MS),
      });
    /** @returns an image of the password's owner. */
    const push = (content: string) =>
      pushImage(
        registry,
        'os/private',
        on.contentOf([layerFile('/usr/share/private', content)]),
        deadline(STAGE_MS),
      );
    const staged = async () => (await on.machine.backend.status(deadline(STAGE_MS))).staged?.image;

    it('from a registry with a certificate authority of its own and a password, once the node has both', async () => {
      const image = await push('one');
      await expect(pull(image)).rejects.toThrow(/certificate/);
      await expect(stage(image)).rejects.toThrow();
      await write(`/etc/containers/certs.d/${registry.host}/ca.crt`, registry.caPem);
      await expect(pull(image)).rejects.toThrow(/authentication required|unauthorized/);
      await expect(stage(image)).rejects.toThrow();
      expect(await staged()).toBeUndefined();
      await write(PULL_SECRET, registry.authFile);
      await stage(image);
      expect(await staged()).toBe(image);
      // No copy of the secret, for one that is replaced to be replaced everywhere.
      expect(await readlink(path.join(on.machine.root, 'run/ostree/auth.json'))).toBe(`../..${PULL_SECRET}`);
    });

    it('from the mirror of an ImageDigestMirrorSet, under the image’s own name', async () => {
      const pushed = await push('two');
      const source = 'images.example.invalid/os/lab';
      const named = `${source}${pushed.slice(pushed.indexOf('@'))}` as DigestedPullspec;
      const file = '/etc/containers/registries.conf';
      const before = await readFile(path.join(on.machine.root, file), 'utf8');
      await write(file, mirrorConfiguration(source, pushed.slice(0, pushed.indexOf('@'))));
      await stage(named);
      expect(await staged()).toBe(named);
      await write(file, before);
    });

    it('only what the cluster has signed, once the host’s policy says so', async () => {
      const [signed, other] = [await push('three'), await push('four')];
      const key = newSigningKey();
      const { digest, ...at } = parseReference(signed);
      if (digest === undefined) throw new TypeError(`${signed}: expected a digest`);
      // As the builder does; of a signature without a tag containers-policy.json(5) takes none.
      await signImage(registry.client, { ...at, tag: 'signed' }, { digest, key }, deadline(STAGE_MS));
      const host = { root: on.machine.root, owned: new Set<string>() };
      const { state } = await keepImagePolicy(host, [{ image: signed, publicKey: key.publicKey }]);
      expect(state.kind).toBe('applied');
      const before = await staged();
      await expect(stage(other)).rejects.toThrow(/signature/);
      expect(await staged()).toBe(before);
      await stage(signed);
      expect(await staged()).toBe(signed);
    });
  });
}
