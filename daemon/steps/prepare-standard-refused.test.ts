import { describe, expect, test } from 'vitest';
import { prepare, renderedWith, runs } from '../../test/fixtures/prepared-standard.ts';
import { imageOf } from '../../test/fixtures/step-context.ts';
import { PackagesRefused } from '../os/backend.ts';

describe('a target is refused', () => {
  const refused = (message: RegExp) => ({ name: 'PrepareRefused', message: expect.stringMatching(message) });

  test('where somebody has changed the disk', async () => {
    const { prepared, done } = await prepare({ current: runs('old'), disk: 'by hand' });
    await expect(prepared).rejects.toMatchObject(refused(/^Changed on the node.*\/etc\/app\.conf/));
    expect(done).toEqual([]);
  });

  test('unless the admin permits overwriting', async () => {
    const { prepared } = await prepare({ current: runs('old'), disk: 'by hand', isForced: true });
    expect((await prepared).plan.config).toBe('rendered-2');
  });

  test('whose name is the digest of other content', async () => {
    const name = `rendered-worker-${'0'.repeat(32)}`;
    const { prepared } = await prepare({ rendered: { ...renderedWith({}), metadata: { name } } });
    await expect(prepared).rejects.toMatchObject(
      refused(/content is not that which its name is a digest of/),
    );
  });

  test('for an extension that no one knows', async () => {
    const { prepared } = await prepare({ rendered: renderedWith({ extensions: ['usbguard', 'evil'] }) });
    await expect(prepared).rejects.toMatchObject(
      refused(/^rendered-2: extension "evil" is unknown; expected/),
    );
  });

  test('for what only layering can bring', async () => {
    const { prepared } = await prepare({
      rendered: renderedWith({ extensions: ['usbguard'] }),
      backend: { tool: async () => ({ name: 'ostree', installsPackages: false }) },
    });
    await expect(prepared).rejects.toMatchObject(refused(/^rendered-2: /));
  });

  test('where the tool refuses packages, which the message names', async () => {
    const { prepared } = await prepare({
      current: runs('old'),
      disk: 'old',
      rendered: renderedWith({ extensions: ['usbguard'] }),
      backend: { fetch: () => Promise.reject(new PackagesRefused('no repository')) },
    });
    await expect(prepared).rejects.toMatchObject(refused(/^rendered-2: .*usbguard.*no repository/));
  });

  test('where the tool refuses to take packages away', async () => {
    const { prepared } = await prepare({
      current: runs('old', { packages: { installed: ['usbguard'], removed: [] } }),
      disk: 'old',
      backend: { fetch: () => Promise.reject(new PackagesRefused('no repository')) },
    });
    await expect(prepared).rejects.toMatchObject(
      refused(/removes packages that Shale installed: no repository/),
    );
  });

  test('but not for what may pass', async () => {
    const { prepared } = await prepare({
      current: runs('old'),
      disk: 'old',
      osImage: imageOf('9'),
      backend: { fetch: () => Promise.reject(new Error('the registry is away')) },
    });
    await expect(prepared).rejects.toMatchObject({ name: 'Error', message: 'the registry is away' });
  });
});
